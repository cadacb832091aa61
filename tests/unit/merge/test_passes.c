/*
 * test_passes.c - passes merge the cheapest runs first, and lose nothing
 */
#include "src/merge/merge.h"

#include <errno.h>
#include <stdatomic.h>

#include "tests/support/job_fixture.h"
#include "tests/support/captured_messages.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

static struct record_totals in_passes;

static int start(void **state)
{
	in_passes = (struct record_totals){ 0 };
	return fixture_start(state);
}

static int finish(void **state)
{
	job_stop();
	return fixture_finish(state);
}

static void open_job(bool unique, uint32_t fan_in)
{
	job_start("u64", unique, FIXTURE_UNIFIED_MEMORY);
	job.plan.fan_in = fan_in;
}

/* Add a run of n random numbers, some of which are equal. */
static void add_random(enum tier tier, uint64_t n)
{
	encoded_key_t *codes = malloc(n * sizeof *codes);

	assert_non_null(codes);
	for (uint64_t i = 0; i < n; i++)
		codes[i] = scramble(i, fixture_run_list.n) % (2 * n);
	add_run(tier, codes, n);
	free(codes);
}

static uint32_t merge_all(void)
{
	uint32_t n_passes;

	assert_int_equal(merge_passes(&job, &fixture_run_list, 0, &in_passes, &n_passes), 0);
	return n_passes;
}

