/*
 * test_cache_policy - data that is written through the page cache, around it, or adaptively
 */
#include "src/plan/job.h"

#include "tests/support/unit_test.h"

static const uint64_t small = 1 << 20, large = UINT64_C(300) << 20, huge = UINT64_C(1) << 60;

/* Make a job with a plan for this memory and input size. */
static struct job make_planned_job(uint64_t memory_nbytes, uint64_t input_nbytes, bool sorts_on_cpu)
{
	return (struct job){ .plan = { .memory_nbytes = memory_nbytes,
				       .input_nbytes = input_nbytes,
				       .sorts_on_cpu = sorts_on_cpu } };
}

TEST(files_larger_than_memory_bypass_the_cache)
{
	const struct job job = make_planned_job(small, huge, true),
			 gpu = make_planned_job(small, huge, false);

	assert_int_equal(cache_policy_choose(&job, huge), CACHE_BYPASS);
	assert_int_equal(cache_policy_choose(&gpu, huge), CACHE_BYPASS);
}

TEST(large_files_use_adaptive_io_without_a_gpu)
{
	const struct job job = make_planned_job(small, large, true),
			 gpu = make_planned_job(small, large, false);

	assert_int_equal(cache_policy_choose(&job, large), CACHE_ADAPTIVE);
	assert_int_equal(cache_policy_choose(&job, small), CACHE_USE);
	assert_int_equal(cache_policy_choose(&gpu, large), CACHE_USE);
}

TEST(a_limit_that_is_not_used_takes_nothing)
{
	const struct job known = make_planned_job(huge, small, true);
	const struct job streamed = make_planned_job(huge, PLAN_SIZE_UNKNOWN, true);

	assert_int_equal(cache_policy_choose(&known, small), CACHE_USE);
	assert_int_equal(cache_policy_choose(&streamed, small), CACHE_USE);
	assert_int_equal(cache_policy_choose(&streamed, 0), CACHE_USE);
}

/* Each has its part of the memory, as all write at the same time. */
TEST(jobs_of_a_host_share_the_page_cache)
{
	struct job job = make_planned_job(small, large, true);

	job.n_jobs_on_host = 1;
	assert_int_equal(cache_policy_choose(&job, large), CACHE_ADAPTIVE);
	job.n_jobs_on_host = 1 << 20;
	assert_int_equal(cache_policy_choose(&job, large), CACHE_BYPASS);
}
