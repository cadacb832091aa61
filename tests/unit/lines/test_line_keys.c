/*
 * test_line_keys - beginnings of normalised keys, and comparing lines by them
 *
 * That normalised keys have the order of GNU sort is tested by tests/cli/lines_random.py.
 */
#include "src/lines/line_keys.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"

enum { N_LINES = 60, MAX_LINE_NBYTES = 300 };

static unsigned char lines[N_LINES][MAX_LINE_NBYTES];
static struct line_view views[N_LINES];

static uint64_t next_random(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005 + 1442695040888963407;
	return state >> 33;
}

/* Make lines of few different bytes; every second one begins with a part of the one before. */
static void make_lines(void)
{
	static const unsigned char bytes[] = "aAbz09 \t.,~-K\0\1\xff";

	for (size_t i = 0; i < N_LINES; i++) {
		const size_t nbytes = next_random() % MAX_LINE_NBYTES;
		size_t n_shared = i % 2 ? next_random() % MAX_LINE_NBYTES : 0;

		if (i > 0 && n_shared > views[i - 1].nbytes)
			n_shared = views[i - 1].nbytes;
		if (n_shared > 0)
			memcpy(lines[i], lines[i - 1], n_shared);
		for (size_t j = n_shared; j < nbytes; j++)
			lines[i][j] = bytes[next_random() % (sizeof bytes - 1)];
		views[i] = (struct line_view){ lines[i], nbytes > n_shared ? nbytes : n_shared };
	}
}

/* Call check() with keys of all kinds, alone and before another key. */
static void for_each_order(void (*check)(const struct line_keys *keys))
{
	static const char *const orders[][2] = {
		{ "1" },         { "1f" },         { "1r" },
		{ "1fr" },       { "1d" },         { "1i" },
		{ "1df" },       { "1n" },         { "1g" },
		{ "1h" },        { "1M" },         { "1V" },
		{ "1Vf" },       { "1Vr" },        { "2,2", "1,1f" },
		{ "1,1n", "1" }, { "2,2V", "1r" }, { "1.3,1.9", "2f" },
	};

	make_lines();
	for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
		struct line_keys requested, keys;

		line_keys_init(&requested);
		for (size_t j = 0; j < 2 && orders[i][j]; j++)
			assert_int_equal(line_keys_add(&requested, orders[i][j]), 0);
		assert_int_equal(line_keys_finish(&requested, &keys), 0);
		check(&keys);
		line_keys_free(&keys);
		line_keys_free(&requested);
	}
}

static void check_prefixes(const struct line_keys *keys)
{
	struct line_key_buffer whole = { 0 }, prefix = { 0 };

	for (size_t i = 0; i < N_LINES; i++) {
		line_keys_normalise(keys, views[i].bytes, views[i].nbytes, &whole);
		for (size_t n = 0; n <= whole.n; n += 1 + n / 8) {
			const bool is_complete = line_keys_normalise_prefix(
				keys, views[i].bytes, views[i].nbytes, n, &prefix);

			assert_in_range(prefix.n, is_complete ? whole.n : n + 1, whole.n);
			assert_memory_equal(prefix.bytes, whole.bytes, prefix.n);
		}
	}
	line_key_buffer_free(&whole);
	line_key_buffer_free(&prefix);
}

TEST(prefix_of_a_key_is_its_beginning)
{
	for_each_order(check_prefixes);
}

static int sign(int order)
{
	return (order > 0) - (order < 0);
}

static void check_comparisons(const struct line_keys *keys)
{
	struct line_key_buffer wholes[2] = { 0 }, scratch[2] = { 0 };

	for (size_t i = 0; i + 1 < N_LINES; i++) {
		const struct line_view a = views[i], b = views[i + 1];
		int order;

		line_keys_normalise(keys, a.bytes, a.nbytes, &wholes[0]);
		line_keys_normalise(keys, b.bytes, b.nbytes, &wholes[1]);
		order = line_view_compare((struct line_view){ wholes[0].bytes, wholes[0].n },
					  (struct line_view){ wholes[1].bytes, wholes[1].n });
		for (size_t n_shared = 0; n_shared < 100; n_shared += 33)
			assert_int_equal(
				sign(line_keys_compare_normalised(keys, a, b, n_shared, scratch)),
				sign(order));
	}
	for (size_t i = 0; i < 2; i++) {
		line_key_buffer_free(&wholes[i]);
		line_key_buffer_free(&scratch[i]);
	}
}

TEST(comparison_of_beginnings_is_that_of_whole_keys)
{
	for_each_order(check_comparisons);
}

TEST(keys_are_written_as_users_write_them)
{
	static const struct {
		const char *key, *text;
	} cases[] = {
		{ "3,3n", "--lines -k3,3n" },         { "3n,3", "--lines -k3,3n" },
		{ "2.3b,2.5", "--lines -k2.3b,2.5" }, { "1rn,2.4b", "--lines -k1,2.4bnr" },
		{ "4bV", "--lines -k4bV" },           { "5,6.0f", "--lines -k5,6f" },
	};

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct line_keys requested, keys;
		char *text;

		line_keys_init(&requested);
		assert_int_equal(line_keys_add(&requested, cases[i].key), 0);
		assert_int_equal(line_keys_finish(&requested, &keys), 0);
		text = line_keys_format(&keys);
		assert_string_equal(text, cases[i].text);
		free(text);
		line_keys_free(&keys);
		line_keys_free(&requested);
	}
}
