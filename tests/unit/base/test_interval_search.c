/*
 * test_interval_search - find the interval that contains a position
 */
#include "src/base/int_math.h"

#include "tests/support/unit_test.h"

struct test_interval {
	char name;
	uint64_t begin;
};

static size_t find(const struct test_interval *intervals, size_t n, uint64_t position)
{
	return find_interval(intervals, sizeof *intervals, offsetof(struct test_interval, begin), n,
			     position);
}

static void every_place_is_in_the_last_that_begins_at_or_before_it(void **state)
{
	static const struct test_interval intervals[] = {
		{ 'a', 0 }, { 'b', 4 }, { 'c', 4 }, { 'd', 9 }, { 'e', UINT64_MAX },
	};

	(void)state;
	for (size_t n = 1; n <= sizeof intervals / sizeof intervals[0]; n++)
		for (uint64_t position = 0; position < 12; position++) {
			size_t expected = n - 1;

			while (intervals[expected].begin > position)
				expected--;
			assert_int_equal(find(intervals, n, position), expected);
		}
	assert_int_equal(find(intervals, 5, UINT64_MAX), 4);
	assert_int_equal(find(intervals, 5, UINT64_MAX - 1), 3);
}

static void where_none_begins_it_is_the_first(void **state)
{
	static const struct test_interval intervals[] = { { 'a', 5 }, { 'b', 6 } };

	(void)state;
	assert_int_equal(find(intervals, 2, 4), 0);
	assert_int_equal(find(NULL, 0, 4), 0);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(every_place_is_in_the_last_that_begins_at_or_before_it),
	cmocka_unit_test(where_none_begins_it_is_the_first),
};

UNIT_TESTS(interval_search, tests, NULL, NULL)
