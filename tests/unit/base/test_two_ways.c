/*
 * test_two_ways - the faster way is found, and found again when it has changed
 */
#include "src/base/two_ways.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h> /* last: it makes a macro of fail */

enum { WRITE_NBYTES = 8 << 20 };

/* Picoseconds that a byte takes. */
struct speeds {
	uint64_t cached_ps, direct_ps;
};

/* A write as `speeds` have it; returns its way. */
static enum way write_once(struct two_ways *ways, struct speeds speeds, uint64_t *ns)
{
	const enum way way = two_ways_choose(ways);
	const uint64_t ps = way == WAY_OTHER ? speeds.direct_ps : speeds.cached_ps;
	const uint64_t took_ns = WRITE_NBYTES * ps / 1000;

	two_ways_note(ways, way, WRITE_NBYTES, took_ns);
	*ns += took_ns;
	return way;
}

/* How many of n writes went past the cache. */
static unsigned write_many(struct two_ways *ways, struct speeds speeds, unsigned n, uint64_t *ns)
{
	unsigned n_direct = 0;

	for (unsigned i = 0; i < n; i++)
		n_direct += write_once(ways, speeds, ns) == WAY_OTHER;
	return n_direct;
}

static void each_way_is_tried_first(void **state)
{
	struct two_ways ways;

	(void)state;
	two_ways_init(&ways);
	assert_int_equal(two_ways_choose(&ways), WAY_USUAL);
	assert_int_equal(two_ways_choose(&ways), WAY_USUAL);
	assert_int_equal(two_ways_choose(&ways), WAY_OTHER);
	assert_int_equal(two_ways_choose(&ways), WAY_OTHER);
	/* Nothing is known yet, and something is chosen. */
	assert_int_equal(two_ways_choose(&ways), WAY_USUAL);
	two_ways_destroy(&ways);
}

static void all_but_trials_go_the_faster_way(void **state)
{
	static const struct speeds speeds[] = {
		{ 200, 400 }, { 400, 200 }, { 100, 10000 }, { 10000, 100 }, { 300, 300 }
	};
	enum { N_WRITES = 10000 };

	(void)state;
	for (unsigned i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
		const struct speeds s = speeds[i];
		const uint64_t best_ps = s.cached_ps < s.direct_ps ? s.cached_ps : s.direct_ps;
		const uint64_t best_ns = N_WRITES * (WRITE_NBYTES * best_ps / 1000);
		struct two_ways ways;
		uint64_t ns = 0;
		unsigned n_direct;

		two_ways_init(&ways);
		n_direct = write_many(&ways, s, N_WRITES, &ns);
		assert_true(n_direct > 2 && n_direct < N_WRITES - 2);
		assert_true(ns < best_ns + best_ns / 20);
		two_ways_destroy(&ways);
	}
}

static void a_way_that_becomes_slow_is_left(void **state)
{
	struct two_ways ways;
	uint64_t ns = 0;

	(void)state;
	two_ways_init(&ways);
	assert_true(write_many(&ways, (struct speeds){ 200, 1000 }, 1000, &ns) < 20);
	write_many(&ways, (struct speeds){ 4000, 1000 }, 20, &ns);
	assert_true(write_many(&ways, (struct speeds){ 4000, 1000 }, 100, &ns) > 95);
	two_ways_destroy(&ways);
}

static void a_way_that_becomes_fast_is_taken_again(void **state)
{
	struct two_ways ways;
	uint64_t ns = 0;

	(void)state;
	two_ways_init(&ways);
	write_many(&ways, (struct speeds){ 4000, 1000 }, 1000, &ns);
	write_many(&ways, (struct speeds){ 200, 1000 }, 2000, &ns);
	assert_true(write_many(&ways, (struct speeds){ 200, 1000 }, 100, &ns) < 5);
	two_ways_destroy(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_is_tried_first),
		cmocka_unit_test(all_but_trials_go_the_faster_way),
		cmocka_unit_test(a_way_that_becomes_slow_is_left),
		cmocka_unit_test(a_way_that_becomes_fast_is_taken_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
