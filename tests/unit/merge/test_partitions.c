/*
 * test_partitions.c - a merge in partitions gives the same bytes, for any data, tier and number of
 * partitions
 */
#include "src/merge/cuts.h"

#include "tests/support/numbered_runs.h"
#include "tests/support/open_input.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

/* Enough for the windows of all partitions. */
enum { WINDOWS_NBYTES = 64 << 20 };

static encoded_key_t few_numbers(uint64_t i, uint64_t n, uint64_t run)
{
	(void)n, (void)run;
	return i / 3000;
}

static void start_job(const char *type, enum fixture_memory memory, uint32_t n_partitions)
{
	job_start(type, false, memory);
	job.plan_request.n_partitions = job.plan.n_partitions = n_partitions;
	fixture_windows_nbytes = WINDOWS_NBYTES;
}

/* A race shows with most numbers of partitions, and a race of two devices with three, too. */
enum { FIRST_NUMBER = FOR_RACES_ONLY ? 2 : 0, MIN_TEST_DEVICES = FOR_RACES_ONLY ? 3 : 2 };

static void check_type(const char *type, enum fixture_memory memory, number_fn *number,
		       uint64_t n_runs, uint64_t n)
{
	static const uint32_t n_partitions[] = { 2, 3, 8 };

	for (int tiers = 0; tiers < N_TIER_MIXES; tiers++)
		for (unsigned i = FIRST_NUMBER; i < sizeof n_partitions / sizeof *n_partitions;
		     i++) {
			start_job(type, memory, n_partitions[i]);
			for (uint64_t run = 0; run < n_runs; run++)
				add_numbered_run(tier_of((enum tier_mix)tiers, run), number,
						 n + run, run);
			check_merged_output((struct digest){ 0 }, NULL);
			if (fixture_n_keys >= LONG_RUN)
				assert_int_equal(fixture_n_partitions, n_partitions[i]);
			job_stop();
		}
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

/* A partition begins and ends within blocks; the device unpacks only whole ones. */
FIXTURE_TEST(unpacked_runs_are_merged_in_partitions)
{
	check_type("u64", FIXTURE_PACKING_MEMORY, random_number, 5, LONG_RUN);
	check_type("u32", FIXTURE_PACKING_MEMORY, few_numbers, 3, LONG_RUN);
	check_type("u128", FIXTURE_PACKING_MEMORY, one_number, 3, LONG_RUN);
}

/* Resident runs are spread over the devices; none may touch the memory of another. */
static void check_devices(const char *type, enum fixture_memory memory, bool reach,
			  number_fn *number)
{
	static const uint32_t n_partitions[] = { 1, 2, 5 };

	separate_memory_set_devices(1, reach);
	for (fixture_n_devices = MIN_TEST_DEVICES; fixture_n_devices <= 3; fixture_n_devices++)
		for (int tiers = 0; tiers < N_TIER_MIXES; tiers++)
			for (unsigned i = FIRST_NUMBER;
			     i < sizeof n_partitions / sizeof *n_partitions; i++) {
				start_job(type, memory, n_partitions[i]);
				for (uint64_t run = 0; run < 5; run++)
					add_numbered_run(tier_of((enum tier_mix)tiers, run), number,
							 LONG_RUN, run);
				check_merged_output((struct digest){ 0 }, NULL);
				assert_int_equal(fixture_n_partitions, n_partitions[i]);
				job_stop();
			}
	fixture_n_devices = 1;
	separate_memory_set_devices(1, false);
}

FIXTURE_TEST(bytes_do_not_depend_on_the_number_of_devices)
{
	const unsigned long n_reached = separate_memory_n_peer_reads();

	check_devices("u64", FIXTURE_SEPARATE_MEMORY, false, random_number);
	check_devices("b5", FIXTURE_SEPARATE_MEMORY, false, few_numbers);
	check_devices("u32", FIXTURE_PACKING_MEMORY, false, random_number);
	assert_int_equal(separate_memory_n_peer_reads(), n_reached);
}

FIXTURE_TEST(peer_accessible_runs_are_merged_in_place)
{
	const unsigned long n_reached = separate_memory_n_peer_reads();

	check_devices("f64be", FIXTURE_SEPARATE_MEMORY, true, random_number);
	check_devices("u128", FIXTURE_PACKING_MEMORY, true, one_number);
	assert_true(separate_memory_n_peer_reads() > n_reached);
}

static encoded_key_t code_at(const struct run *run, uint64_t i)
{
	return element_get(run->memory, layout.element_nbytes, i);
}

/*
 * Check that no item lies in the wrong partition. at_keys: equal items are in one partition,
 * whatever their runs; otherwise partitions have the same length.
 */
static void check_cuts(number_fn *number, uint32_t n_partitions, bool at_keys)
{
	enum { N_RUNS = 5 };
	uint64_t cuts[9 * N_RUNS], n_each;
	encoded_key_t max = 0;

	start_job("u64", FIXTURE_UNIFIED_MEMORY, n_partitions);
	for (uint64_t run = 0; run < N_RUNS; run++)
		add_numbered_run(TIER_RESIDENT, number, LONG_RUN, run);
	assert_int_equal(cuts_make(NULL, &job, fixture_run_list.runs, N_RUNS,
				   &(struct splitter_params){ n_partitions, job.limit, at_keys },
				   cuts),
			 0);
	n_each = fixture_n_keys / n_partitions;
	for (uint32_t partition = 0; partition < n_partitions; partition++) {
		encoded_key_t highest = max;
		uint64_t n = 0;

		for (uint32_t i = 0; i < N_RUNS; i++) {
			const uint64_t begin = cuts[partition * N_RUNS + i];
			const uint64_t end = cuts[(partition + 1) * N_RUNS + i];
			encoded_key_t first;

			assert_true(begin <= end);
			n += end - begin;
			if (begin == end)
				continue;
			first = code_at(fixture_run_list.runs[i], begin);
			assert_true(at_keys && cuts[partition * N_RUNS] > 0 ? first > max :
									      first >= max);
			if (code_at(fixture_run_list.runs[i], end - 1) > highest)
				highest = code_at(fixture_run_list.runs[i], end - 1);
		}
		max = highest;
		if (!at_keys)
			assert_in_range(n, n_each - n_each / 20, n_each + n_each / 20);
	}
	job_stop();
}

FIXTURE_TEST(partitions_have_the_same_length)
{
	check_cuts(random_number, 2, false);
	check_cuts(random_number, 8, false);
	check_cuts(descending_runs, 3, false);
}

FIXTURE_TEST(a_single_key_is_divided_evenly)
{
	check_cuts(one_number, 4, false);
	check_cuts(few_numbers, 4, false);
}

FIXTURE_TEST(partitions_at_keys_split_no_key)
{
	check_cuts(few_numbers, 8, true);
	check_cuts(random_number, 8, true);
	check_cuts(one_number, 8, true);
}

FIXTURE_TEST(cuts_that_cannot_read_fail)
{
	const struct splitter_params params = { 2, UINT64_MAX, false };
	uint64_t cuts[3 * 2];

	start_job("u64", FIXTURE_UNIFIED_MEMORY, 2);
	for (uint64_t run = 0; run < 2; run++)
		add_numbered_run(TIER_SPILLED, random_number, 3000, run);
	faults.transfer_errno = EIO;
	assert_int_equal(cuts_make(NULL, &job, fixture_run_list.runs, 2, &params, cuts), -EIO);
	assert_int_equal(cuts_after_items(&layout, fixture_run_list.runs, 2, 9, false, cuts), -EIO);
	faults.transfer_errno = 0;
	job_stop();
}

/* A subrun of a run is like a whole run with the items from `begin` to `end`. */
static void check_subrun(enum tier tier, uint64_t begin, uint64_t end)
{
	struct run *whole, *subrun;

	start_job("u64", FIXTURE_UNIFIED_MEMORY, 1);
	add_numbered_run(tier, random_number, 3000, 0);
	whole = fixture_run_list.runs[0];
	assert_int_equal(run_open_subrun(&layout, whole, begin, end, &subrun), 0);
	fixture_run_list.runs[0] = subrun;
	memmove(fixture_keys, fixture_keys + begin, (end - begin) * sizeof *fixture_keys);
	fixture_n_keys = end - begin;
	assert_int_equal(subrun->n_items, fixture_n_keys);
	if (tier == TIER_SPILLED) {
		assert_true(run_first_key(subrun, 0) == fixture_keys[0]);
		assert_true(run_block_start(subrun, subrun->n_blocks) == fixture_n_keys);
	}
	check_merged_output((struct digest){ 0 }, NULL);
	run_close(subrun);
	fixture_run_list.runs[0] = whole;
	job_stop();
}

/* Blocks have 512 items. */
FIXTURE_TEST(a_subrun_is_a_run)
{
	static const uint64_t ends[][2] = { { 0, 1 },      { 0, 512 },     { 511, 512 },
					    { 511, 513 },  { 512, 1024 },  { 700, 800 },
					    { 700, 2999 }, { 2999, 3000 }, { 0, 3000 } };

	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
		check_subrun(TIER_RESIDENT, ends[i][0], ends[i][1]);
		check_subrun(TIER_SPILLED, ends[i][0], ends[i][1]);
	}
}

