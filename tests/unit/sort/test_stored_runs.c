/*
 * test_stored_runs - where the last runs of a rank are stored, for the other ranks to read
 */
#include "io/spill/memory_tier.h"
#include "src/sort/sort_internal.h"

#include "tests/support/job_fixture.h"
#include "tests/support/unit_test.h"

enum { MAX_ITEMS = 3000 };

/* Store a resident run of n items, in memory or on disk. */
static void store_resident_run(size_t n, bool keeps_in_memory)
{
	const struct sort_spec spec = SORT_SPEC_DEFAULTS;
	struct sort sort = { .spec = &spec };
	encoded_key_t keys[MAX_ITEMS];

	for (uint64_t i = 0; i < n; i++)
		keys[i] = scramble(i, 1);
	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	job.plan.keep_last_run_in_memory = keeps_in_memory;
	add_run(TIER_RESIDENT, keys, n);
	sort.job = job;
	sort.runs = fixture_run_list;
	assert_int_equal(sort_store_resident_runs(&sort), 0);
	fixture_run_list = sort.runs;
	assert_int_equal(run_list_n_spilled(&fixture_run_list), 1);
	assert_true((spill_used_nbytes(job.spill) == 0) == keeps_in_memory);
	assert_true((memory_tier_used_nbytes(spill_memory(job.spill)) > 0) == keeps_in_memory);
	job_stop();
}

/* A run takes whole pages, so it can take more memory than is freed while it is merged. */
TEST_WITH(last_run_takes_no_disk_space_if_it_is_kept_in_memory, fixture_start, fixture_finish)
{
	static const size_t sizes[] = { 1, 511, 513, MAX_ITEMS };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		store_resident_run(sizes[i], true);
		store_resident_run(sizes[i], false);
	}
}
