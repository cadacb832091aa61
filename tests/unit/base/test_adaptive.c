/*
 * test_adaptive - the fastest way is found, and found again when it has changed
 */
#include "src/base/adaptive.h"

#include <stdbool.h>

#include "tests/support/unit_test.h"

enum { WRITE_NBYTES = 8 << 20 };

/* Picoseconds that a byte takes. */
struct speeds {
	uint64_t cached_ps, direct_ps;
};

/* A write as `speeds` have it; returns its way. */
static enum adaptive_method write_once(struct adaptive *adaptive, struct speeds speeds,
				       uint64_t *ns)
{
	const enum adaptive_method method =
		adaptive_choose(adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND);
	const uint64_t ps = method == METHOD_SECOND ? speeds.direct_ps : speeds.cached_ps;
	const uint64_t took_ns = WRITE_NBYTES * ps / 1000;

	adaptive_record(adaptive, method, WRITE_NBYTES, took_ns);
	*ns += took_ns;
	return method;
}

/* How many of n writes went past the cache. */
static unsigned write_many(struct adaptive *adaptive, struct speeds speeds, unsigned n,
			   uint64_t *ns)
{
	unsigned n_direct = 0;

	for (unsigned i = 0; i < n; i++)
		n_direct += write_once(adaptive, speeds, ns) == METHOD_SECOND;
	return n_direct;
}

static void each_method_is_tried_first(void **state)
{
	struct adaptive adaptive;

	(void)state;
	adaptive_init(&adaptive);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_DEFAULT);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_DEFAULT);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_SECOND);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_SECOND);
	/* Nothing is known yet, and something is chosen. */
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_DEFAULT);
	adaptive_destroy(&adaptive);
}

static void all_but_trials_use_the_faster(void **state)
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
		struct adaptive adaptive;
		uint64_t ns = 0;
		unsigned n_direct;

		adaptive_init(&adaptive);
		n_direct = write_many(&adaptive, s, N_WRITES, &ns);
		assert_true(n_direct > 2 && n_direct < N_WRITES - 2);
		assert_true(ns < best_ns + best_ns / 20);
		adaptive_destroy(&adaptive);
	}
}

static void a_method_that_becomes_slow_is_dropped(void **state)
{
	struct adaptive adaptive;
	uint64_t ns = 0;

	(void)state;
	adaptive_init(&adaptive);
	assert_true(write_many(&adaptive, (struct speeds){ 200, 1000 }, 1000, &ns) < 20);
	write_many(&adaptive, (struct speeds){ 4000, 1000 }, 20, &ns);
	assert_true(write_many(&adaptive, (struct speeds){ 4000, 1000 }, 100, &ns) > 95);
	adaptive_destroy(&adaptive);
}

static void a_method_that_becomes_fast_is_used(void **state)
{
	struct adaptive adaptive;
	uint64_t ns = 0;

	(void)state;
	adaptive_init(&adaptive);
	write_many(&adaptive, (struct speeds){ 4000, 1000 }, 1000, &ns);
	write_many(&adaptive, (struct speeds){ 200, 1000 }, 2000, &ns);
	assert_true(write_many(&adaptive, (struct speeds){ 200, 1000 }, 100, &ns) < 5);
	adaptive_destroy(&adaptive);
}

/* A write of one of three ways that takes so many ns for each MiB. */
static enum adaptive_method write_with_one_of_three(struct adaptive *adaptive,
						    const uint64_t ns[static 3])
{
	const enum adaptive_method method = adaptive_choose(
		adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND | METHOD_MASK_THIRD);

	adaptive_record(adaptive, method, 1 << 20, ns[method]);
	return method;
}

static void the_fastest_of_three_is_chosen(void **state)
{
	static const uint64_t ns[][3] = { { 100, 200, 300 }, { 200, 100, 300 }, { 300, 200, 100 } };

	(void)state;
	for (unsigned fastest = 0; fastest < 3; fastest++) {
		unsigned n_of[3] = { 0 };
		struct adaptive adaptive;

		adaptive_init(&adaptive);
		for (unsigned i = 0; i < 1000; i++)
			n_of[write_with_one_of_three(&adaptive, ns[fastest])]++;
		for (unsigned method = 0; method < 3; method++)
			assert_true(method == fastest ? n_of[method] > 950 : n_of[method] >= 5);
		adaptive_destroy(&adaptive);
	}
}

static void unavailable_method_is_not_chosen(void **state)
{
	static const uint64_t ns[] = { 300, 200, 100 };
	struct adaptive adaptive;

	(void)state;
	adaptive_init(&adaptive);
	for (unsigned i = 0; i < 100; i++)
		write_with_one_of_three(&adaptive, ns);
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT), METHOD_DEFAULT);
		assert_int_not_equal(adaptive_choose(&adaptive,
						     METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
				     METHOD_THIRD);
	}
	adaptive_destroy(&adaptive);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(each_method_is_tried_first),
	cmocka_unit_test(all_but_trials_use_the_faster),
	cmocka_unit_test(a_method_that_becomes_slow_is_dropped),
	cmocka_unit_test(a_method_that_becomes_fast_is_used),
	cmocka_unit_test(the_fastest_of_three_is_chosen),
	cmocka_unit_test(unavailable_method_is_not_chosen),
};

UNIT_TESTS(adaptive, tests, NULL, NULL)
