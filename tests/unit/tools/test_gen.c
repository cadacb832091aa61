/*
 * test_gen - generated data has the promised distribution, and never changes
 */
#include "tools/gen/gen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"
#include <zlib.h>

enum { N_RECORDS = 10000 };

static const char *const types[] = { "u8",    "u16be",  "i32",  "u64",   "u64be",   "f32",
				     "f64be", "i128be", "b3",   "b13",   "f16",     "bf16",
				     "u24be", "i56",    "bool", "f64:n", "f16be:n", "t64" };
enum { N_TYPES = sizeof types / sizeof types[0], N_OLDEST_TYPES = 10 };

struct generated_data {
	struct layout layout;
	unsigned char *records;
};

static struct generated_data make(const char *type, enum gen_dist dist, uint64_t n, uint64_t seed)
{
	struct generated_data data;
	struct key key;
	struct gen gen;

	assert_int_equal(key_parse_type(type, &key), 0);
	assert_int_equal(layout_make_key_only(&key, &data.layout), 0);
	data.records = malloc(n * data.layout.record_nbytes + 1);
	assert_non_null(data.records);
	gen_init(&data.layout, dist, n, seed, &gen);
	gen_fill(&gen, 0, n, data.records);
	return data;
}

static encoded_key_t code_at(const struct generated_data *data, uint64_t i)
{
	return layout_encode(&data->layout, data->records + i * data->layout.record_nbytes);
}

struct shape {
	uint64_t n_ascents, n_descents, n_equal;
};

static struct shape shape_of(const char *type, enum gen_dist dist, uint64_t n)
{
	struct generated_data data = make(type, dist, n, 1);
	struct shape shape = { 0 };

	for (uint64_t i = 1; i < n; i++) {
		shape.n_ascents += code_at(&data, i - 1) < code_at(&data, i);
		shape.n_descents += code_at(&data, i - 1) > code_at(&data, i);
		shape.n_equal += code_at(&data, i - 1) == code_at(&data, i);
	}
	free(data.records);
	return shape;
}

static int compare_codes(const void *a, const void *b)
{
	const encoded_key_t x = *(const encoded_key_t *)a, y = *(const encoded_key_t *)b;

	return (x > y) - (x < y);
}

static uint64_t count_distinct(const char *type, enum gen_dist dist)
{
	struct generated_data data = make(type, dist, N_RECORDS, 1);
	encoded_key_t *encoded_keys = malloc(N_RECORDS * sizeof *encoded_keys);
	uint64_t n_distinct = 1;

	assert_non_null(encoded_keys);
	for (uint64_t i = 0; i < N_RECORDS; i++)
		encoded_keys[i] = code_at(&data, i);
	qsort(encoded_keys, N_RECORDS, sizeof *encoded_keys, compare_codes);
	for (uint64_t i = 1; i < N_RECORDS; i++)
		n_distinct += encoded_keys[i - 1] != encoded_keys[i];
	free(encoded_keys);
	free(data.records);
	return n_distinct;
}

static void sorted_data_is_in_the_order_of_its_type(void **state)
{
	(void)state;
	for (unsigned i = 0; i < N_TYPES; i++) {
		assert_int_equal(shape_of(types[i], GEN_SORTED, N_RECORDS).n_descents, 0);
		assert_int_equal(shape_of(types[i], GEN_REVERSED, N_RECORDS).n_ascents, 0);
	}
	assert_int_equal(shape_of("u64", GEN_SORTED, N_RECORDS).n_equal, 0);
	assert_int_equal(shape_of("u64", GEN_REVERSED, N_RECORDS).n_equal, 0);
}

/* Count NaN and infinities. infinity: the exponent bits, 5 in f16 and 8 in bf16. */
static void count_special_halves(const char *type, uint16_t infinity)
{
	struct generated_data data = make(type, GEN_NAN, N_RECORDS, 1);
	unsigned n_nan = 0, n_infinite = 0;

	for (uint64_t i = 0; i < N_RECORDS; i++) {
		uint16_t bits;

		memcpy(&bits, data.records + i * 2, 2);
		n_nan += (bits & 0x7fff) > infinity;
		n_infinite += (bits & 0x7fff) == infinity;
	}
	assert_in_range(n_nan, 2000, 3000);
	assert_in_range(n_infinite, 2000, 3000);
	free(data.records);
}

static void special_halves_are_all_there(void **state)
{
	(void)state;
	count_special_halves("f16", 0x7c00);
	count_special_halves("bf16", 0x7f80);
}

static void bools_are_zero_or_one(void **state)
{
	(void)state;
	for (unsigned dist = GEN_RANDOM; dist <= GEN_NAN; dist++) {
		struct generated_data data = make("bool", (enum gen_dist)dist, N_RECORDS, 1);

		for (uint64_t i = 0; i < N_RECORDS; i++)
			assert_in_range(data.records[i], 0, 1);
		free(data.records);
	}
	assert_int_equal(count_distinct("bool", GEN_RANDOM), 2);
}

