/*
 * test_merge.c - any runs become one sorted sequence, whatever their data and tier
 */
#include "tests/support/numbered_runs.h"
#include "tests/support/race.h"
#include "tests/support/unit_test.h"

/* The same in every run, each a few hundred times: equal keys cross the borders of all blocks. */
static encoded_key_t few_numbers(uint64_t i, uint64_t n, uint64_t run)
{
	(void)n, (void)run;
	return i / 300;
}

static encoded_key_t shared_numbers(uint64_t i, uint64_t n, uint64_t run)
{
	(void)n;
	return i + run % 2;
}

/* Half of each run is larger than anything in the other runs. */
static encoded_key_t mostly_in_one_run(uint64_t i, uint64_t n, uint64_t run)
{
	return run == 0 && i > n / 2 ? 1000000 + i : scramble(i, run) % 1000;
}

/* The mixture has the threads of all tiers. */
enum { FIRST_TIER_MIX = FOR_RACES_ONLY ? TIERS_MIXED : 0 };

/* Merge n_runs runs of about n numbers each, in every combination of tiers. */
static void check_type(const char *type, bool unique, enum fixture_memory memory, number_fn *number,
		       uint64_t n_runs, uint64_t n)
{
	for (int tiers = FIRST_TIER_MIX; tiers < N_TIER_MIXES; tiers++) {
		uint64_t n_windows;

		job_start(type, unique, memory);
		for (uint64_t run = 0; run < n_runs; run++)
			add_numbered_run(tier_of((enum tier_mix)tiers, run), number, n + run, run);
		check_merged_output((struct digest){ 0 }, &n_windows);
		if (n_runs * n >= 3 * LONG_RUN && !unique)
			assert_true(n_windows >= 3);
		job_stop();
	}
}

/* A merge of n_runs runs of about n numbers each. */
struct merge_case {
	const char *type;
	number_fn *number;
	uint64_t n_runs, n;
};

static void check_cases(const struct merge_case *cases, size_t n, bool unique,
			enum fixture_memory memory)
{
	for (size_t i = 0; i < n; i++)
		check_type(cases[i].type, unique, memory, cases[i].number, cases[i].n_runs,
			   cases[i].n);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(runs_are_merged)
{
	static const struct merge_case cases[] = {
		{ "u64", random_number, 1, LONG_RUN },
		{ "u64", random_number, 2, 3 * LONG_RUN },
		{ "u64", random_number, 7, LONG_RUN },
		{ "u64", one_number, 5, LONG_RUN },
		{ "u64", descending_runs, 6, LONG_RUN },
		{ "u64", mostly_in_one_run, 4, LONG_RUN },
		/* The overhang of all runs together is as long as a window. */
		{ "u64", random_number, 60, 4000 },
		{ "u64", few_numbers, 60, 4000 },
		{ "u64", descending_runs, 60, 4000 },
		/* One record; 0, 1 and 2 records; many runs of one. */
		{ "u64", random_number, 1, 1 },
		{ "u64", random_number, 3, 0 },
		{ "u64", one_number, 100, 1 },
	};

	check_cases(cases, sizeof cases / sizeof cases[0], false, FIXTURE_UNIFIED_MEMORY);
}

/* Equal keys cross the edges of all blocks. */
FIXTURE_TEST(all_types_are_merged)
{
	static const char *const types[] = { "u8", "b3",    "u32", "u64", "i64",
					     "b5", "f64be", "b10", "u128" };

	for (unsigned i = 0; i < sizeof types / sizeof types[0]; i += FOR_RACES_ONLY ? 4 : 1)
		check_type(types[i], false, FIXTURE_UNIFIED_MEMORY, few_numbers, 5, LONG_RUN);
}

FIXTURE_TEST(unique_drops_what_other_runs_have_too)
{
	static const struct merge_case cases[] = {
		{ "u64", shared_numbers, 2, LONG_RUN }, { "u64", shared_numbers, 5, LONG_RUN },
		{ "u64", random_number, 5, LONG_RUN },  { "u64", few_numbers, 5, LONG_RUN },
		{ "u64", one_number, 5, 100 },          { "u64", descending_runs, 5, LONG_RUN },
		{ "b5", shared_numbers, 5, LONG_RUN },
	};

	check_cases(cases, sizeof cases / sizeof cases[0], true, FIXTURE_UNIFIED_MEMORY);
}

FIXTURE_TEST(device_memory_may_be_separate)
{
	static const struct merge_case cases[] = {
		{ "u64", random_number, 5, LONG_RUN },
		{ "b5", few_numbers, 5, LONG_RUN },
	};

	check_cases(cases, 2, false, FIXTURE_SEPARATE_MEMORY);
	check_cases(cases, 2, false, FIXTURE_PACKING_MEMORY);
	check_type("u64", true, FIXTURE_SEPARATE_MEMORY, shared_numbers, 5, LONG_RUN);
}

FIXTURE_TEST(nothing_is_merged_to_nothing)
{
	uint64_t n_windows;

	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	add_numbered_run(TIER_SPILLED, one_number, 0, 0);
	add_numbered_run(TIER_SPILLED, one_number, 0, 1);
	check_merged_output((struct digest){ 0 }, &n_windows);
	assert_int_equal(n_windows, 0);
}

/* Elements of a resident run go down at every 16th, at the borders of windows too. */
FIXTURE_TEST(every_disorder_is_counted)
{
	struct recorded_output output = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .failing_window = UINT64_MAX };
	struct merge_result result;
	encoded_key_t *codes = malloc(LONG_RUN * sizeof *codes);

	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	for (uint64_t i = 0; i < LONG_RUN; i++)
		codes[i] = LONG_RUN - i / 16 * 16 + i % 16;
	assert_int_equal(run_list_add(&fixture_run_list, make_resident_run(codes, LONG_RUN)), 0);
	assert_int_equal(merge_fixture_runs(&output, &result), 0);
	assert_true(result.n_windows > 1);
	assert_int_equal(result.n_disorders, LONG_RUN / 16 - 1);
	free(codes);
	free(output.records);
}

/* Equal neighbours are disorders with -u; here a run has some, although it must not. */
FIXTURE_TEST(equal_records_that_unique_missed_are_counted)
{
	struct recorded_output output = { .lock = PTHREAD_MUTEX_INITIALIZER,
					  .failing_window = UINT64_MAX };
	struct merge_result result;
	encoded_key_t *codes = malloc(LONG_RUN * sizeof *codes);
	struct digest accounted;

	job_start("u64", true, FIXTURE_UNIFIED_MEMORY);
	for (uint64_t i = 0; i < LONG_RUN; i++)
		codes[i] = i / 2;
	assert_int_equal(run_list_add(&fixture_run_list, make_resident_run(codes, LONG_RUN)), 0);
	assert_int_equal(merge_fixture_runs(&output, &result), 0);
	accounted = result.totals.written;
	digest_add(&accounted, result.totals.dropped);
	assert_true(digest_equal(accounted, digest_encoded_keys(codes, LONG_RUN)));
	assert_true(result.n_items + result.totals.dropped.n_records == LONG_RUN);
	free(codes);
	free(output.records);
}
