/*
 * test_layout.c - keys, normalised keys, layouts and items
 */

#include "tests/support/key_lists.h"
#include "tests/support/record_fixture.h"
#include "tests/support/unit_test.h"

/* Return whether it is a NaN with this many fraction bits. bytes: most significant first */
static bool is_nan(const unsigned char *bytes, uint32_t nbytes, unsigned n_fraction_bits)
{
	bool is_infinite_or_nan = true, has_fraction = false;

	for (uint32_t i = 1; i < 8 * nbytes; i++) {
		const bool bit = bytes[i / 8] >> (7 - i % 8) & 1;

		if (i < 8 * nbytes - n_fraction_bits)
			is_infinite_or_nan &= bit;
		else
			has_fraction |= bit;
	}
	return is_infinite_or_nan && has_fraction;
}

static bool is_zero(const unsigned char *bytes, uint32_t nbytes)
{
	bool is_zero = (bytes[0] & 0x7f) == 0;

	for (uint32_t i = 1; i < nbytes; i++)
		is_zero &= bytes[i] == 0;
	return is_zero;
}

/* Put a part of the key in order, most significant byte first. */
static void put_in_order(const struct key *key, const unsigned char *from, uint32_t nbytes,
			 unsigned char *to)
{
	for (uint32_t i = 0; i < nbytes; i++)
		to[i] = from[key->big_endian ? i : nbytes - 1 - i];
}

static void normalise_number(const struct key *key, const unsigned char *from, uint32_t nbytes,
			     unsigned n_fraction_bits, unsigned char *to)
{
	const bool is_float = n_fraction_bits > 0;
	const bool has_sign = key->kind == KEY_SIGNED || key->kind == KEY_TIME || is_float;
	bool is_negative;

	put_in_order(key, from, nbytes, to);
	if (key->numeric && is_float && is_nan(to, nbytes, n_fraction_bits)) {
		memset(to, 0xff, nbytes);
		return;
	}
	if (key->numeric && is_float && is_zero(to, nbytes))
		to[0] = 0;
	is_negative = to[0] >> 7;
	for (uint32_t i = 0; i < nbytes; i++) {
		if (is_float && is_negative)
			to[i] ^= i == 0 ? 0x7f : 0xff;
		if (has_sign && i == 0)
			to[i] ^= 0x80;
	}
	if (key->kind == KEY_TIME && key->numeric) /* one less: the lowest value becomes the last */
		for (uint32_t i = nbytes; i-- > 0 && to[i]-- == 0;)
			;
}

/* Make the normalised key of one key by its definition, byte by byte. Returns its size. */
static uint32_t normalise(const struct key *key, const unsigned char *record, unsigned char *to)
{
	static const unsigned n_fraction_bits[] = { [2] = 10, [4] = 23, [8] = 52 };
	const unsigned char *from = record + key->offset;
	const bool is_float = key->kind == KEY_FLOAT || key->kind == KEY_COMPLEX;
	const uint32_t n_parts = key->kind == KEY_COMPLEX ? 2 : 1, n = key->nbytes / n_parts;
	const unsigned n_bits = key->kind == KEY_BFLOAT ? 7 : is_float ? n_fraction_bits[n] : 0;
	unsigned char part[16];
	uint32_t at = 0;

	if (key->kind == KEY_COMPLEX && key->numeric) {
		put_in_order(key, from, n, part);
		to[at] = is_nan(part, n, n_bits) ? 2 : 0;
		put_in_order(key, from + n, n, part);
		to[at++] += is_nan(part, n, n_bits);
	}
	for (uint32_t i = 0; i < n_parts; i++, at += n)
		normalise_number(key, from + i * n, n, n_bits, to + at);
	for (uint32_t i = 0; key->descending && i < at; i++)
		to[i] ^= 0xff;
	return at;
}

/* Random bytes are seldom NaN or zeros. */
static void make_special(const struct key *key, uint64_t seed, unsigned char *record)
{
	unsigned char *bytes = record + key->offset;
	const uint32_t n = key->kind == KEY_COMPLEX ? key->nbytes / 2 : key->nbytes;

	for (uint32_t i = 0; i < key->nbytes; i++) {
		const uint32_t place = key->big_endian ? i % n : n - 1 - i % n;
		const uint64_t choice = random_number(seed, 99 + i / n) % 3;

		bytes[i] = choice == 0 ? 0 : choice == 1 && place < 2 ? 0xff : bytes[i];
	}
	if (random_number(seed, 97) & 1)
		bytes[key->big_endian ? 0 : n - 1] ^= 0x80;
}

