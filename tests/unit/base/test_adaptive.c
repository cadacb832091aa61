/*
 * test_adaptive - the fastest method is found, and found again when it has changed
 */
#include "src/base/adaptive.h"

#include "tests/support/unit_test.h"

enum { WRITE_NBYTES = 8 << 20 };

/* Picoseconds per byte. */
struct speeds {
	uint64_t cached_ps, direct_ps;
};

/* Simulate a write; returns its method. */
static enum adaptive_method write_once(struct adaptive *adaptive, struct speeds speeds,
				       uint64_t *ns)
{
	const enum adaptive_method method =
		adaptive_choose(adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND);
	const uint64_t ps = method == METHOD_SECOND ? speeds.direct_ps : speeds.cached_ps;
	const uint64_t took_ns = WRITE_NBYTES * ps / 1000;

	adaptive_record(adaptive, method, WRITE_NBYTES, 0, took_ns);
	*ns += took_ns;
	return method;
}

/* Returns how many of n writes were direct. */
static unsigned write_many(struct adaptive *adaptive, struct speeds speeds, unsigned n,
			   uint64_t *ns)
{
	unsigned n_direct = 0;

	for (unsigned i = 0; i < n; i++)
		n_direct += write_once(adaptive, speeds, ns) == METHOD_SECOND;
	return n_direct;
}

TEST(each_method_is_tried_first)
{
	struct adaptive adaptive;

	adaptive_init(&adaptive, ADAPTIVE_SINGLE);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_DEFAULT);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_DEFAULT);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_SECOND);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_SECOND);
	/* Nothing was timed yet. */
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND),
			 METHOD_DEFAULT);
	adaptive_destroy(&adaptive);
}

TEST(all_but_trials_use_the_faster)
{
	static const struct speeds speeds[] = {
		{ 200, 400 }, { 400, 200 }, { 100, 10000 }, { 10000, 100 }, { 300, 300 }
	};
	enum { N_WRITES = 10000 };

	for (unsigned i = 0; i < sizeof speeds / sizeof speeds[0]; i++) {
		const struct speeds s = speeds[i];
		const uint64_t best_ps = s.cached_ps < s.direct_ps ? s.cached_ps : s.direct_ps;
		const uint64_t best_ns = N_WRITES * (WRITE_NBYTES * best_ps / 1000);
		struct adaptive adaptive;
		uint64_t ns = 0;
		unsigned n_direct;

		adaptive_init(&adaptive, ADAPTIVE_SINGLE);
		n_direct = write_many(&adaptive, s, N_WRITES, &ns);
		assert_true(n_direct > 2 && n_direct < N_WRITES - 2);
		assert_true(ns < best_ns + best_ns / 20);
		adaptive_destroy(&adaptive);
	}
}

TEST(a_method_that_becomes_slow_is_dropped)
{
	struct adaptive adaptive;
	uint64_t ns = 0;

	adaptive_init(&adaptive, ADAPTIVE_SINGLE);
	assert_true(write_many(&adaptive, (struct speeds){ 200, 1000 }, 1000, &ns) < 20);
	write_many(&adaptive, (struct speeds){ 4000, 1000 }, 20, &ns);
	assert_true(write_many(&adaptive, (struct speeds){ 4000, 1000 }, 100, &ns) > 95);
	adaptive_destroy(&adaptive);
}

TEST(a_method_that_becomes_fast_is_used)
{
	struct adaptive adaptive;
	uint64_t ns = 0;

	adaptive_init(&adaptive, ADAPTIVE_SINGLE);
	write_many(&adaptive, (struct speeds){ 4000, 1000 }, 1000, &ns);
	write_many(&adaptive, (struct speeds){ 200, 1000 }, 2000, &ns);
	assert_true(write_many(&adaptive, (struct speeds){ 200, 1000 }, 100, &ns) < 5);
	adaptive_destroy(&adaptive);
}

/* Simulate a write of 1 MiB that takes ns[method]. */
static enum adaptive_method write_with_one_of_three(struct adaptive *adaptive,
						    const uint64_t ns[static 3])
{
	const enum adaptive_method method = adaptive_choose(
		adaptive, METHOD_MASK_DEFAULT | METHOD_MASK_SECOND | METHOD_MASK_THIRD);

	adaptive_record(adaptive, method, 1 << 20, 0, ns[method]);
	return method;
}

TEST(the_fastest_of_three_is_chosen)
{
	static const uint64_t ns[][3] = { { 100, 200, 300 }, { 200, 100, 300 }, { 300, 200, 100 } };

	for (unsigned fastest = 0; fastest < 3; fastest++) {
		unsigned n_of[3] = { 0 };
		struct adaptive adaptive;

		adaptive_init(&adaptive, ADAPTIVE_SINGLE);
		for (unsigned i = 0; i < 1000; i++)
			n_of[write_with_one_of_three(&adaptive, ns[fastest])]++;
		for (unsigned method = 0; method < 3; method++)
			assert_true(method == fastest ? n_of[method] > 950 : n_of[method] >= 5);
		adaptive_destroy(&adaptive);
	}
}

