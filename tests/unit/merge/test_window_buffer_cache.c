/*
 * test_window_buffer_cache - buffers of windows are reused by the next merge if they are large
 * enough
 */
#include "tests/support/numbered_runs.h"

#include <errno.h>

#include "src/merge/merge.h"
#include "tests/support/unit_test.h"

/* Bytes that the last merge allocated from the back end. */
static uint64_t n_allocated;

static int count_alloc(struct device *device, enum memory_kind kind, size_t nbytes,
		       void **ret_memory)
{
	n_allocated += nbytes;
	return backend_cpu.alloc(device, kind, nbytes, ret_memory);
}

static void merge_four_runs(void)
{
	struct record_totals none = { 0 };

	for (uint64_t run = 0; run < 4; run++)
		add_numbered_run(TIER_RESIDENT, random_number, LONG_RUN, run);
	n_allocated = 0;
	assert_int_equal(merge_to_run(&job, &fixture_run_list, fixture_run_list.n - 4, 4, 0, &none),
			 0);
}

/* The windows have no buffers for input, because the runs are read where they are. */
TEST_WITH(merges_of_resident_runs_take_the_planned_memory_once, start, finish)
{
	static struct backend counting; /* must outlive its queues */
	struct window_plan windows;

	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	counting = backend_cpu;
	counting.alloc = count_alloc;
	job_device(&job)->backend = &counting;
	merge_four_runs();
	plan_windows(&job.plan, &job.plan_request, 0, UINT64_C(4) * LONG_RUN, 4, 0, &windows);
	assert_int_equal(n_allocated, plan_windows_nbytes(&job.plan, &windows, false));
	merge_four_runs();
	assert_int_equal(n_allocated, 0);
}

static int no_memory(struct device *device, enum memory_kind kind, size_t nbytes, void **ret_memory)
{
	(void)device, (void)kind, (void)nbytes, (void)ret_memory;
	return -ENOMEM;
}

TEST_WITH(missing_memory_names_the_device, start, finish)
{
	static struct backend without;
	struct record_totals none = { 0 };
	struct device_info info;

	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	add_numbered_run(TIER_RESIDENT, random_number, LONG_RUN, 0);
	without = backend_cpu;
	without.alloc = no_memory;
	job_device(&job)->backend = &without;
	assert_int_equal(merge_to_run(&job, &fixture_run_list, 0, 1, 0, &none), -ENOMEM);
	device_get_info(job_device(&job), &info);
	assert_memory_equal(captured_messages_error(), info.name, strlen(info.name));
	assert_non_null(strstr(captured_messages_error(), "no memory for windows of "));
}
