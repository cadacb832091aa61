/*
 * test_adaptive - the fastest way is found, and found again when it has changed
 */
#include "src/base/adaptive.h"

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
static enum way write_once(struct ways *ways, struct speeds speeds, uint64_t *ns)
{
	const enum way way = ways_choose(ways, WAYS_USUAL | WAYS_OTHER);
	const uint64_t ps = way == WAY_OTHER ? speeds.direct_ps : speeds.cached_ps;
	const uint64_t took_ns = WRITE_NBYTES * ps / 1000;

	ways_note(ways, way, WRITE_NBYTES, took_ns);
	*ns += took_ns;
	return way;
}

/* How many of n writes went past the cache. */
static unsigned write_many(struct ways *ways, struct speeds speeds, unsigned n, uint64_t *ns)
{
	unsigned n_direct = 0;

	for (unsigned i = 0; i < n; i++)
		n_direct += write_once(ways, speeds, ns) == WAY_OTHER;
	return n_direct;
}

static void each_way_is_tried_first(void **state)
{
	struct ways ways;

	(void)state;
	ways_init(&ways);
	assert_int_equal(ways_choose(&ways, WAYS_USUAL | WAYS_OTHER), WAY_USUAL);
	assert_int_equal(ways_choose(&ways, WAYS_USUAL | WAYS_OTHER), WAY_USUAL);
	assert_int_equal(ways_choose(&ways, WAYS_USUAL | WAYS_OTHER), WAY_OTHER);
	assert_int_equal(ways_choose(&ways, WAYS_USUAL | WAYS_OTHER), WAY_OTHER);
	/* Nothing is known yet, and something is chosen. */
	assert_int_equal(ways_choose(&ways, WAYS_USUAL | WAYS_OTHER), WAY_USUAL);
	ways_destroy(&ways);
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
		struct ways ways;
		uint64_t ns = 0;
		unsigned n_direct;

		ways_init(&ways);
		n_direct = write_many(&ways, s, N_WRITES, &ns);
		assert_true(n_direct > 2 && n_direct < N_WRITES - 2);
		assert_true(ns < best_ns + best_ns / 20);
		ways_destroy(&ways);
	}
}

static void a_way_that_becomes_slow_is_left(void **state)
{
	struct ways ways;
	uint64_t ns = 0;

	(void)state;
	ways_init(&ways);
	assert_true(write_many(&ways, (struct speeds){ 200, 1000 }, 1000, &ns) < 20);
	write_many(&ways, (struct speeds){ 4000, 1000 }, 20, &ns);
	assert_true(write_many(&ways, (struct speeds){ 4000, 1000 }, 100, &ns) > 95);
	ways_destroy(&ways);
}

static void a_way_that_becomes_fast_is_taken_again(void **state)
{
	struct ways ways;
	uint64_t ns = 0;

	(void)state;
	ways_init(&ways);
	write_many(&ways, (struct speeds){ 4000, 1000 }, 1000, &ns);
	write_many(&ways, (struct speeds){ 200, 1000 }, 2000, &ns);
	assert_true(write_many(&ways, (struct speeds){ 200, 1000 }, 100, &ns) < 5);
	ways_destroy(&ways);
}

/* A write of one of three ways that takes so many ns for each MiB. */
static enum way write_of_three(struct ways *ways, const uint64_t ns[static 3])
{
	const enum way way = ways_choose(ways, WAYS_USUAL | WAYS_OTHER | WAYS_THIRD);

	ways_note(ways, way, 1 << 20, ns[way]);
	return way;
}

static void the_fastest_of_three_is_found(void **state)
{
	static const uint64_t ns[][3] = { { 100, 200, 300 }, { 200, 100, 300 }, { 300, 200, 100 } };

	(void)state;
	for (unsigned fastest = 0; fastest < 3; fastest++) {
		unsigned n_of[3] = { 0 };
		struct ways ways;

		ways_init(&ways);
		for (unsigned i = 0; i < 1000; i++)
			n_of[write_of_three(&ways, ns[fastest])]++;
		for (unsigned way = 0; way < 3; way++)
			assert_true(way == fastest ? n_of[way] > 950 : n_of[way] >= 5);
		ways_destroy(&ways);
	}
}

static void what_is_not_possible_is_not_chosen(void **state)
{
	static const uint64_t ns[] = { 300, 200, 100 };
	struct ways ways;

	(void)state;
	ways_init(&ways);
	for (unsigned i = 0; i < 100; i++)
		write_of_three(&ways, ns);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(ways_choose(&ways, WAYS_USUAL), WAY_USUAL);
		assert_int_not_equal(ways_choose(&ways, WAYS_USUAL | WAYS_OTHER), WAY_THIRD);
	}
	ways_destroy(&ways);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_way_is_tried_first),
		cmocka_unit_test(all_but_trials_go_the_faster_way),
		cmocka_unit_test(a_way_that_becomes_slow_is_left),
		cmocka_unit_test(a_way_that_becomes_fast_is_taken_again),
		cmocka_unit_test(the_fastest_of_three_is_found),
		cmocka_unit_test(what_is_not_possible_is_not_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
