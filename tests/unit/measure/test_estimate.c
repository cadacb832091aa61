/*
 * test_estimate - what a plan moves, and how long that takes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "src/measure/estimate.h"

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static const struct layout layout = { .record_nbytes = 8, .output_nbytes = 8 };

static struct plan plan_of(uint64_t spilled_nbytes, uint32_t n_passes, bool unified)
{
	return (struct plan){
		.input_nbytes = 64 * MIB,
		.n_chunks = 10,
		.spilled_nbytes = spilled_nbytes,
		.passes_nbytes = (n_passes - 1) * spilled_nbytes,
		.n_passes = n_passes,
		.unified = unified,
	};
}

static void what_fits_is_read_and_written_once(void **state)
{
	const struct plan plan = plan_of(0, 1, true);
	struct loads loads;

	(void)state;
	estimate_loads(&plan, &layout, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_READ], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SPILL], 0);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_FETCH], 0);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DOWNLOAD], 0);
}

static void what_is_spilled_moves_once_more_in_every_pass(void **state)
{
	const struct plan plan = plan_of(48 * MIB, 3, false);
	struct loads loads;

	(void)state;
	estimate_loads(&plan, &layout, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SPILL], 48 * MIB);
	assert_int_equal(loads.nbytes[PHASE_PASSES][STAGE_FETCH], 96 * MIB);
	assert_int_equal(loads.nbytes[PHASE_PASSES][STAGE_SPILL], 96 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_FETCH], 48 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_UPLOAD], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DOWNLOAD], 64 * MIB);
}

static void output_counts_what_is_written_of_an_item(void **state)
{
	const struct plan plan = plan_of(0, 1, true);
	struct layout positions = layout;
	struct loads loads;

	(void)state;
	positions.record_nbytes = 64;
	estimate_loads(&plan, &positions, &loads);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 8 * MIB);
}

static void of_what_is_referred_to_elements_are_sorted(void **state)
{
	const struct layout wide = { .record_nbytes = 64, .output_nbytes = 64 };
	struct plan plan = plan_of(0, 1, true);
	struct loads loads;

	(void)state;
	plan.resident_nbytes = 16;
	plan.gathered_nbytes = 64;
	estimate_loads(&plan, &wide, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_READ], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_ENCODE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SORT], 16 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_MERGE], 16 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DECODE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 64 * MIB);
}

static void nothing_is_said_about_an_unknown_size(void **state)
{
	const struct loads none = { 0 };
	struct plan plan = plan_of(0, 1, true);
	struct loads loads;

	(void)state;
	plan.input_nbytes = PLAN_SIZE_UNKNOWN;
	estimate_loads(&plan, &layout, &loads);
	assert_memory_equal(&loads, &none, sizeof loads);
}

static void phase_takes_as_long_as_its_longest_stage_or_all_of_them(void **state)
{
	struct link_rates rates = { .rates = { [STAGE_READ] = 64.0 * MIB,
					       [STAGE_UPLOAD] = 32.0 * MIB,
					       [STAGE_SORT] = 128.0 * MIB } };
	struct plan plan = plan_of(0, 1, false);
	enum stage bottleneck;
	struct loads loads;

	(void)state;
	estimate_loads(&plan, &layout, &loads);
	assert_true(estimate_phase_s(&plan, &loads, &rates, PHASE_RUNS, &bottleneck) == 2);
	assert_int_equal(bottleneck, STAGE_UPLOAD);
	plan = plan_of(0, 1, true);
	estimate_loads(&plan, &layout, &loads);
	assert_true(estimate_phase_s(&plan, &loads, &rates, PHASE_RUNS, &bottleneck) == 1.5);
	assert_int_equal(bottleneck, STAGE_READ);
	assert_true(estimate_phase_s(&plan, &loads, &rates, PHASE_CHECK, &bottleneck) == 0);
	assert_int_equal(bottleneck, N_STAGES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_is_read_and_written_once),
		cmocka_unit_test(what_is_spilled_moves_once_more_in_every_pass),
		cmocka_unit_test(output_counts_what_is_written_of_an_item),
		cmocka_unit_test(of_what_is_referred_to_elements_are_sorted),
		cmocka_unit_test(nothing_is_said_about_an_unknown_size),
		cmocka_unit_test(phase_takes_as_long_as_its_longest_stage_or_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
