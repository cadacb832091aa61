/*
 * test_interval_search - of things one behind the other, that which holds a place
 */
#include "src/base/interval_search.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct thing {
	char name;
	uint64_t begin;
};

static size_t find(const struct thing *things, size_t n, uint64_t place)
{
	return begins_find(things, sizeof *things, offsetof(struct thing, begin), n, place);
}

static void every_place_is_in_the_last_that_begins_at_or_before_it(void **state)
{
	static const struct thing things[] = {
		{ 'a', 0 }, { 'b', 4 }, { 'c', 4 }, { 'd', 9 }, { 'e', UINT64_MAX },
	};

	(void)state;
	for (size_t n = 1; n <= sizeof things / sizeof things[0]; n++)
		for (uint64_t place = 0; place < 12; place++) {
			size_t expected = n - 1;

			while (things[expected].begin > place)
				expected--;
			assert_int_equal(find(things, n, place), expected);
		}
	assert_int_equal(find(things, 5, UINT64_MAX), 4);
	assert_int_equal(find(things, 5, UINT64_MAX - 1), 3);
}

static void where_none_begins_it_is_the_first(void **state)
{
	static const struct thing things[] = { { 'a', 5 }, { 'b', 6 } };

	(void)state;
	assert_int_equal(find(things, 2, 4), 0);
	assert_int_equal(find(NULL, 0, 4), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_place_is_in_the_last_that_begins_at_or_before_it),
		cmocka_unit_test(where_none_begins_it_is_the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
