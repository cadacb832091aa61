/*
 * test_estimate - what a plan moves, and how long that takes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/cost/estimate.h"
#include "src/report/explain.h"

#include <cmocka.h>

#define MIB (UINT64_C(1) << 20)

static const struct layout layout = {
	.record_nbytes = 8,
	.item_nbytes = 8,
	.output_nbytes = 8,
	.element_nbytes = 8,
	.stores_elements = true,
};

static struct plan plan_of(uint64_t spilled_nbytes, uint32_t n_passes, bool copies)
{
	return (struct plan){
		.input_nbytes = 64 * MIB,
		.expected_nbytes = 64 * MIB,
		.n_chunks = 10,
		.spilled_nbytes = spilled_nbytes,
		.n_formed_records = spilled_nbytes / 8,
		.last_stored_nbytes = spilled_nbytes,
		.passes_nbytes = (n_passes - 1) * spilled_nbytes,
		.passes_merged_nbytes = (n_passes - 1) * spilled_nbytes,
		.n_passes = n_passes,
		.copies = copies,
		.shares_processors = !copies,
	};
}

static void load(const struct plan *plan, const struct layout *of, struct loads *ret_loads)
{
	estimate_loads(plan, &(struct plan_request){ .layout = of }, ret_loads);
}

static void what_fits_is_read_and_written_once(void **state)
{
	const struct plan plan = plan_of(0, 1, false);
	struct loads loads;

	(void)state;
	load(&plan, &layout, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_READ], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_ENCODE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DECODE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SPILL], 0);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_FETCH], 0);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DOWNLOAD], 0);
}

static void what_is_spilled_moves_once_more_in_every_pass(void **state)
{
	const struct plan plan = plan_of(48 * MIB, 3, true);
	struct loads loads;

	(void)state;
	load(&plan, &layout, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SPILL], 48 * MIB);
	assert_int_equal(loads.nbytes[PHASE_PASSES][STAGE_FETCH], 96 * MIB);
	assert_int_equal(loads.nbytes[PHASE_PASSES][STAGE_SPILL], 96 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_FETCH], 48 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_UPLOAD], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DOWNLOAD], 64 * MIB);
}

static void output_counts_what_is_written_of_an_item(void **state)
{
	const struct plan plan = plan_of(0, 1, false);
	struct layout positions = layout;
	struct loads loads;

	(void)state;
	positions.record_nbytes = 64;
	load(&plan, &positions, &loads);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 8 * MIB);
}

static void of_what_is_referred_to_elements_are_sorted(void **state)
{
	const struct layout wide = { .kind = LAYOUT_REFERENCES,
				     .record_nbytes = 64,
				     .item_nbytes = 64,
				     .output_nbytes = 64,
				     .element_nbytes = 16 };
	struct plan plan = plan_of(0, 1, false);
	struct loads loads;

	(void)state;
	plan.resident_nbytes = 16;
	plan.gathered_nbytes = 64;
	load(&plan, &wide, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_READ], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_ENCODE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SORT], 16 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_MERGE], 16 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_DECODE], 64 * MIB);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 64 * MIB);
}

/* Items of 16 bytes that stand for records of 64. */
static void what_is_stored_of_a_record_moves_to_the_disk(void **state)
{
	const struct layout keys = {
		.kind = LAYOUT_RECORDS, .record_nbytes = 64, .item_nbytes = 16, .output_nbytes = 16
	};
	struct plan plan = plan_of(8 * MIB, 1, false);
	struct loads loads;

	(void)state;
	plan.n_formed_records = 8 * MIB / 16;
	load(&plan, &keys, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_SPILL], 8 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_MERGE], 8 * MIB);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_ENCODE], 0);
	assert_int_equal(loads.nbytes[PHASE_MERGE][STAGE_WRITE], 16 * MIB);
}

static void of_a_pipe_nothing_is_said_unless_it_is_assumed(void **state)
{
	const struct loads none = { 0 };
	struct plan plan = plan_of(0, 1, false);
	struct loads loads;

	(void)state;
	plan.input_nbytes = PLAN_SIZE_UNKNOWN;
	load(&plan, &layout, &loads);
	assert_int_equal(loads.nbytes[PHASE_RUNS][STAGE_READ], 64 * MIB);
	plan.expected_nbytes = 0;
	load(&plan, &layout, &loads);
	assert_memory_equal(&loads, &none, sizeof loads);
}