TEST(unavailable_method_is_not_chosen)
{
	static const uint64_t ns[] = { 300, 200, 100 };
	struct adaptive adaptive;

	adaptive_init(&adaptive, ADAPTIVE_SINGLE);
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

enum { TURN_WRITE_NBYTES = 4 << 20, N_TURN_WRITES = 20000 };
static const unsigned both_methods = METHOD_MASK_DEFAULT | METHOD_MASK_THIRD;

/* Simulate n writes, one after the other; returns how many used the third method. */
static unsigned write_in_turns(struct adaptive *adaptive, unsigned n, const uint64_t ns[N_METHODS],
			       uint64_t *now_ns)
{
	unsigned n_third = 0;

	for (unsigned i = 0; i < n; i++) {
		const enum adaptive_method method = adaptive_choose(adaptive, both_methods);

		*now_ns += ns[method];
		n_third += method == METHOD_THIRD;
		adaptive_record(adaptive, method, TURN_WRITE_NBYTES, 0, *now_ns);
	}
	return n_third;
}

TEST(all_threads_use_one_method)
{
	struct adaptive adaptive;

	adaptive_init(&adaptive, ADAPTIVE_TURNS);
	for (int i = 0; i < 100; i++)
		assert_int_equal(adaptive_choose(&adaptive, both_methods), METHOD_THIRD);
	adaptive_destroy(&adaptive);
}

TEST(fastest_method_is_used)
{
	static const uint64_t third_is_fast[N_METHODS] = { 4000000, 1, 1000000 },
			      third_is_slow[N_METHODS] = { 1000000, 1, 4000000 };
	struct adaptive adaptive;
	uint64_t now_ns = 1;

	adaptive_init(&adaptive, ADAPTIVE_TURNS);
	assert_true(write_in_turns(&adaptive, N_TURN_WRITES, third_is_fast, &now_ns) >
		    N_TURN_WRITES / 100 * 98);
	assert_true(write_in_turns(&adaptive, N_TURN_WRITES, third_is_slow, &now_ns) <
		    N_TURN_WRITES / 100 * 10);
	assert_true(write_in_turns(&adaptive, N_TURN_WRITES, third_is_slow, &now_ns) <
		    N_TURN_WRITES / 100 * 2);
	assert_true(write_in_turns(&adaptive, N_TURN_WRITES, third_is_fast, &now_ns) >
		    N_TURN_WRITES / 100 * 90);
	adaptive_destroy(&adaptive);
}

/* Another method is tried after a while, and used if it is faster. */
TEST(default_is_not_compared_at_once)
{
	static const uint64_t third_is_fast[N_METHODS] = { 4000000, 1, 1000000 },
			      third_is_slow[N_METHODS] = { 1000000, 1, 4000000 };
	enum { GIB_WRITES = (1 << 30) / TURN_WRITE_NBYTES };
	struct adaptive adaptive;
	uint64_t now_ns = 1;

	adaptive_init(&adaptive, ADAPTIVE_TURNS);
	adaptive_presume(&adaptive, METHOD_MASK_THIRD);
	assert_int_equal(write_in_turns(&adaptive, 8 * GIB_WRITES, third_is_fast, &now_ns),
			 8 * GIB_WRITES);
	assert_true(write_in_turns(&adaptive, N_TURN_WRITES, third_is_slow, &now_ns) <
		    N_TURN_WRITES / 100 * 50);
	adaptive_destroy(&adaptive);

	adaptive_init(&adaptive, ADAPTIVE_TURNS);
	adaptive_presume(&adaptive, METHOD_MASK_THIRD);
	adaptive_presume(&adaptive, 0);
	assert_true(write_in_turns(&adaptive, 8 * GIB_WRITES, third_is_slow, &now_ns) <
		    2 * GIB_WRITES);
	adaptive_presume(&adaptive, METHOD_MASK_SECOND); /* not available */
	assert_true(write_in_turns(&adaptive, 8 * GIB_WRITES, third_is_slow, &now_ns) <
		    2 * GIB_WRITES);
	adaptive_destroy(&adaptive);
}

/* Writes that were begun by another method do not count. */
TEST(other_methods_writes_are_not_timed)
{
	struct adaptive adaptive;

	adaptive_init(&adaptive, ADAPTIVE_TURNS);
	assert_int_equal(adaptive_choose(&adaptive, both_methods), METHOD_THIRD);
	adaptive_record(&adaptive, METHOD_DEFAULT, UINT64_C(1) << 40, 0, 2);
	assert_int_equal(adaptive_choose(&adaptive, both_methods), METHOD_THIRD);
	adaptive_record(&adaptive, METHOD_THIRD, UINT64_C(1) << 40, 0, 1000);
	assert_int_equal(adaptive_choose(&adaptive, both_methods), METHOD_THIRD);
	adaptive_record(&adaptive, METHOD_THIRD, UINT64_C(1) << 40, 0, 2000);
	assert_int_equal(adaptive_choose(&adaptive, both_methods), METHOD_DEFAULT);
	adaptive_destroy(&adaptive);
}

TEST(unavailable_is_not_used_in_turns)
{
	struct adaptive adaptive;

	adaptive_init(&adaptive, ADAPTIVE_TURNS);
	assert_int_equal(adaptive_choose(&adaptive, both_methods), METHOD_THIRD);
	assert_int_equal(adaptive_choose(&adaptive, METHOD_MASK_DEFAULT), METHOD_DEFAULT);
	adaptive_destroy(&adaptive);
}