TEST(words_of_normalised_keys_are_their_bytes)
{
	for (uint64_t seed = 0; seed < 3000; seed++) {
		const uint64_t record_nbytes = 1 + seed % 70;
		unsigned char normalised[MAX_RANDOM_KEYS * 48 + 16] = { 0 };
		struct key keys[MAX_RANDOM_KEYS];
		const uint32_t n_keys = random_keys(record_nbytes, seed, keys);
		struct layout layout = make_random_layout(record_nbytes, seed);
		unsigned char *record = make_random_bytes(record_nbytes, seed);
		uint32_t key_nbytes = 0;

		for (uint32_t i = 0; i < n_keys; i++)
			if (keys[i].numeric && seed % 2)
				make_special(&keys[i], seed, record);
		for (uint32_t i = 0; i < n_keys; i++)
			key_nbytes += normalise(&keys[i], record, normalised + key_nbytes);
		assert_int_equal(layout.record_keys.key_nbytes, key_nbytes);
		for (uint32_t at = 0; at < key_nbytes + 8; at++)
			assert_int_equal(key_word(&layout.record_keys, record, at),
					 key_load(normalised + at, 8));
		guarded_free(record, record_nbytes);
		layout_free(&layout);
	}
}

TEST(keys_compare_as_normalised_keys_do)
{
	for (uint64_t seed = 0; seed < 2000; seed++) {
		struct layout layout = make_random_layout(24, seed);
		const struct key_fields *keys = &layout.record_keys;
		unsigned char *a = make_random_bytes(24, seed), *b = guarded_copy(a, 24);
		unsigned char normalised[MAX_RANDOM_KEYS * 48] = { 0 };
		int order;

		b[seed % 24] ^= (unsigned char)(1 << seed / 24 % 8);
		for (uint32_t at = 0; at < keys->key_nbytes; at += 8) {
			const uint64_t word = __builtin_bswap64(key_word(keys, b, at));

			memcpy(normalised + at, &word, 8);
		}
		order = key_compare_normalised(keys, a, normalised);
		assert_int_equal(key_compare(keys, a, b), order);
		assert_int_equal(key_compare(keys, b, a), -order);
		assert_int_equal(key_compare(keys, a, a), 0);
		guarded_free(a, 24);
		guarded_free(b, 24);
		layout_free(&layout);
	}
}

/* -0.0 and +0.0 are equal: -u must not keep both, and -c must not find them out of order. */
TEST(comparable_numbers_are_not_key_only)
{
	struct layout layout =
		make_layout_of_keys((struct layout_params){ .record_nbytes = 8 }, KEYS("0:f64:n"));

	assert_true(layout_is_key_only(&layout));
	layout_free(&layout);
	layout = make_layout_of_keys((struct layout_params){ .record_nbytes = 8,
							     .needs_equality = true },
				     KEYS("0:f64:n"));
	assert_false(layout_is_key_only(&layout));
	layout_free(&layout);
	layout = make_layout_of_keys((struct layout_params){ .record_nbytes = 8,
							     .needs_equality = true },
				     KEYS("0:t64"));
	assert_true(layout_is_key_only(&layout));
	layout_free(&layout);
}

static uint32_t n_fields(const char *const *texts)
{
	struct layout layout =
		make_layout_of_keys((struct layout_params){ .record_nbytes = 32 }, texts);
	const uint32_t n = layout.record_keys.n;

	layout_free(&layout);
	return n;
}

TEST(neighbours_that_compare_as_bytes_are_one_field)
{
	assert_int_equal(n_fields(KEYS("0:b4", "4:b3")), 1);
	assert_int_equal(n_fields(KEYS("0:u32be", "4:u8", "5:u16be", "7:b9")), 1);
	assert_int_equal(n_fields(KEYS("0:b4:r", "4:b3:r")), 1);
	assert_int_equal(n_fields(KEYS("0:u8", "1:u8")), 1);
}

TEST(other_neighbours_stay_apart)
{
	assert_int_equal(n_fields(KEYS("0:b4", "5:b3")), 2);
	assert_int_equal(n_fields(KEYS("4:b4", "0:b4")), 2);
	assert_int_equal(n_fields(KEYS("0:b4", "4:b3:r")), 2);
	assert_int_equal(n_fields(KEYS("0:u32", "4:b4")), 2);
	assert_int_equal(n_fields(KEYS("0:b4", "4:u32")), 2);
	assert_int_equal(n_fields(KEYS("0:i32be", "4:b4")), 2);
	assert_int_equal(n_fields(KEYS("0:b4", "4:i8")), 2);
	assert_int_equal(n_fields(KEYS("0:b4", "4:f32be")), 2);
}

