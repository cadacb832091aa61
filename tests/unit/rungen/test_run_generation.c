/*
 * test_run_generation.c - the runs hold all of the input, in memory or spilled
 */
#include "src/base/int_math.h"
#include "src/rungen/chunk_pool.h"

#include "tests/support/job_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

static struct record_totals ledger;

/* The input of the job, which open_file() or a thread that writes into a pipe provides. */
static unsigned char *input_records;
static size_t input_nbytes;

/* The number of buckets among which chunks are distributed; 0: they are not. */
static uint32_t n_buckets;

static int finish(void **state)
{
	free(input_records);
	input_records = NULL;
	fixture_n_devices = 1;
	n_buckets = 0;
	return fixture_finish(state);
}

typedef encoded_key_t number_fn(uint64_t i);

static encoded_key_t random_number(uint64_t i)
{
	return scramble(i, 1) >> 24;
}

static encoded_key_t few_numbers(uint64_t i)
{
	return scramble(i, 2) % 1000;
}

/* Make n records and start a job that sorts them as `type`. */
static void make_input(const char *type, bool unique, enum fixture_memory memory, number_fn *number,
		       size_t n)
{
	encoded_key_t *codes = malloc((n + 1) * sizeof *codes);

	assert_non_null(codes);
	job_start(type, unique, memory);
	for (size_t i = 0; i < n; i++)
		codes[i] = number(i);
	fixture_add_keys(codes, n);
	input_records = fixture_make_items(codes, n, false);
	input_nbytes = n * layout.record_nbytes;
	free(codes);
}

static void plan_buckets(void)
{
	struct plan *plan = &job.plan;

	job.plan_request.memory_nbytes = fixture_windows_nbytes = 16 << 20;
	plan_make(&job.plan_request, plan);
	plan->n_buckets = n_buckets;
	plan->max_bucket_records = 2 * fixture_n_keys / n_buckets;
	plan->sort_output_nbytes = plan->chunk_nbytes;
	plan->sort_scratch_nbytes = u64_max(
		plan->sort_scratch_nbytes,
		device_distribute_scratch_nbytes(job_device(&job), &layout, plan->chunk_records));
}

static void open_input(const char *path)
{
	assert_int_equal(input_open(&faulty_calls, &path, 1, layout.record_nbytes, &job.input), 0);
	job_plan(input_total_nbytes(job.input), 0);
	job.plan.block_nbytes = FIXTURE_BLOCK_NBYTES;
	if (n_buckets)
		plan_buckets();
	assert_int_equal(chunk_pool_open(&job, &job.chunk_pool), 0);
}

static void open_file(void)
{
	write_file(fixture_path("input"), input_records, input_nbytes);
	open_input(fixture_path("input"));
}

static int generate_test_runs(void)
{
	ledger = (struct record_totals){ 0 };
	return generate_runs(&job, job.chunk_pool, &fixture_run_list, &ledger);
}

static void close_input(void)
{
	struct input *input = job.input;

	run_list_free(&fixture_run_list);
	chunk_pool_close(job.chunk_pool);
	job_stop();
	input_close(input);
}

/* Check that all input was digested, and that merging the runs gives the sorted input. */
static void check_runs(void)
{
	assert_int_equal(generate_test_runs(), 0);
	assert_true(digest_equal(ledger.read, digest_encoded_keys(fixture_keys, fixture_n_keys)));
	chunk_pool_trim(job.chunk_pool);
	check_merged_output(ledger.dropped, NULL);
}

static void check_file(const char *type, bool unique, enum fixture_memory memory, number_fn *number,
		       size_t n, size_t n_spilled_at_least, size_t n_spilled_at_most)
{
	size_t n_spilled;

	make_input(type, unique, memory, number, n);
	open_file();
	assert_int_equal(generate_test_runs(), 0);
	n_spilled = run_list_n_spilled(&fixture_run_list);
	assert_in_range(n_spilled, n_spilled_at_least, n_spilled_at_most);
	assert_true(digest_equal(ledger.read, digest_encoded_keys(fixture_keys, fixture_n_keys)));
	chunk_pool_trim(job.chunk_pool);
	check_merged_output(ledger.dropped, NULL);
	close_input();
	free(input_records);
	input_records = NULL;
}