/* Read all items of the subrun, which frees its space meanwhile. */
static void read_through(struct run *subrun, uint64_t begin)
{
	struct digest digest = { 0 };

	for (uint64_t i = 0; i < subrun->n_blocks; i++) {
		const uint64_t n = run_block_start(subrun, i + 1) - run_block_start(subrun, i);
		uint64_t *items = malloc(n * sizeof *items);

		assert_non_null(items);
		assert_int_equal(run_read(subrun, i, 1, items, &digest), 0);
		for (uint64_t j = 0; j < n; j++)
			assert_true(items[j] ==
				    fixture_keys[begin + run_block_start(subrun, i) + j]);
		run_discard_before(subrun, i + 1);
		free(items);
	}
}

/* Blocks share pages. Each subrun ends at a block or within one, in which the next begins. */
static void check_discards(uint32_t block_n_items)
{
	encoded_key_t *codes = malloc(9000 * sizeof *codes);
	struct run *parts[3];

	assert_non_null(codes);
	start_job("u64", FIXTURE_UNIFIED_MEMORY, 1);
	for (uint64_t i = 0; i < 9000; i++)
		codes[i] = i;
	fixture_add_keys(codes, 9000);
	assert_int_equal(run_list_add(&fixture_run_list,
				      make_spilled_run_in_blocks(codes, 9000, block_n_items)),
			 0);
	free(codes);
	for (uint64_t i = 0; i < 3; i++)
		assert_int_equal(run_open_subrun(&layout, fixture_run_list.runs[0], i * 3000,
						 (i + 1) * 3000, &parts[i]),
				 0);
	read_through(parts[1], 3000);
	read_through(parts[2], 6000);
	read_through(parts[0], 0);
	for (uint64_t i = 0; i < 3; i++)
		run_close(parts[i]);
	assert_in_range(spill_used_nbytes(job.spill), 1, 6 * 4096);
	run_list_free(&fixture_run_list);
	assert_int_equal(spill_used_nbytes(job.spill), 0);
	job_stop();
}

