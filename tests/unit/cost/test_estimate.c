/*
 * test_estimate - what a plan moves, and how long that takes
 */
#include <string.h>

#include "src/cost/estimate.h"
#include "tests/support/unit_test.h"

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
		.n_stored_records = spilled_nbytes / 8,
		.final_merge_stored_nbytes = spilled_nbytes,
		.merge_pass_nbytes = (n_passes - 1) * spilled_nbytes,
		.merge_pass_input_nbytes = (n_passes - 1) * spilled_nbytes,
		.n_passes = n_passes,
		.copies_to_device = copies,
		.sorts_on_cpu = !copies,
	};
}

static void estimate_request(const struct plan *plan, struct stage_volumes *ret_volumes)
{
	estimate_volumes(plan, &(struct plan_request){ .layout = &layout }, ret_volumes);
}

TEST(spilled_bytes_move_once_per_pass)
{
	const struct plan plan = plan_of(48 * MIB, 3, true);
	struct stage_volumes volumes;

	estimate_request(&plan, &volumes);
	assert_int_equal(volumes.nbytes[PHASE_RUN_GENERATION][STAGE_SPILL], 48 * MIB);
	assert_int_equal(volumes.nbytes[PHASE_MERGE_PASSES][STAGE_FETCH], 96 * MIB);
	assert_int_equal(volumes.nbytes[PHASE_MERGE_PASSES][STAGE_SPILL], 96 * MIB);
	assert_int_equal(volumes.nbytes[PHASE_FINAL_MERGE][STAGE_FETCH], 48 * MIB);
	assert_int_equal(volumes.nbytes[PHASE_FINAL_MERGE][STAGE_UPLOAD], 48 * MIB);
	assert_int_equal(volumes.nbytes[PHASE_RUN_GENERATION][STAGE_UPLOAD], 64 * MIB);
	assert_int_equal(volumes.nbytes[PHASE_FINAL_MERGE][STAGE_DOWNLOAD], 64 * MIB);
}

TEST(pipe_has_no_estimate_without_assumed_size)
{
	const struct stage_volumes none = { 0 };
	struct plan plan = plan_of(0, 1, false);
	struct stage_volumes volumes;

	plan.input_nbytes = PLAN_SIZE_UNKNOWN;
	estimate_request(&plan, &volumes);
	assert_int_equal(volumes.nbytes[PHASE_RUN_GENERATION][STAGE_READ], 64 * MIB);
	plan.expected_nbytes = 0;
	estimate_request(&plan, &volumes);
	assert_memory_equal(&volumes, &none, sizeof volumes);
}

static struct estimate make_estimate(const struct plan *plan, const struct stage_rates *rates)
{
	struct stage_volumes volumes;
	struct estimate estimate;

	estimate_request(plan, &volumes);
	estimate_make(plan, &volumes, rates, &estimate);
	return estimate;
}

static const struct phase_estimate *find_phase(const struct estimate *estimate, enum phase phase)
{
	for (uint32_t i = 0; i < estimate->n_phases; i++)
		if (estimate->phases[i].phase == phase)
			return &estimate->phases[i];
	return NULL;
}

/* Return the seconds of a phase and the name of its bottleneck. */
static double phase_s(const struct plan *plan, const struct stage_rates *rates, enum phase phase,
		      const char **ret_bottleneck)
{
	const struct estimate estimate = make_estimate(plan, rates);
	const struct link_estimate *bottleneck;
	const double s = phase_estimate_s(find_phase(&estimate, phase), &bottleneck);

	*ret_bottleneck = bottleneck ? bottleneck->name : "none";
	return s;
}

static double stage_rate(const struct plan *plan, const struct stage_rates *rates, enum phase id,
			 enum stage stage)
{
	const struct estimate estimate = make_estimate(plan, rates);
	const struct phase_estimate *phase = find_phase(&estimate, id);

	for (uint32_t i = 0; i < phase->n_links; i++)
		if (strcmp(phase->links[i].name, stage_name(stage)) == 0)
			return phase->links[i].per_s;
	return -1;
}

/* Two of four threads write; the other CPUs are left to other stages. */
TEST(stage_that_has_few_threads_leaves_processors)
{
	struct stage_rates rates = {
		.bytes_per_s = { [STAGE_MERGE] = 64.0 * MIB, [STAGE_WRITE] = 32.0 * MIB }
	};
	struct plan plan = plan_of(0, 1, false);
	const char *bottleneck;

	plan.n_queues = 4;
	plan.n_writers = 2;
	assert_true(phase_s(&plan, &rates, PHASE_FINAL_MERGE, &bottleneck) == 2);
	plan.n_writers = 4;
	assert_true(phase_s(&plan, &rates, PHASE_FINAL_MERGE, &bottleneck) == 3);
	assert_string_equal(bottleneck, stage_name(STAGE_WRITE));
}

/*
 * Both devices sort chunks; only a partitioned merge uses both. Writing does not depend on devices.
 */
TEST(unpartitioned_merge_uses_one_device)
{
	const struct stage_rates rates = {
		.bytes_per_s = { [STAGE_SORT] = 128.0 * MIB,
				 [STAGE_MERGE] = 64.0 * MIB,
				 [STAGE_WRITE] = 32.0 * MIB },
		.n_devices = 2,
	};
	struct plan plan = plan_of(0, 1, true);

	plan.n_partitions = 2;
	assert_true(stage_rate(&plan, &rates, PHASE_FINAL_MERGE, STAGE_MERGE) == 64.0 * MIB);
	plan.n_partitions = 1;
	assert_true(stage_rate(&plan, &rates, PHASE_FINAL_MERGE, STAGE_MERGE) == 32.0 * MIB);
	assert_true(stage_rate(&plan, &rates, PHASE_RUN_GENERATION, STAGE_SORT) == 128.0 * MIB);
	assert_true(stage_rate(&plan, &rates, PHASE_FINAL_MERGE, STAGE_WRITE) == 32.0 * MIB);
}

TEST(phase_takes_as_long_as_its_longest_stage_or_all_of_them)
{
	struct stage_rates rates = { .bytes_per_s = { [STAGE_READ] = 64.0 * MIB,
						      [STAGE_UPLOAD] = 32.0 * MIB,
						      [STAGE_SORT] = 128.0 * MIB } };
	struct plan plan = plan_of(0, 1, true);
	const char *bottleneck;

	assert_true(phase_s(&plan, &rates, PHASE_RUN_GENERATION, &bottleneck) == 2);
	assert_string_equal(bottleneck, stage_name(STAGE_UPLOAD));
	plan = plan_of(0, 1, false);
	assert_true(phase_s(&plan, &rates, PHASE_RUN_GENERATION, &bottleneck) == 1.5);
	assert_string_equal(bottleneck, stage_name(STAGE_READ));
	assert_true(phase_s(&plan, &(struct stage_rates){ 0 }, PHASE_RUN_GENERATION, &bottleneck) ==
		    0);
	assert_string_equal(bottleneck, "none");
}