static void parts_make_the_whole(void **state)
{
	(void)state;
	for (unsigned dist = GEN_RANDOM; dist <= GEN_NAN; dist++) {
		struct generated_data data = make("b13", (enum gen_dist)dist, N_RECORDS, 7);
		const uint64_t nbytes = data.layout.record_nbytes;
		struct gen gen;
		unsigned char part[300 * 13];

		gen_init(&data.layout, (enum gen_dist)dist, N_RECORDS, 7, &gen);
		for (uint64_t first = 0; first < N_RECORDS; first += 300) {
			const uint64_t n = N_RECORDS - first < 300 ? N_RECORDS - first : 300;

			gen_fill(&gen, first, n, part);
			assert_memory_equal(part, data.records + first * nbytes, n * nbytes);
		}
		free(data.records);
	}
}

/* --- Records --- */

enum { RECORD_NBYTES = 50 };

static const struct key keys[] = {
	{ .offset = 30, .nbytes = 8, .kind = KEY_FLOAT, .descending = true },
	{ .offset = 1, .nbytes = 2, .kind = KEY_SIGNED, .big_endian = true },
	{ .offset = 3, .nbytes = 20, .kind = KEY_BYTES, .big_endian = true },
	{ .offset = 41, .nbytes = 4, .kind = KEY_UNSIGNED },
};
enum { N_KEYS = sizeof keys / sizeof keys[0], KEY_NBYTES = 8 + 2 + 20 + 4 };

static struct layout records_layout(void)
{
	struct layout layout;

	assert_int_equal(layout_make(&(struct layout_params){ .record_nbytes = RECORD_NBYTES,
							      .keys = keys,
							      .n_keys = N_KEYS },
				     &layout),
			 0);
	return layout;
}

static void make_records(const struct layout *layout, enum gen_dist dist, uint32_t prefix_nbytes,
			 unsigned char records[static N_RECORDS * RECORD_NBYTES])
{
	struct gen gen;

	gen_init(layout, dist, N_RECORDS, 1, &gen);
	gen_set_prefix(&gen, prefix_nbytes);
	gen_fill(&gen, 0, N_RECORDS, records);
}

static void bytes_of_records_never_change(void **state)
{
	unsigned char *records = malloc(N_RECORDS * RECORD_NBYTES);
	struct layout layout = records_layout();

	(void)state;
	assert_non_null(records);
	make_records(&layout, GEN_ZIPF, 3, records);
	assert_int_equal(crc32(0, records, N_RECORDS * RECORD_NBYTES), 0x3e463b65);
	layout_free(&layout);
	free(records);
}

static void smallest_data_sets_can_be_made(void **state)
{
	(void)state;
	for (unsigned dist = GEN_RANDOM; dist <= GEN_NAN; dist++)
		for (uint64_t n = 0; n < 3; n++)
			free(make("i128", (enum gen_dist)dist, n, 1).records);
}

/* Checksums in tests and reports hang on it: a change here is a change of the format. */
static void bytes_never_change(void **state)
{
	static const uint32_t expected[GEN_NAN + 1] = {
		[GEN_RANDOM] = 0x2e421024,       [GEN_SORTED] = 0xabc14784,
		[GEN_REVERSED] = 0xeb11d47b,     [GEN_EQUAL] = 0xaeaf79c3,
		[GEN_TWO_KEYS] = 0x3cc1fba0,     [GEN_ZIPF] = 0x49809444,
		[GEN_HUNDRED_KEYS] = 0x7975489e, [GEN_NEARLY_SORTED] = 0x8253bfb9,
		[GEN_SAWTOOTH] = 0x5c55f52a,     [GEN_ORGAN_PIPE] = 0xb059e5cd,
		[GEN_CLUSTERED] = 0xf971cc74,    [GEN_NAN] = 0xe76125d7,
	};

	(void)state;
	for (unsigned dist = GEN_RANDOM; dist <= GEN_NAN; dist++) {
		unsigned long hash = 0;

		for (unsigned i = 0; i < N_OLDEST_TYPES; i++) {
			struct generated_data data =
				make(types[i], (enum gen_dist)dist, N_RECORDS, 1);

			hash = crc32(hash, data.records,
				     (unsigned)(N_RECORDS * data.layout.record_nbytes));
			free(data.records);
		}
		assert_int_equal(hash, expected[dist]);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(sorted_data_is_in_the_order_of_its_type),
	cmocka_unit_test(special_halves_are_all_there),
	cmocka_unit_test(bools_are_zero_or_one),
	cmocka_unit_test(parts_make_the_whole),
	cmocka_unit_test(bytes_of_records_never_change),
	cmocka_unit_test(smallest_data_sets_can_be_made),
	cmocka_unit_test(bytes_never_change),
};

UNIT_TESTS(gen, tests, NULL, NULL)
