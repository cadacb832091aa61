/*
 * test_plan_passes - spilled data, merge passes and temporary space of ranks and of merged pipes
 *
 * tests/cli/explain.sh and estimate_bounds.sh compare the plans of one process with what it does.
 */
#include "src/plan/plan.h"

#include "tests/support/unit_test.h"

#define MIB (UINT64_C(1) << 20)

/* Plan for records of one byte and two threads. */
static struct plan make_plan(struct plan_request request)
{
	const struct backend_config config = { .n_threads = 2 };
	struct layout_params records = { .record_nbytes = 1, .n_keys = 1 };
	struct device *device;
	struct layout layout;
	struct plan plan;
	struct key key;

	assert_int_equal(key_parse_type("u8", &key), 0);
	records.keys = &key;
	assert_int_equal(layout_make(&records, &layout), 0);
	assert_int_equal(device_open(&backend_cpu, &config, &device), 0);
	request.n_threads = 2;
	request.compression.mode = COMPRESS_NONE;
	request.layout = &layout;
	request.device = device;
	plan_make(&request, &plan);
	device_close(device);
	layout_free(&layout);
	return plan;
}

/* They cannot be read in the order of a merge. */
TEST(pipes_that_are_merged_are_stored)
{
	struct plan_request request = { .memory_nbytes = 8 * MIB,
					.n_input_runs = 5,
					.input_nbytes = PLAN_SIZE_UNKNOWN,
					.assumed_nbytes = 54 * MIB };
	struct plan plan = make_plan(request);

	assert_int_equal(plan.spilled_nbytes, 54 * MIB);
	assert_int_equal(plan.temp_nbytes, 54 * MIB);
	assert_int_equal(plan.n_passes, 1);
	request.batch_size = 2;
	request.assumes_unbounded = true;
	plan = make_plan(request);
	assert_int_equal(plan.n_passes, 3);
	assert_int_equal(plan.temp_nbytes, 54 * MIB);
	request.input_nbytes = 54 * MIB;
	request.batch_size = 0;
	request.assumes_unbounded = false;
	plan = make_plan(request);
	assert_int_equal(plan.temp_nbytes, 0);
}

/*
 * Return the additional space for compressed frames, which ranks store until all have theirs, and
 * which may not shrink.
 */
static uint64_t frames_take_nbytes(uint64_t limit)
{
	struct plan_request request = {
		.memory_nbytes = 8 * MIB, .input_nbytes = 54 * MIB, .limit = limit, .n_ranks = 3
	};
	const struct plan plain = make_plan(request);
	struct plan framed;

	request.stores_frames = true;
	framed = make_plan(request);
	assert_int_equal(framed.temp_nbytes, plain.temp_nbytes);
	return framed.max_temp_nbytes - plain.max_temp_nbytes;
}

TEST(frames_of_ranks_take_temp_space)
{
	assert_in_range(frames_take_nbytes(0), 54 * MIB, 55 * MIB);
	assert_in_range(frames_take_nbytes(MIB), MIB, 2 * MIB);
}

static struct plan plan_of_rank(uint32_t n_ranks, uint64_t memory_nbytes, uint64_t input_nbytes)
{
	return make_plan((struct plan_request){
		.input_nbytes = input_nbytes, .memory_nbytes = memory_nbytes, .n_ranks = n_ranks });
}

TEST(last_run_of_a_rank_is_stored_once)
{
	const struct plan spilled = plan_of_rank(4, 2048 * MIB, 1024 * MIB),
			  short_of = plan_of_rank(64, 256 * MIB, 256 * MIB),
			  fits = plan_of_rank(4, 4096 * MIB, 256 * MIB);

	assert_false(spilled.fits_in_memory);
	assert_int_equal(spilled.spilled_nbytes + spilled.spilled_to_memory_nbytes, 1024 * MIB);
	assert_true(spilled.keep_last_run_in_memory);
	assert_in_range(spilled.spilled_to_memory_nbytes, MIB, 512 * MIB);
	assert_int_equal(spilled.merge_pass_nbytes, 0);
	assert_int_equal(spilled.n_passes, 1);
	/*
	 * Data that would leave too little memory for windows goes to the disk, and is read once.
	 */
	assert_false(short_of.keep_last_run_in_memory);
	assert_int_equal(short_of.spilled_nbytes, 256 * MIB);
	assert_int_equal(short_of.spilled_to_memory_nbytes, 0);
	assert_true(fits.fits_in_memory);
	assert_int_equal(fits.spilled_nbytes, 0);
	assert_int_equal(fits.spilled_to_memory_nbytes, 256 * MIB);
	assert_int_equal(fits.temp_nbytes, 256 * MIB);
}

TEST(runs_of_all_ranks_may_be_too_many_for_one_merge)
{
	const struct plan few = plan_of_rank(4, 256 * MIB, 256 * MIB),
			  many = plan_of_rank(4000, 256 * MIB, 256 * MIB);

	assert_int_equal(few.n_passes, 1);
	assert_true(4000 * (many.n_spilled_runs + 1) > many.fan_in);
	assert_in_range(many.n_passes, 2, 4);
	assert_in_range(many.merge_pass_nbytes, 256 * MIB / 2, 3 * 256 * MIB);
}
