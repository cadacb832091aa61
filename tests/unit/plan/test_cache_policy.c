/*
 * test_cache_policy - what is written through the page cache, past it, or either way
 */
#include "src/plan/cache_policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h> /* last: it makes a macro of fail */

static const uint64_t small = 1 << 20, large = UINT64_C(300) << 20, huge = UINT64_C(1) << 60;

/* A job of so much memory that is planned for an input of so many bytes. */
static struct job planned(uint64_t memory_nbytes, uint64_t input_nbytes, bool unified)
{
	return (struct job){ .plan = { .memory_nbytes = memory_nbytes,
				       .input_nbytes = input_nbytes },
			     .info = { .unified = unified } };
}

static void what_no_memory_holds_passes_by(void **state)
{
	const struct job job = planned(small, huge, true), gpu = planned(small, huge, false);

	(void)state;
	assert_int_equal(page_cache_use(&job, huge), PAGE_CACHE_IS_TOO_SMALL);
	assert_int_equal(page_cache_use(&gpu, huge), PAGE_CACHE_IS_TOO_SMALL);
}

static void what_is_large_may_pass_but_beside_a_gpu(void **state)
{
	const struct job job = planned(small, large, true), gpu = planned(small, large, false);

	(void)state;
	assert_int_equal(page_cache_use(&job, large), PAGE_CACHE_MAY_HOLD);
	assert_int_equal(page_cache_use(&job, small), PAGE_CACHE_HOLDS);
	assert_int_equal(page_cache_use(&gpu, large), PAGE_CACHE_HOLDS);
}

static void a_limit_that_is_not_used_takes_nothing(void **state)
{
	const struct job known = planned(huge, small, true);
	const struct job streamed = planned(huge, PLAN_SIZE_UNKNOWN, true);

	(void)state;
	assert_int_equal(page_cache_use(&known, small), PAGE_CACHE_HOLDS);
	assert_int_equal(page_cache_use(&streamed, small), PAGE_CACHE_HOLDS);
	assert_int_equal(page_cache_use(&streamed, 0), PAGE_CACHE_HOLDS);
}

/* Each has its part of the memory, as all write at the same time. */
static void neighbours_share_the_page_cache(void **state)
{
	struct job job = planned(small, large, true);

	(void)state;
	job.n_neighbours = 1;
	assert_int_equal(page_cache_use(&job, large), PAGE_CACHE_MAY_HOLD);
	job.n_neighbours = 1 << 20;
	assert_int_equal(page_cache_use(&job, large), PAGE_CACHE_IS_TOO_SMALL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_no_memory_holds_passes_by),
		cmocka_unit_test(what_is_large_may_pass_but_beside_a_gpu),
		cmocka_unit_test(a_limit_that_is_not_used_takes_nothing),
		cmocka_unit_test(neighbours_share_the_page_cache),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