FIXTURE_TEST(a_subrun_keeps_shared_blocks)
{
	check_discards(100);
	check_discards(113);
	check_discards(512);
}

/* Record number 100 of the file, from 1, is smaller than the one before it. A block ends there. */
static struct run *open_unsorted(void)
{
	static const char *path;
	const struct sort_spec spec = SORT_SPEC_DEFAULTS;
	struct input_runs *inputs;
	uint64_t numbers[1000];
	struct digest read;

	for (uint64_t i = 0; i < 1000; i++)
		numbers[i] = i == 99 ? 2 * 98 - 1 : 2 * i;
	path = fixture_path("unsorted");
	write_file(path, numbers, sizeof numbers);
	job.plan.block_nbytes = 33 * sizeof(uint64_t);
	assert_int_equal(input_open(&faulty_calls, &path, 1, 8, &job.input), 0);
	assert_int_equal(input_runs_open(&job, &spec, &fixture_run_list, &read, &inputs), 0);
	return fixture_run_list.runs[0];
}

/* Read all blocks, one by one. Returns 0 or the error. */
static int read_blocks(struct run *run)
{
	struct digest digest = { 0 };
	uint64_t items[33];
	int r = 0;

	for (uint64_t block = 0; block < run->n_blocks && r == 0; block++)
		r = run_read(run, block, 1, items, &digest);
	return r;
}

