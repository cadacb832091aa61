/*
 * test_merge_windows.c - windows as sinks get them, what is discarded after them, and errors
 */
#include "tests/support/numbered_runs.h"
#include "tests/support/race.h"
#include "tests/support/reference_sort.h"
#include "tests/support/unit_test.h"

/* A sink that is a stored run: it takes elements and wants the first keys of its blocks. */
static int check_first_keys(void *context, const struct merged_window *merged)
{
	const uint32_t block_n_items = *(const uint32_t *)context;

	for (uint64_t i = 0; i < merged->n_items; i += block_n_items)
		if (merged->first_keys[i / block_n_items] !=
		    element_get(merged->items, layout.element_nbytes, i))
			return -EDOM;
	return 0;
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(first_keys_of_blocks_are_those_of_the_items)
{
	uint32_t block_n_items = 512;
	struct merge_result result;

	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	for (uint64_t run = 0; run < 4; run++)
		add_numbered_run(tier_of(TIERS_MIXED, run), random_number, LONG_RUN, run);
	assert_int_equal(merge_runs(&job, fixture_run_list.runs, 4, 0,
				    &(struct sink){ .context = &block_n_items,
						    .block_n_items = block_n_items,
						    .stage = STAGE_SPILL,
						    .item_nbytes = 8,
						    .write = check_first_keys },
				    &result),
			 0);
	assert_int_equal(result.n_items, 4 * LONG_RUN);
}

/* A sink that is a file written with direct I/O: is every window aligned if it can be? */
struct aligned_sink {
	struct recorded_output output; /* first member: passed to write_output() */
	uint64_t base;
	atomic_uint n_windows;
};

static int check_alignment(void *context, const struct merged_window *merged)
{
	struct aligned_sink *sink = context;
	const uint64_t offset = sink->base + merged->position * layout.record_nbytes;

	if (((uintptr_t)merged->items - offset) % 4096 != 0)
		return -EDOM;
	sink->n_windows++;
	return recorded_output_write(&sink->output, merged);
}

static void check_windows_lie_as_the_file(enum fixture_memory memory, enum tier_mix tiers,
					  uint64_t base)
{
	struct aligned_sink aligned = {
		.output = { .lock = PTHREAD_MUTEX_INITIALIZER, .failing_window = UINT64_MAX },
		.base = base,
	};
	const struct sink sink = {
		.context = &aligned,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = 8,
		.align_nbytes = 4096,
		.base_offset = base,
		.write = check_alignment,
		.cancel = recorded_output_cancel,
	};
	struct merge_result result;

	job_start("u64", false, memory);
	for (uint64_t run = 0; run < 4; run++)
		add_numbered_run(tier_of(tiers, run), random_number, LONG_RUN + run, run);
	assert_int_equal(merge_runs(&job, fixture_run_list.runs, 4, 0, &sink, &result), 0);
	reference_sort_16(fixture_keys, fixture_n_keys);
	for (size_t i = 0; i < fixture_n_keys; i++)
		assert_true(element_get(aligned.output.records, 8, i) == fixture_keys[i]);
	assert_true(aligned.n_windows >= 3);
	free(aligned.output.records);
	job_stop();
}

FIXTURE_TEST(windows_lie_in_memory_as_in_a_file_that_asks_for_it)
{
	for (int tiers = 0; tiers < N_TIER_MIXES; tiers++) {
		check_windows_lie_as_the_file(FIXTURE_UNIFIED_MEMORY, (enum tier_mix)tiers, 0);
		check_windows_lie_as_the_file(FIXTURE_UNIFIED_MEMORY, (enum tier_mix)tiers, 1000);
		check_windows_lie_as_the_file(FIXTURE_SEPARATE_MEMORY, (enum tier_mix)tiers, 13);
	}
}

/* The CPU back end, but discarded memory is overwritten at once. */
static struct backend backend_overwriting;
static atomic_uint_fast64_t n_overwritten_nbytes;

static void overwrite(struct device *device, void *memory, size_t nbytes)
{
	(void)device;
	memset(memory, 0xa5, nbytes);
	n_overwritten_nbytes += nbytes;
}

enum { N_LARGE_RUNS = 3, LARGE_RUN_N = FOR_RACES_ONLY ? 300000 : 700000 };

/* Add resident runs of several huge pages, whose discarded memory is overwritten. */
static void add_large_runs(void)
{
	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	backend_overwriting = backend_cpu;
	backend_overwriting.discard = overwrite;
	job_device(&job)->backend = &backend_overwriting;
	n_overwritten_nbytes = 0;
	for (uint64_t run = 0; run < N_LARGE_RUNS; run++)
		add_numbered_run(TIER_RESIDENT, random_number, LARGE_RUN_N, run);
}

FIXTURE_TEST(memory_of_runs_goes_back_when_windows_have_passed)
{
	enum { RUN_NBYTES = 8 * LARGE_RUN_N, HUGE_PAGE_NBYTES = 2 << 20 };
	uint64_t n_windows;

	add_large_runs();
	check_merged_output((struct digest){ 0 }, &n_windows);
	assert_int_equal(n_overwritten_nbytes,
			 N_LARGE_RUNS * (RUN_NBYTES - RUN_NBYTES % HUGE_PAGE_NBYTES));
}

/* The next chunks need the memory. */
FIXTURE_TEST(memory_of_runs_that_are_spilled_is_kept)
{
	struct record_totals totals = { 0 };

	add_large_runs();
	assert_int_equal(merge_to_run(&job, &fixture_run_list, 0, N_LARGE_RUNS, 0, &totals), 0);
	assert_int_equal(fixture_run_list.n, 1);
	assert_int_equal(n_overwritten_nbytes, 0);
}