/* Check that the input is read from record number `first` on. Earlier ones are in runs already. */
static void check_remainder(enum fixture_memory memory, size_t n, size_t first)
{
	make_input("u64", false, memory, random_number, n);
	open_file();
	job.first_record = first;
	input_start_at(job.input, first * layout.record_nbytes);
	fixture_n_keys -= first;
	memmove(fixture_keys, fixture_keys + first, fixture_n_keys * sizeof *fixture_keys);
	check_runs();
	close_input();
	free(input_records);
	input_records = NULL;
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, fixture_start, finish)

FIXTURE_TEST(input_is_read_from_the_first_record_on)
{
	static const size_t firsts[] = { 1, 4095, 8192, 40001, 79999, 80000 };

	for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i += FOR_RACES_ONLY ? 3 : 1) {
		check_remainder(FIXTURE_UNIFIED_MEMORY, 80000, firsts[i]);
		check_remainder(FIXTURE_SEPARATE_MEMORY, 80000, firsts[i]);
	}
}

FIXTURE_TEST(last_chunks_stay_in_memory)
{
	make_input("u64", false, FIXTURE_UNIFIED_MEMORY, random_number, 150000);
	open_file();
	assert_int_equal(generate_test_runs(), 0);
	assert_int_equal(run_list_n_spilled(&fixture_run_list), job.plan.n_spilled_runs);
	assert_in_range(fixture_run_list.n - run_list_n_spilled(&fixture_run_list),
			job.plan.n_chunks / 4, job.plan.n_chunks);
	chunk_pool_trim(job.chunk_pool);
	check_merged_output(ledger.dropped, NULL);
	close_input();
}

FIXTURE_TEST(device_memory_may_be_separate)
{
	check_file("u64", false, FIXTURE_SEPARATE_MEMORY, random_number, 1, 0, 0);
	check_file("u64", false, FIXTURE_SEPARATE_MEMORY, random_number, 30000, 0, 0);
	if (!FOR_RACES_ONLY)
		check_file("u64", false, FIXTURE_SEPARATE_MEMORY, random_number, 180007, 1, 40);
	check_file("b5", false, FIXTURE_SEPARATE_MEMORY, random_number, 120007, 1, 40);
	check_file("b10", true, FIXTURE_SEPARATE_MEMORY, few_numbers, 120001, 1, 40);
}

/* The CPU back end, which records what is discarded. */
static struct backend backend_noting;
static struct discarded {
	char *memory;
	size_t nbytes;
} discarded[64];
static size_t n_discarded;

static void record_discard(struct device *device, void *memory, size_t nbytes)
{
	assert_true(n_discarded < sizeof discarded / sizeof discarded[0]);
	discarded[n_discarded++] = (struct discarded){ memory, nbytes };
	backend_cpu.discard(device, memory, nbytes);
}

static size_t find_discarded(const char *memory)
{
	for (size_t i = 0; i < n_discarded; i++)
		if (discarded[i].memory == memory)
			return discarded[i].nbytes;
	return 0;
}

/* Generate runs that -u makes shorter than their chunks. */
static void generate_short_runs(size_t n)
{
	make_input("u64", true, FIXTURE_UNIFIED_MEMORY, few_numbers, n);
	backend_noting = backend_cpu;
	backend_noting.discard = record_discard;
	n_discarded = 0;
	job_device(&job)->backend = &backend_noting;
	open_file();
	assert_int_equal(generate_test_runs(), 0);
}