static void assert_run_lengths(const uint64_t *lengths, size_t n)
{
	assert_int_equal(fixture_run_list.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(fixture_run_list.runs[i]->n_items, lengths[i]);
}

#define ASSERT_RUN_LENGTHS(...)                                                                    \
	assert_run_lengths((const uint64_t[]){ __VA_ARGS__ },                                      \
			   sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(few_runs_are_not_merged)
{
	open_job(false, 3);
	for (int i = 0; i < 3; i++)
		add_random(TIER_SPILLED, 1000);
	assert_int_equal(merge_all(), 0);
	ASSERT_RUN_LENGTHS(1000, 1000, 1000);
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(neighbours_with_the_fewest_records_are_merged)
{
	open_job(false, 3);
	add_random(TIER_SPILLED, 5000);
	add_random(TIER_SPILLED, 300);
	add_random(TIER_SPILLED, 200);
	add_random(TIER_SPILLED, 4000);
	assert_int_equal(merge_all(), 1);
	ASSERT_RUN_LENGTHS(5000, 500, 4000);
	check_merged_output(in_passes.dropped, NULL);
}

/* Also if runs are records, which a merge digests when it writes them. */
FIXTURE_TEST(run_output_is_not_counted_as_written)
{
	job_start("b3", false, FIXTURE_UNIFIED_MEMORY);
	job.plan.fan_in = 2;
	for (int i = 0; i < 3; i++)
		add_random(TIER_SPILLED, 1000);
	assert_int_equal(merge_all(), 1);
	assert_int_equal(in_passes.written.n_records, 0);
	check_merged_output(in_passes.dropped, NULL);
}

/* Six runs with a fan-in of three: first two, so that the next merge of three is full. */
FIXTURE_TEST(merge_that_is_not_full_comes_first)
{
	open_job(false, 3);
	for (uint64_t i = 0; i < 6; i++)
		add_random(TIER_SPILLED, 1000 + 100 * i);
	assert_int_equal(merge_all(), 1);
	ASSERT_RUN_LENGTHS(2100, 1200 + 1300 + 1400, 1500);
	check_merged_output(in_passes.dropped, NULL);
}

/*
 * Runs that stay short however often they are merged: the same ones are not merged again and again.
 */
FIXTURE_TEST(runs_that_do_not_grow_take_turns)
{
	encoded_key_t codes[100];

	open_job(true, 2);
	for (int i = 0; i < 16; i++) {
		for (size_t j = 0; j < 100; j++)
			codes[j] = j;
		add_run(TIER_SPILLED, codes, 100);
	}
	assert_int_equal(merge_all(), 3);
	ASSERT_RUN_LENGTHS(100, 100);
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(two_at_a_time_is_enough)
{
	open_job(false, 2);
	for (uint64_t i = 0; i < 17; i++)
		add_random(TIER_SPILLED, 2000 + 7 * i);
	assert_int_equal(merge_all(), 4);
	assert_int_equal(fixture_run_list.n, 2);
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(runs_in_memory_do_not_count)
{
	open_job(false, 2);
	for (int i = 0; i < 3; i++)
		add_random(TIER_SPILLED, 1000);
	for (int i = 0; i < 3; i++)
		add_random(TIER_RESIDENT, 100);
	assert_int_equal(merge_all(), 1);
	ASSERT_RUN_LENGTHS(2000, 1000, 100, 100, 100);
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(chunks_in_memory_become_one_spilled_run)
{
	open_job(false, 16);
	for (int i = 0; i < 5; i++)
		add_random(TIER_RESIDENT, 9000);
	assert_int_equal(merge_to_run(&job, &fixture_run_list, 1, 3, 0, &in_passes), 0);
	ASSERT_RUN_LENGTHS(9000, 27000, 9000);
	assert_true(run_is_resident(fixture_run_list.runs[0]));
	assert_false(run_is_resident(fixture_run_list.runs[1]));
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(records_narrower_than_elements_pass)
{
	job_start("b5", false, FIXTURE_SEPARATE_MEMORY);
	job.plan.fan_in = 2;
	for (uint64_t i = 0; i < 5; i++)
		add_random(TIER_SPILLED, 20000 + i);
	assert_int_equal(merge_all(), 2);
	check_merged_output(in_passes.dropped, NULL);
}

/* Bytes copied between the host and a device with memory of its own. */
static atomic_uint_fast64_t copied_nbytes;

static int counting_copy(struct device_queue *queue, void *to, const void *from, size_t nbytes)
{
	copied_nbytes += nbytes;
	return backend_cpu.copy(queue, to, from, nbytes);
}

/* Merge spilled runs of `type` into two on such a device. Returns the bytes copied for that. */
static uint64_t merge_on_separate_device(enum fixture_memory memory, const char *type, bool unique)
{
	job_start(type, unique, memory);
	fixture_separate_backend.copy = counting_copy;
	job.plan.fan_in = 2;
	for (uint64_t i = 0; i < 6; i++)
		add_random(TIER_SPILLED, 20000 + i);
	assert_int_equal(merge_all(), 2);
	copied_nbytes = 0;
	assert_int_equal(merge_to_run(&job, &fixture_run_list, 0, 2, 0, &in_passes), 0);
	return copied_nbytes;
}

static uint64_t stored_nbytes(const struct run *run)
{
	const struct run_file *file = run_spilled_file(run);
	uint64_t nbytes = 0;

	for (uint64_t i = 0; i < run_file_index(file)->n_blocks; i++)
		nbytes += run_file_index(file)->blocks[i].stored_nbytes;
	return nbytes;
}

FIXTURE_TEST(packed_runs_take_less_of_link_and_disk)
{
	const uint64_t plain_nbytes =
		merge_on_separate_device(FIXTURE_SEPARATE_MEMORY, "u64", false);
	uint64_t nbytes;

	check_merged_output(in_passes.dropped, NULL);
	job_stop();
	nbytes = merge_on_separate_device(FIXTURE_PACKING_MEMORY, "u64", false);
	assert_true(nbytes < plain_nbytes / 4);
	assert_true(stored_nbytes(fixture_run_list.runs[0]) <
		    fixture_run_list.runs[0]->n_items * 8 / 4);
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(packed_runs_lose_nothing)
{
	static const char *const types[] = { "u32", "i64be", "f32", "u128" };

	for (size_t i = 0; i < sizeof types / sizeof types[0]; i += FOR_RACES_ONLY ? 3 : 1)
		for (int unique = 0; unique < 2; unique++) {
			if (i > 0 || unique)
				job_stop();
			in_passes = (struct record_totals){ 0 };
			merge_on_separate_device(FIXTURE_PACKING_MEMORY, types[i], unique);
			check_merged_output(in_passes.dropped, NULL);
		}
}

/* The third block that the device gets has lost its end on the way. */
static int unpack_damaged(struct device_queue *queue, const struct unpack_op *op)
{
	static struct packed_block blocks[1000];
	struct unpack_op damaged = *op;

	assert_in_range(op->n_blocks, 3, 1000);
	memcpy(blocks, op->blocks, op->n_blocks * sizeof *blocks);
	blocks[2].packed_nbytes -= 32;
	damaged.blocks = blocks;
	return backend_cpu.unpack(queue, &damaged);
}

FIXTURE_TEST(block_that_cannot_be_unpacked_is_named)
{
	merge_on_separate_device(FIXTURE_PACKING_MEMORY, "u64", false);
	fixture_separate_backend.unpack = unpack_damaged;
	assert_int_equal(merge_to_run(&job, &fixture_run_list, 0, 1, 0, &in_passes), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "block 2 of"));
	assert_non_null(strstr(captured_messages_error(), "cannot be decoded"));
}

FIXTURE_TEST(space_of_merged_runs_is_given_back)
{
	/* Windows end in pages that they do not fill. */
	const uint64_t min = 6 * 30000 * 8, max = min + min / 8;

	open_job(false, 2);
	for (int i = 0; i < 6; i++)
		add_random(TIER_SPILLED, 30000);
	assert_in_range(spill_used_nbytes(job.spill), min, max);
	merge_all();
	assert_in_range(spill_used_nbytes(job.spill), min, max);
	run_list_free(&fixture_run_list);
	assert_int_equal(spill_used_nbytes(job.spill), 0);
}

static void shrink_index(uint64_t max_stored_blocks, int result)
{
	job.plan.max_stored_blocks = max_stored_blocks;
	assert_int_equal(merge_shrink_index(&job, &fixture_run_list, 0, &in_passes), result);
}

/* Open a job for an input of unknown size whose runs have 4 * 40 blocks. */
static void open_job_of_long_pipe(void)
{
	open_job(false, 8);
	job.plan.input_nbytes = job.plan_request.input_nbytes = PLAN_SIZE_UNKNOWN;
	for (int i = 0; i < 4; i++)
		add_random(TIER_SPILLED, 40 * FIXTURE_BLOCK_NBYTES / 8);
}

FIXTURE_TEST(full_index_gets_longer_blocks)
{
	open_job_of_long_pipe();
	add_random(TIER_RESIDENT, 1000);
	shrink_index(160, 0);
	assert_int_equal(fixture_run_list.n, 5);
	shrink_index(159, 0);
	assert_int_equal(job.plan.block_nbytes, 4 * FIXTURE_BLOCK_NBYTES);
	assert_int_equal(job.plan.fan_in, 2);
	ASSERT_RUN_LENGTHS(40960, 40960, 1000);
	assert_in_range(run_list_n_stored_blocks(&fixture_run_list), 40, 60);
	assert_int_equal(fixture_run_list.runs[0]->level, 1);
	shrink_index(39, -E2BIG);
	assert_non_null(strstr(captured_messages_error(), "of an input of unknown size; use -S"));
	check_merged_output(in_passes.dropped, NULL);
}

FIXTURE_TEST(failed_merge_for_longer_blocks_is_an_error)
{
	struct cancellation cancellation;

	cancellation_init(&cancellation);
	open_job_of_long_pipe();
	job.cancellation = &cancellation;
	cancellation_request(&cancellation);
	shrink_index(159, -ECANCELED);
	cancellation_destroy(&cancellation);
}