TEST(keys_covering_a_record_are_key_only)
{
	const char *const records[] = {
		"0:u32 5:u32",            /* a gap */
		"0:u32 3:u32",            /* one byte twice, */
		"0:u32 4:u32 0:u8",       /* or more */
		"0:u64 8:u64 16:u8",      /* 17 bytes */
		"0:u32 0:u32 4:u16 7:u8", /* as many bytes as the record, but not each */
	};
	const struct key keys[] = { { .nbytes = 4 }, { .offset = 4, .nbytes = 4 } };
	struct layout_params params = { .record_nbytes = 8, .keys = keys, .n_keys = 2 };
	struct layout layout;

	assert_int_equal(layout_make(&params, &layout), 0);
	assert_true(layout_is_key_only(&layout));
	assert_int_equal(layout.element_nbytes, 8);
	assert_true(layout.stores_elements);
	layout_free(&layout);
	/* The keys are not in the order of the record. */
	params.keys_only = true;
	assert_int_equal(layout_make(&params, &layout), 0);
	assert_false(layout_is_key_only(&layout));
	layout_free(&layout);
	for (unsigned i = 0; i < sizeof records / sizeof records[0]; i++) {
		assert_int_equal(key_list_layout(records[i], false, &layout), 0);
		assert_false(layout_is_key_only(&layout));
		layout_free(&layout);
	}
}

TEST(other_layouts_are_records)
{
	const struct layout_params requests[] = {
		{ .record_nbytes = 8, .count = true },
		{ .record_nbytes = 8, .argsort = true },
		{ .record_nbytes = 8, .force_records = true },
		{ .record_nbytes = 9 },
	};

	for (unsigned i = 0; i < sizeof requests / sizeof requests[0]; i++) {
		struct layout layout = make_layout_of_keys(requests[i], KEYS("0:u64"));

		assert_int_equal(layout.kind, LAYOUT_RECORDS);
		layout_free(&layout);
	}
}

/* Of blocks the first 16 bytes of a whole key are known. */
TEST(a_whole_key_has_zeros_behind_it)
{
	struct layout layout =
		make_layout_of_keys((struct layout_params){ .record_nbytes = 12 }, KEYS("2:b3"));
	unsigned char key[16];

	assert_int_equal(layout_key_nbytes(&layout), sizeof key);
	memset(key, 0xff, sizeof key);
	layout_item_key(&layout, "01abc56789ab", key);
	assert_memory_equal(key, "abc\0\0\0\0\0\0\0\0\0\0\0\0", sizeof key);
	assert_true(layout_get_key_prefix(&layout, key) ==
		    layout_record_key(&layout, "01abc56789ab"));
	layout_free(&layout);
}

TEST(elements_are_as_narrow_as_the_key_allows)
{
	static const struct {
		const char *key;
		uint32_t element_nbytes;
		bool needs_refining;
	} cases[] = { { "0:b4", 8, false },   { "0:u32", 8, false }, { "0:b5", 16, false },
		      { "0:b12", 16, false }, { "0:b13", 16, true }, { "0:u128", 16, true } };

	for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct layout layout = make_layout_of_keys(
			(struct layout_params){ .record_nbytes = 32 }, KEYS(cases[i].key));

		assert_int_equal(layout.element_nbytes, cases[i].element_nbytes);
		assert_int_equal(layout_needs_refining(&layout), cases[i].needs_refining);
		layout_free(&layout);
	}
}

TEST(any_byte_of_a_record_changes_its_hash)
{
	for (uint64_t nbytes = 1; nbytes <= 200; nbytes++) {
		unsigned char *record = make_random_bytes(nbytes, nbytes);
		const uint64_t hash = digest_record(record, nbytes);

		for (uint64_t i = 0; i < nbytes; i++) {
			record[i] ^= (unsigned char)(1 << i % 8);
			assert_int_not_equal(digest_record(record, nbytes), hash);
			record[i] ^= (unsigned char)(1 << i % 8);
		}
		guarded_free(record, nbytes);
	}
}

static uint64_t hash_of(const uint64_t *words, unsigned n)
{
	return digest_record((const unsigned char *)words, n * sizeof *words);
}

/* Words, or pairs of words, that change places. */
TEST(the_place_of_a_word_changes_its_hash)
{
	enum { N_WORDS = 16 };

	for (unsigned n = 1; n <= 2; n++)
		for (unsigned i = 0; i < N_WORDS; i += n)
			for (unsigned j = 0; j < i; j += n) {
				uint64_t words[N_WORDS], swapped[N_WORDS];

				for (unsigned k = 0; k < N_WORDS; k++)
					words[k] = swapped[k] = random_number(1, k);
				memcpy(swapped + i, words + j, n * sizeof *words);
				memcpy(swapped + j, words + i, n * sizeof *words);
				assert_int_not_equal(hash_of(words, N_WORDS),
						     hash_of(swapped, N_WORDS));
			}
}

/* Without the offsets, zeros would make a factor of the hash zero. */
TEST(records_of_zeros_differ_by_their_length)
{
	unsigned char zeros[128] = { 0 };

	for (uint64_t a = 1; a <= sizeof zeros / 16; a++)
		for (uint64_t b = 1; b < a; b++)
			assert_int_not_equal(digest_record(zeros, 16 * a),
					     digest_record(zeros, 16 * b));
}