FIXTURE_TEST(unused_tail_of_a_chunk_is_released)
{
	generate_short_runs(30000);
	assert_true(job.plan.fits_in_memory);
	assert_true(fixture_run_list.n > 1);
	for (size_t i = 0; i < fixture_run_list.n; i++) {
		const uint64_t nbytes = fixture_run_list.runs[i]->n_items * layout.resident_nbytes;
		const char *remainder = (const char *)fixture_run_list.runs[i]->memory + nbytes;

		assert_in_range(nbytes, 8, 1000 * layout.resident_nbytes);
		assert_int_equal(find_discarded(remainder), job.plan.chunk_nbytes - nbytes);
	}
	close_input();
}

FIXTURE_TEST(chunks_that_are_used_again_are_kept)
{
	generate_short_runs(250003);
	assert_false(job.plan.fits_in_memory);
	assert_int_equal(n_discarded, 0);
	close_input();
}

/* Generate runs of n records in memory, and merge them in partitions. */
static void check_buckets(const char *type, number_fn *number, size_t n, bool has_buckets)
{
	for (uint32_t n_partitions = FOR_RACES_ONLY ? 3 : 1; n_partitions <= 3; n_partitions += 2) {
		make_input(type, false, FIXTURE_UNIFIED_MEMORY, number, n);
		open_file();
		assert_true(job.plan.fits_in_memory);
		assert_int_equal(generate_test_runs(), 0);
		assert_true(fixture_run_list.n > 2);
		for (size_t i = 0; i < fixture_run_list.n; i++)
			assert_int_equal(fixture_run_list.runs[i]->bucket_starts != NULL,
					 has_buckets);
		chunk_pool_trim(job.chunk_pool);
		job.plan_request.n_partitions = job.plan.n_partitions = n_partitions;
		check_merged_output(ledger.dropped, NULL);
		assert_int_equal(fixture_n_partitions, n_partitions);
		close_input();
		free(input_records);
		input_records = NULL;
	}
}

FIXTURE_TEST(merge_sorts_buckets)
{
	n_buckets = 40;
	check_buckets("u64", random_number, 150007, true);
	check_buckets("u128", random_number, 70007, true);
}

/* The CPU back end, whose first sort fails. */
static bool has_failed;

static int fail_first_sort(struct device_queue *queue, const struct sort_op *op)
{
	if (has_failed)
		return backend_cpu.ops_by_layout[op->layout->kind]->sort(queue, op);
	has_failed = true;
	return -EIO;
}

FIXTURE_TEST(sample_that_cannot_be_sorted_is_reported)
{
	struct backend backend = backend_cpu;
	const struct backend_layout_ops *all_ops[N_LAYOUT_KINDS];
	struct backend_layout_ops ops;

	n_buckets = 40;
	has_failed = false;
	make_input("u64", false, FIXTURE_UNIFIED_MEMORY, random_number, 150007);
	ops = *backend_cpu.ops_by_layout[layout.kind];
	ops.sort = fail_first_sort;
	memcpy(all_ops, backend_cpu.ops_by_layout, sizeof all_ops);
	all_ops[layout.kind] = &ops;
	backend.ops_by_layout = all_ops;
	job_device(&job)->backend = &backend;
	open_file();
	assert_int_equal(generate_test_runs(), -EIO);
	assert_non_null(strstr(captured_messages_error(), "cannot sort a sample"));
	close_input();
}

static encoded_key_t ascending(uint64_t i)
{
	return i / 2;
}

FIXTURE_TEST(ordered_keys_are_not_distributed)
{
	n_buckets = 40;
	check_buckets("u64", ascending, 150007, false);
}

FIXTURE_TEST(frequent_keys_are_not_distributed)
{
	n_buckets = 4000;
	check_buckets("u64", few_numbers, 150007, false);
}

/* Of the keys, half are equal; but not where samples of 512 are taken at 256 places. */
static encoded_key_t frequent_between_samples(uint64_t i)
{
	enum { N = 300000, DISTANCE = (N - 512) / 255 };

	return i % DISTANCE > DISTANCE - 500 ? 12345 : random_number(i);
}