/* The last lines of what --explain prints, into `text`. */
static void print(const struct plan *plan, const struct link_rates *rates, char *text, size_t room)
{
	FILE *file = fmemopen(text, room, "w");
	struct loads loads;

	assert_non_null(file);
	load(plan, &layout, &loads);
	estimate_print(plan, &loads, rates, file);
	assert_int_equal(fclose(file), 0);
}

/* What could not be measured is no reason to promise less. */
static void write_counts_and_what_is_not_measured_is_said(void **state)
{
	struct link_rates rates = { .rates = { [STAGE_READ] = 64.0 * MIB,
					       [STAGE_ENCODE] = 64.0 * MIB,
					       [STAGE_SORT] = 64.0 * MIB,
					       [STAGE_MERGE] = 64.0 * MIB,
					       [STAGE_DECODE] = 64.0 * MIB,
					       [STAGE_WRITE] = 64.0 * MIB } };
	const struct plan plan = plan_of(0, 1, false);
	char text[4096];

	(void)state;
	print(&plan, &rates, text, sizeof text);
	assert_non_null(strstr(text, "total: about 6.000 s\n"));
	rates.rates[STAGE_WRITE] = 0;
	print(&plan, &rates, text, sizeof text);
	assert_non_null(strstr(text, "total: more than 5.000 s\n"));
}

/* Two threads of four that write leave the other processors to the others. */
static void stage_that_has_few_threads_leaves_processors(void **state)
{
	struct link_rates rates = {
		.rates = { [STAGE_MERGE] = 64.0 * MIB, [STAGE_WRITE] = 32.0 * MIB }
	};
	struct plan plan = plan_of(0, 1, false);
	enum stage bottleneck;
	struct loads loads;

	(void)state;
	plan.n_lanes = 4;
	plan.n_writers = 2;
	load(&plan, &layout, &loads);
	assert_true(estimate_phase_s(&plan, &loads, &rates, PHASE_MERGE, &bottleneck) == 2);
	plan.n_writers = 4;
	assert_true(estimate_phase_s(&plan, &loads, &rates, PHASE_MERGE, &bottleneck) == 3);
	assert_int_equal(bottleneck, STAGE_WRITE);
}

/* Both form runs; only a merge in ranges is done by both. What a file takes is the file's. */
static void one_of_two_devices_merges_what_is_not_divided(void **state)
{
	const struct link_rates rates = {
		.rates = { [STAGE_SORT] = 128.0 * MIB,
			   [STAGE_MERGE] = 64.0 * MIB,
			   [STAGE_WRITE] = 32.0 * MIB },
		.n_devices = 2,
	};
	struct plan plan = plan_of(0, 1, true);

	(void)state;
	plan.n_ranges = 2;
	assert_true(estimate_rate(&plan, &rates, PHASE_MERGE, STAGE_MERGE) == 64.0 * MIB);
	plan.n_ranges = 1;
	assert_true(estimate_rate(&plan, &rates, PHASE_MERGE, STAGE_MERGE) == 32.0 * MIB);
	assert_true(estimate_rate(&plan, &rates, PHASE_RUNS, STAGE_MERGE) == 64.0 * MIB);
	assert_true(estimate_rate(&plan, &rates, PHASE_RUNS, STAGE_SORT) == 128.0 * MIB);
	assert_true(estimate_rate(&plan, &rates, PHASE_MERGE, STAGE_WRITE) == 32.0 * MIB);
}

static void phase_takes_as_long_as_its_longest_stage_or_all_of_them(void **state)
{
	struct link_rates rates = { .rates = { [STAGE_READ] = 64.0 * MIB,
					       [STAGE_UPLOAD] = 32.0 * MIB,
					       [STAGE_SORT] = 128.0 * MIB } };
	struct plan plan = plan_of(0, 1, true);
	enum stage bottleneck;
	struct loads loads;

	(void)state;
	load(&plan, &layout, &loads);
	assert_true(estimate_phase_s(&plan, &loads, &rates, PHASE_RUNS, &bottleneck) == 2);
	assert_int_equal(bottleneck, STAGE_UPLOAD);
	plan = plan_of(0, 1, false);
	load(&plan, &layout, &loads);
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
		cmocka_unit_test(what_is_stored_of_a_record_moves_to_the_disk),
		cmocka_unit_test(of_a_pipe_nothing_is_said_unless_it_is_assumed),
		cmocka_unit_test(write_counts_and_what_is_not_measured_is_said),
		cmocka_unit_test(stage_that_has_few_threads_leaves_processors),
		cmocka_unit_test(one_of_two_devices_merges_what_is_not_divided),
		cmocka_unit_test(phase_takes_as_long_as_its_longest_stage_or_all_of_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
