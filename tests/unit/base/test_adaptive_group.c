/*
 * test_adaptive_group - all go one way at a time, and in the end the fastest
 */
#include "src/base/adaptive_group.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h> /* last: it makes a macro of fail */

enum { WRITE_NBYTES = 4 << 20, MANY = 20000 };
static const unsigned both = WAYS_USUAL | WAYS_THIRD;

/* Some writes, one after the other, that take so long each way; how many went the third. */
static unsigned write_many(struct ways_together *ways, unsigned n, const uint64_t ns[N_WAYS],
			   uint64_t *now_ns)
{
	unsigned n_third = 0;

	for (unsigned i = 0; i < n; i++) {
		const enum way way = ways_together_choose(ways, both, *now_ns);

		*now_ns += ns[way];
		n_third += way == WAY_THIRD;
		ways_together_note(ways, way, WRITE_NBYTES, *now_ns);
	}
	return n_third;
}

static void whoever_comes_meanwhile_goes_the_same_way(void **state)
{
	struct ways_together ways;

	(void)state;
	ways_together_init(&ways);
	for (int i = 0; i < 100; i++)
		assert_int_equal(ways_together_choose(&ways, both, 1 + i), WAY_THIRD);
	ways_together_destroy(&ways);
}

static void the_fastest_is_taken(void **state)
{
	static const uint64_t third_is_fast[N_WAYS] = { 4000000, 1, 1000000 },
			      third_is_slow[N_WAYS] = { 1000000, 1, 4000000 };
	struct ways_together ways;
	uint64_t now_ns = 1;

	(void)state;
	ways_together_init(&ways);
	assert_true(write_many(&ways, MANY, third_is_fast, &now_ns) > MANY / 100 * 98);
	assert_true(write_many(&ways, MANY, third_is_slow, &now_ns) < MANY / 100 * 10);
	assert_true(write_many(&ways, MANY, third_is_slow, &now_ns) < MANY / 100 * 2);
	assert_true(write_many(&ways, MANY, third_is_fast, &now_ns) > MANY / 100 * 90);
	ways_together_destroy(&ways);
}

/* The first of the others is tried when it was a while, and taken if it is faster after all. */
static void what_is_presumed_to_be_the_fastest_is_not_compared_at_once(void **state)
{
	static const uint64_t third_is_fast[N_WAYS] = { 4000000, 1, 1000000 },
			      third_is_slow[N_WAYS] = { 1000000, 1, 4000000 };
	enum { GIB_WRITES = (1 << 30) / WRITE_NBYTES };
	struct ways_together ways;
	uint64_t now_ns = 1;

	(void)state;
	ways_together_init(&ways);
	ways_together_presume(&ways, WAYS_THIRD);
	assert_int_equal(write_many(&ways, 8 * GIB_WRITES, third_is_fast, &now_ns), 8 * GIB_WRITES);
	assert_true(write_many(&ways, MANY, third_is_slow, &now_ns) < MANY / 100 * 50);
	ways_together_destroy(&ways);

	ways_together_init(&ways);
	ways_together_presume(&ways, WAYS_THIRD);
	ways_together_presume(&ways, 0);
	assert_true(write_many(&ways, 8 * GIB_WRITES, third_is_slow, &now_ns) < 2 * GIB_WRITES);
	ways_together_presume(&ways, WAYS_OTHER); /* which is not possible */
	assert_true(write_many(&ways, 8 * GIB_WRITES, third_is_slow, &now_ns) < 2 * GIB_WRITES);
	ways_together_destroy(&ways);
}

/* What was begun another way does not count for the one that is gone now. */
static void stragglers_of_another_way_do_not_count(void **state)
{
	struct ways_together ways;

	(void)state;
	ways_together_init(&ways);
	assert_int_equal(ways_together_choose(&ways, both, 1), WAY_THIRD);
	ways_together_note(&ways, WAY_USUAL, UINT64_C(1) << 40, 2);
	assert_int_equal(ways_together_choose(&ways, both, 3), WAY_THIRD);
	ways_together_note(&ways, WAY_THIRD, UINT64_C(1) << 40, 1000);
	assert_int_equal(ways_together_choose(&ways, both, 1001), WAY_THIRD);
	ways_together_note(&ways, WAY_THIRD, UINT64_C(1) << 40, 2000);
	assert_int_equal(ways_together_choose(&ways, both, 2001), WAY_USUAL);
	ways_together_destroy(&ways);
}

static void what_is_not_possible_is_not_gone(void **state)
{
	struct ways_together ways;

	(void)state;
	ways_together_init(&ways);
	assert_int_equal(ways_together_choose(&ways, both, 1), WAY_THIRD);
	assert_int_equal(ways_together_choose(&ways, WAYS_USUAL, 2), WAY_USUAL);
	ways_together_destroy(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whoever_comes_meanwhile_goes_the_same_way),
		cmocka_unit_test(the_fastest_is_taken),
		cmocka_unit_test(what_is_presumed_to_be_the_fastest_is_not_compared_at_once),
		cmocka_unit_test(stragglers_of_another_way_do_not_count),
		cmocka_unit_test(what_is_not_possible_is_not_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