FIXTURE_TEST(chunks_are_sorted_if_a_bucket_is_too_large)
{
	n_buckets = 40;
	check_buckets("u64", frequent_between_samples, 300000, false);
}

static encoded_key_t with_duplicates(uint64_t i)
{
	return scramble(i, 3) % 1000000;
}

/*
 * Check that each device sorted and merged, and how it read from the others. reach: by peer access;
 * otherwise through the host.
 */
static void check_device_totals(const struct stats *stats, bool reach)
{
	struct stats_totals totals;
	uint64_t n_nbytes = 0, n_chunks = 0;

	stats_get_totals((struct stats *)stats, &totals);
	for (uint32_t i = 0; i < job.n_devices; i++) {
		const struct device_totals *device = &totals.devices[i];

		assert_true(device->n_chunks > 0 && device->n_partitions > 0);
		assert_int_equal(device->peer_read_nbytes > 0, reach);
		assert_int_equal(device->staged_read_nbytes > 0, !reach);
		n_nbytes += device->sorted_nbytes;
		n_chunks += device->n_chunks;
	}
	assert_int_equal(n_nbytes, input_nbytes);
	assert_in_range(n_chunks, input_nbytes / job.plan.chunk_nbytes,
			2 * input_nbytes / job.plan.chunk_nbytes);
	assert_int_equal(totals.devices[job.n_devices].n_chunks, 0);
}

/* Check that all devices merge the spilled runs. */
static void check_spills(const char *type, bool unique, enum fixture_memory memory, bool reach)
{
	const size_t n = 90001 + 60000 * fixture_n_devices;
	struct stats *stats;

	separate_memory_set_devices(1, reach);
	make_input(type, unique, memory, with_duplicates, n);
	assert_int_equal(stats_open(NULL, NULL, &stats), 0);
	job.stats = stats;
	open_file();
	assert_int_equal(generate_test_runs(), 0);
	assert_true(run_list_n_spilled(&fixture_run_list) > 0);
	for (uint32_t i = 0; i < job.n_devices; i++)
		assert_true(separate_memory_n_merges(job.devices[i].device) > 0);
	check_device_totals(stats, reach);
	chunk_pool_trim(job.chunk_pool);
	check_merged_output(ledger.dropped, NULL);
	close_input();
	stats_close(stats);
	free(input_records);
	input_records = NULL;
}

/* A race of two devices occurs with three, too. */
enum { MIN_TEST_DEVICES = FOR_RACES_ONLY ? 3 : 2 };

FIXTURE_TEST(several_devices_merge_spilled_runs)
{
	fixture_n_devices = MIN_TEST_DEVICES;
	if (fixture_n_devices == 2) {
		check_spills("u64", false, FIXTURE_PACKING_MEMORY, true);
		check_spills("b8", true, FIXTURE_SEPARATE_MEMORY, false);
	}
	fixture_n_devices = 3;
	check_spills("u128", true, FIXTURE_PACKING_MEMORY, false);
}

/* Check that each device holds a run, and no more runs than it has chunks. */
static void check_balance(void)
{
	size_t n[FIXTURE_MAX_DEVICES] = { 0 };

	for (size_t i = 0; i < fixture_run_list.n; i++)
		n[fixture_run_list.runs[i]->device_index]++;
	for (uint32_t i = 0; i < job.n_devices; i++)
		assert_in_range(n[i], 1, job.plan.n_chunks / job.n_devices);
}

FIXTURE_TEST(several_devices_hold_more_than_one)
{
	enum { N = 250000, EACH_NBYTES = 2 << 20 };

	for (fixture_n_devices = FOR_RACES_ONLY ? 3 : 1; fixture_n_devices <= 3;
	     fixture_n_devices += 2) {
		make_input("u64", false, FIXTURE_SEPARATE_MEMORY, random_number, N);
		job.device_info.memory_nbytes = EACH_NBYTES;
		open_file();
		check_runs();
		assert_int_equal(job.plan.fits_in_memory, fixture_n_devices > 1);
		if (job.plan.fits_in_memory) {
			assert_int_equal(run_list_n_spilled(&fixture_run_list), 0);
			check_balance();
		}
		close_input();
		free(input_records);
		input_records = NULL;
	}
}

