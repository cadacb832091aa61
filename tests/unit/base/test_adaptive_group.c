/*
 * test_adaptive_group - all go one way at a time, and in the end the fastest
 */
#include "src/base/adaptive.h"

#include <stdbool.h>

#include "tests/support/unit_test.h"

enum { WRITE_NBYTES = 4 << 20, N_GROUP_WRITES = 20000 };
static const unsigned both_methods = METHOD_MASK_DEFAULT | METHOD_MASK_THIRD;

/* Some writes, one after the other, that take so long each way; how many went the third. */
static unsigned write_many(struct adaptive_group *group, unsigned n, const uint64_t ns[N_METHODS],
			   uint64_t *now_ns)
{
	unsigned n_third = 0;

	for (unsigned i = 0; i < n; i++) {
		const enum adaptive_method method =
			adaptive_group_choose(group, both_methods, *now_ns);

		*now_ns += ns[method];
		n_third += method == METHOD_THIRD;
		adaptive_group_record(group, method, WRITE_NBYTES, *now_ns);
	}
	return n_third;
}

static void all_threads_use_one_method(void **state)
{
	struct adaptive_group group;

	(void)state;
	adaptive_group_init(&group);
	for (int i = 0; i < 100; i++)
		assert_int_equal(adaptive_group_choose(&group, both_methods, 1 + i), METHOD_THIRD);
	adaptive_group_destroy(&group);
}

static void fastest_method_is_used(void **state)
{
	static const uint64_t third_is_fast[N_METHODS] = { 4000000, 1, 1000000 },
			      third_is_slow[N_METHODS] = { 1000000, 1, 4000000 };
	struct adaptive_group group;
	uint64_t now_ns = 1;

	(void)state;
	adaptive_group_init(&group);
	assert_true(write_many(&group, N_GROUP_WRITES, third_is_fast, &now_ns) >
		    N_GROUP_WRITES / 100 * 98);
	assert_true(write_many(&group, N_GROUP_WRITES, third_is_slow, &now_ns) <
		    N_GROUP_WRITES / 100 * 10);
	assert_true(write_many(&group, N_GROUP_WRITES, third_is_slow, &now_ns) <
		    N_GROUP_WRITES / 100 * 2);
	assert_true(write_many(&group, N_GROUP_WRITES, third_is_fast, &now_ns) >
		    N_GROUP_WRITES / 100 * 90);
	adaptive_group_destroy(&group);
}

/* The first of the others is tried when it was a while, and taken if it is faster after all. */
static void default_is_not_compared_at_once(void **state)
{
	static const uint64_t third_is_fast[N_METHODS] = { 4000000, 1, 1000000 },
			      third_is_slow[N_METHODS] = { 1000000, 1, 4000000 };
	enum { GIB_WRITES = (1 << 30) / WRITE_NBYTES };
	struct adaptive_group group;
	uint64_t now_ns = 1;

	(void)state;
	adaptive_group_init(&group);
	adaptive_group_set_default(&group, METHOD_MASK_THIRD);
	assert_int_equal(write_many(&group, 8 * GIB_WRITES, third_is_fast, &now_ns),
			 8 * GIB_WRITES);
	assert_true(write_many(&group, N_GROUP_WRITES, third_is_slow, &now_ns) <
		    N_GROUP_WRITES / 100 * 50);
	adaptive_group_destroy(&group);

	adaptive_group_init(&group);
	adaptive_group_set_default(&group, METHOD_MASK_THIRD);
	adaptive_group_set_default(&group, 0);
	assert_true(write_many(&group, 8 * GIB_WRITES, third_is_slow, &now_ns) < 2 * GIB_WRITES);
	adaptive_group_set_default(&group, METHOD_MASK_SECOND); /* which is not possible */
	assert_true(write_many(&group, 8 * GIB_WRITES, third_is_slow, &now_ns) < 2 * GIB_WRITES);
	adaptive_group_destroy(&group);
}

/* What was begun another way does not count for the one that is gone now. */
static void other_methods_writes_are_not_timed(void **state)
{
	struct adaptive_group group;

	(void)state;
	adaptive_group_init(&group);
	assert_int_equal(adaptive_group_choose(&group, both_methods, 1), METHOD_THIRD);
	adaptive_group_record(&group, METHOD_DEFAULT, UINT64_C(1) << 40, 2);
	assert_int_equal(adaptive_group_choose(&group, both_methods, 3), METHOD_THIRD);
	adaptive_group_record(&group, METHOD_THIRD, UINT64_C(1) << 40, 1000);
	assert_int_equal(adaptive_group_choose(&group, both_methods, 1001), METHOD_THIRD);
	adaptive_group_record(&group, METHOD_THIRD, UINT64_C(1) << 40, 2000);
	assert_int_equal(adaptive_group_choose(&group, both_methods, 2001), METHOD_DEFAULT);
	adaptive_group_destroy(&group);
}

static void unavailable_is_not_used(void **state)
{
	struct adaptive_group group;

	(void)state;
	adaptive_group_init(&group);
	assert_int_equal(adaptive_group_choose(&group, both_methods, 1), METHOD_THIRD);
	assert_int_equal(adaptive_group_choose(&group, METHOD_MASK_DEFAULT, 2), METHOD_DEFAULT);
	adaptive_group_destroy(&group);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(all_threads_use_one_method),
	cmocka_unit_test(fastest_method_is_used),
	cmocka_unit_test(default_is_not_compared_at_once),
	cmocka_unit_test(other_methods_writes_are_not_timed),
	cmocka_unit_test(unavailable_is_not_used),
};

UNIT_TESTS(adaptive_group, tests, NULL, NULL)