/* Wherever the run is cut: between the two records, too. */
FIXTURE_TEST(disorder_between_subruns_is_found)
{
	for (uint64_t cut = 98; cut <= 101; cut++) {
		struct run *parts[2], *run;
		struct input *input;
		int r;

		start_job("u64", FIXTURE_UNIFIED_MEMORY, 1);
		run = open_unsorted();
		assert_int_equal(run_open_subrun(&layout, run, 0, cut, &parts[0]), 0);
		assert_int_equal(run_open_subrun(&layout, run, cut, 1000, &parts[1]), 0);
		r = read_blocks(parts[0]);
		assert_int_equal(r, cut > 99 ? -EINVAL : 0);
		if (r == 0)
			r = read_blocks(parts[1]);
		assert_int_equal(r, -EINVAL);
		assert_non_null(strstr(captured_messages_error(), "record 100: disorder"));
		run_close(parts[0]);
		run_close(parts[1]);
		input = job.input;
		job_stop();
		input_close(input);
		captured_messages_reset(true);
	}
}

/* Resident runs that are sorted except for the last item of the first partition. */
FIXTURE_TEST(disorder_between_partitions_is_counted)
{
	struct recorded_output output = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .failing_window = UINT64_MAX };
	struct merge_result result;
	encoded_key_t *codes = malloc(LONG_RUN * sizeof *codes);

	start_job("u64", FIXTURE_UNIFIED_MEMORY, 4);
	for (uint64_t i = 0; i < LONG_RUN; i++)
		codes[i] = LONG_RUN - i;
	assert_int_equal(run_list_add(&fixture_run_list, make_resident_run(codes, LONG_RUN)), 0);
	assert_int_equal(merge_fixture_runs(&output, &result), 0);
	assert_int_equal(fixture_n_partitions, 4);
	assert_int_equal(result.n_disorders, LONG_RUN - 1);
	free(codes);
	free(output.records);
}

FIXTURE_TEST(a_failed_partition_ends_the_merge)
{
	struct recorded_output output = { .lock = PTHREAD_MUTEX_INITIALIZER, .failing_window = 1 };
	struct merge_result result;

	start_job("u64", FIXTURE_UNIFIED_MEMORY, 3);
	for (uint64_t run = 0; run < 5; run++)
		add_numbered_run(tier_of(TIERS_MIXED, run), random_number, LONG_RUN, run);
	assert_int_equal(merge_fixture_runs(&output, &result), -EDOM);
	assert_true(output.cancelled);
	free(output.records);
}

FIXTURE_TEST(partitions_are_limited_by_memory)
{
	struct recorded_output output = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .failing_window = UINT64_MAX };
	struct merge_result result;

	start_job("u64", FIXTURE_UNIFIED_MEMORY, 8);
	fixture_windows_nbytes = 1 << 20;
	for (uint64_t run = 0; run < 20; run++)
		add_numbered_run(TIER_SPILLED, random_number, LONG_RUN, run);
	assert_int_equal(merge_fixture_runs(&output, &result), 0);
	assert_int_equal(fixture_n_partitions, 1);
	free(output.records);
}