FIXTURE_TEST(chunk_is_acquired_from_the_idlest_device)
{
	static const uint32_t in_turn[] = { 0, 1, 0, 1 };
	struct chunk *chunks[4], *next;

	fixture_n_devices = 2;
	make_input("u64", false, FIXTURE_SEPARATE_MEMORY, random_number, 100000);
	open_file();
	for (int i = 0; i < 4; i++) {
		assert_int_equal(chunk_pool_acquire(job.chunk_pool, &chunks[i]), 0);
		assert_int_equal(chunks[i]->device_index, in_turn[i]);
	}
	/* Sorted chunks are not pending, although they are not free. */
	assert_int_equal(chunk_pool_collect(chunks[1]), 0);
	chunks[3]->sort_result.n_disorders = 1; /* must not be merged */
	assert_int_equal(chunk_pool_collect(chunks[3]), -EIO);
	assert_int_equal(chunk_pool_acquire(job.chunk_pool, &next), 0);
	assert_int_equal(next->device_index, 1);
	chunk_pool_release(next);
	for (int i = 0; i < 4; i++)
		chunk_pool_release(chunks[i]);
	close_input();
}

static void *write_into_pipe(void *argument)
{
	FILE *file = fopen(argument, "w");

	if (!file || fwrite(input_records, 1, input_nbytes, file) != input_nbytes)
		abort();
	fclose(file);
	return NULL;
}

/* max_stored_blocks: that the index has room for; 0: as planned. */
static void check_pipe(enum fixture_memory memory, size_t n, bool spills,
		       uint64_t max_stored_blocks)
{
	const char *path = fixture_path("pipe");
	pthread_t writer;

	make_input("u64", false, memory, random_number, n);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pthread_create(&writer, NULL, write_into_pipe, (void *)path), 0);
	open_input(path);
	assert_int_equal(job.plan.input_nbytes, PLAN_SIZE_UNKNOWN);
	if (max_stored_blocks) {
		job.plan.max_stored_blocks = max_stored_blocks;
		job.plan.fan_in = 8;
	}
	check_runs();
	assert_true((run_list_n_spilled(&fixture_run_list) > 0) == spills);
	assert_int_equal(job.plan.block_nbytes,
			 max_stored_blocks ? 4 * FIXTURE_BLOCK_NBYTES : FIXTURE_BLOCK_NBYTES);
	pthread_join(writer, NULL);
	close_input();
	unlink(path);
	free(input_records);
	input_records = NULL;
}

/* The end of the input shows only when a chunk after the last one is read. */
FIXTURE_TEST(pipe_may_end_with_a_chunk)
{
	for (int memory = FIXTURE_UNIFIED_MEMORY; memory <= FIXTURE_PACKING_MEMORY; memory++) {
		uint64_t chunk_records;

		job_start("u64", false, (enum fixture_memory)memory);
		chunk_records = job.plan.chunk_records;
		job_stop();
		check_pipe((enum fixture_memory)memory, 3 * chunk_records, false, 0);
		check_pipe((enum fixture_memory)memory, 25 * chunk_records, true, 0);
	}
}

/* A third of the blocks that the pipe needs have room. */
FIXTURE_TEST(long_pipe_gets_longer_blocks)
{
	const size_t n = 80000;

	for (int memory = FIXTURE_UNIFIED_MEMORY; memory <= FIXTURE_PACKING_MEMORY; memory++)
		check_pipe((enum fixture_memory)memory, n, true,
			   n * sizeof(uint64_t) / FIXTURE_BLOCK_NBYTES / 3);
}
