/*
 * test_key_tail.c - fast loads of keys and fast hashes follow their definitions
 */
#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

TEST(prefixes_are_the_first_words_of_any_key)
{
	for (uint64_t seed = 0; seed < 4000; seed++) {
		const uint64_t record_nbytes = 1 + seed % 50;
		struct layout layout = make_random_layout(record_nbytes, seed);
		unsigned char *record = make_random_bytes(record_nbytes, seed);
		struct key_prefix prefix;

		key_prefix_make(&layout.record_keys, record_nbytes, &prefix);
		assert_true(key_prefix_load(&prefix, record) ==
			    layout_key_prefix(&layout.record_keys, record));
		guarded_free(record, record_nbytes);
		layout_free(&layout);
	}
}

static void check_tail(struct layout layout)
{
	unsigned char *record = make_random_bytes(layout.record_nbytes, 1);

	for (uint32_t at = 1; at < layout.record_keys.key_nbytes + 8; at++)
		assert_int_equal(key_tail_word(&layout.record_keys, record, at),
				 key_word(&layout.record_keys, record, at));
	guarded_free(record, layout.record_nbytes);
	layout_free(&layout);
}

TEST(tail_words_match_any_key)
{
	for (uint64_t seed = 0; seed < 2000; seed++)
		check_tail(make_random_layout(1 + seed % 50, seed));
	for (uint64_t nbytes = 1; nbytes < 40; nbytes++) {
		struct layout_params request = { .record_nbytes = nbytes, .force_records = true };
		char key[16];

		snprintf(key, sizeof key, "0:b%u", (unsigned)nbytes);
		check_tail(make_layout_of_keys(request, KEYS(key)));
		snprintf(key, sizeof key, "0:b%u:r", (unsigned)nbytes);
		check_tail(make_layout_of_keys(request, KEYS(key)));
	}
}

TEST(tails_compare_as_keys_do)
{
	for (unsigned at = 0; at < 40; at++) {
		struct layout layout = make_layout_of_keys(
			(struct layout_params){ .record_nbytes = 40 }, KEYS("0:b40:r"));
		unsigned char *a = make_random_bytes(40, 1), *b = guarded_copy(a, 40);

		b[at] ^= 0x80;
		for (uint32_t from = 1; from <= at; from++)
			assert_int_equal(key_tail_compare(&layout.record_keys, from, a, b),
					 key_compare(&layout.record_keys, a, b));
		assert_int_equal(key_tail_compare(&layout.record_keys, at + 1, a, b), 0);
		guarded_free(a, 40);
		guarded_free(b, 40);
		layout_free(&layout);
	}
}

TEST(hashes_of_any_length_are_as_defined)
{
	for (uint64_t nbytes = 0; nbytes < 300; nbytes++) {
		unsigned char *bytes = make_random_bytes(nbytes, nbytes);

		assert_int_equal(hash_bytes(bytes, nbytes), digest_record(bytes, nbytes));
		guarded_free(bytes, nbytes);
	}
}
