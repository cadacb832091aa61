/*
 * test_plan_passes - spilled data, merge passes and temporary space of a plan
 */
#include "src/plan/plan_internal.h"

#include "tests/support/unit_test.h"

#define MIB (UINT64_C(1) << 20)

/* Plan for records of one byte and two threads. */
static struct plan make_checkpoint_plan(struct plan_request request, bool index)
{
	const struct backend_config config = { .n_threads = 2 };
	struct layout_params records = { .record_nbytes = 1, .n_keys = 1, .argsort = index };
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

static struct plan make_plan_with_memory(uint64_t memory_nbytes, uint32_t fan_in,
					 uint64_t input_nbytes, bool index, uint64_t assumed_nbytes)
{
	return make_checkpoint_plan((struct plan_request){ .input_nbytes = input_nbytes,
							   .assumed_nbytes = assumed_nbytes,
							   .memory_nbytes = memory_nbytes,
							   .batch_size = fan_in },
				    index);
}

static struct plan plan_of_unique(uint64_t memory_nbytes, uint64_t input_nbytes, bool counts_first,
				  uint64_t limit)
{
	return make_checkpoint_plan((struct plan_request){ .input_nbytes = input_nbytes,
							   .memory_nbytes = memory_nbytes,
							   .sequential_output = true,
							   .needs_count_pass = counts_first,
							   .unique = true,
							   .limit = limit },
				    false);
}

/* Plan a sort of records of one byte in 8 MiB, with --argsort or without. */
static struct plan plan_for_bytes(uint64_t input_nbytes, bool index, uint64_t assumed_nbytes)
{
	return make_plan_with_memory(8 * MIB, 0, input_nbytes, index, assumed_nbytes);
}

/* Merged data is released with delay, and several passes may be waiting. */
TEST(short_passes_may_leave_more_than_once_the_data)
{
	const struct plan plan = make_plan_with_memory(MIB, 2, 3 * MIB, false, 0);

	assert_true(plan.merge_pass_nbytes > 8 * MIB);
	assert_in_range(plan.spilled_nbytes, 2 * MIB, 4 * MIB);
	assert_true(plan.max_temp_nbytes >= plan.spilled_nbytes + 8 * MIB);
}

TEST(stored_item_size_counts)
{
	const struct plan plain = plan_for_bytes(54 * MIB, false, 0),
			  index = plan_for_bytes(54 * MIB, true, 0);

	assert_in_range(plain.temp_nbytes, 40 * MIB, 54 * MIB);
	assert_in_range(index.temp_nbytes, 9 * 50 * MIB, 9 * 54 * MIB);
	assert_true(index.max_temp_nbytes >= index.temp_nbytes);
}

TEST(assumed_size_of_a_pipe_is_planned)
{
	const struct plan plan = plan_for_bytes(PLAN_SIZE_UNKNOWN, false, 54 * MIB),
			  none = plan_for_bytes(PLAN_SIZE_UNKNOWN, false, 0),
			  little = plan_for_bytes(PLAN_SIZE_UNKNOWN, false, MIB / 8);

	assert_in_range(plan.temp_nbytes, 40 * MIB, 54 * MIB);
	assert_int_equal(none.temp_nbytes, 0);
	assert_int_equal(little.n_spilled_runs, 0);
	assert_int_equal(little.temp_nbytes, 0);
}

/* They cannot be read in the order of a merge. */
TEST(pipes_that_are_merged_are_stored)
{
	struct plan_request request = { .memory_nbytes = 8 * MIB,
					.n_input_runs = 5,
					.input_nbytes = PLAN_SIZE_UNKNOWN,
					.assumed_nbytes = 54 * MIB };
	struct plan plan = make_checkpoint_plan(request, false);

	assert_int_equal(plan.spilled_nbytes, 54 * MIB);
	assert_int_equal(plan.temp_nbytes, 54 * MIB);
	assert_int_equal(plan.n_passes, 1);
	request.batch_size = 2;
	request.assumes_unbounded = true;
	plan = make_checkpoint_plan(request, false);
	assert_int_equal(plan.n_passes, 3);
	assert_int_equal(plan.temp_nbytes, 54 * MIB);
	request.input_nbytes = 54 * MIB;
	request.batch_size = 0;
	request.assumes_unbounded = false;
	plan = make_checkpoint_plan(request, false);
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
	const struct plan plain = make_checkpoint_plan(request, false);
	struct plan framed;

	request.stores_frames = true;
	framed = make_checkpoint_plan(request, false);
	assert_int_equal(framed.temp_nbytes, plain.temp_nbytes);
	return framed.max_temp_nbytes - plain.max_temp_nbytes;
}

TEST(frames_of_ranks_take_temp_space)
{
	assert_in_range(frames_take_nbytes(0), 54 * MIB, 55 * MIB);
	assert_in_range(frames_take_nbytes(MIB), MIB, 2 * MIB);
}

/* An output with a record count in its header, written in order, with -u. */
TEST(counting_first_is_a_pass_and_takes_space)
{
	const struct plan plain = plan_of_unique(8 * MIB, 54 * MIB, false, 0),
			  counted = plan_of_unique(8 * MIB, 54 * MIB, true, 0),
			  fits = plan_of_unique(1024 * MIB, 54 * MIB, true, 0),
			  limited = plan_of_unique(1024 * MIB, 54 * MIB, true, MIB),
			  none = plan_of_unique(1024 * MIB, 0, true, 0);

	assert_int_equal(plain.count_pass_nbytes, 0);
	assert_int_equal(counted.n_passes, plain.n_passes + 1);
	assert_int_equal(counted.count_pass_nbytes, 54 * MIB);
	assert_int_equal(counted.merge_pass_nbytes, plain.merge_pass_nbytes + 54 * MIB);
	assert_int_equal(counted.temp_nbytes, 54 * MIB);
	assert_true(fits.fits_in_memory);
	assert_int_equal(fits.n_passes, 2);
	assert_int_equal(fits.temp_nbytes, 54 * MIB);
	assert_in_range(fits.max_temp_nbytes, 54 * MIB, 55 * MIB);
	assert_int_equal(limited.temp_nbytes, MIB);
	assert_int_equal(none.n_passes, 1);
	assert_int_equal(none.temp_nbytes, 0);
}

/* The data that stays in memory is then stored as one more run. */
TEST(checkpoint_of_unique_keeps_one_run_more)
{
	struct plan_request request = { .input_nbytes = 54 * MIB,
					.memory_nbytes = 8 * MIB,
					.keeps_checkpoint_index = true };
	const struct plan plain = make_checkpoint_plan(request, false);
	struct plan unique;

	request.unique = true;
	unique = make_checkpoint_plan(request, false);
	assert_int_equal(unique.n_spilled_runs, plain.n_spilled_runs + 1);
	assert_int_equal(unique.spilled_nbytes, 54 * MIB);
	assert_int_equal(unique.n_stored_records, 54 * MIB);
}

/* A merge writes no more than the limit, however many runs it has. */
TEST(limit_bounds_the_output_of_a_merge)
{
	const struct plan plan =
		make_checkpoint_plan((struct plan_request){ .input_nbytes = 54 * MIB,
							    .memory_nbytes = MIB,
							    .batch_size = 3,
							    .limit = 1000 },
				     false);
	const uint64_t n_out = plan.n_spilled_runs - plan.fan_in;
	const uint64_t n_merges = (n_out + plan.fan_in - 2) / (plan.fan_in - 1);

	assert_true(plan.n_spilled_runs > 100);
	assert_int_equal(plan.spilled_nbytes, plan.n_spilled_runs * 1000);
	assert_int_equal(plan.merge_pass_nbytes, n_merges * 1000);
	assert_int_equal(plan.merge_pass_input_nbytes, (n_out + n_merges) * 1000);
	assert_int_equal(plan.final_merge_stored_nbytes, plan.fan_in * 1000);
	assert_true(plan.n_stored_records > 40 * MIB);
}

static struct plan plan_of_rank(uint32_t n_ranks, uint64_t memory_nbytes, uint64_t input_nbytes)
{
	return make_checkpoint_plan((struct plan_request){ .input_nbytes = input_nbytes,
							   .memory_nbytes = memory_nbytes,
							   .n_ranks = n_ranks },
				    false);
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
