/*
 * test_gen - generated data never changes, and has the special values of its type
 */
#include "tools/gen/gen.h"

#include <stdlib.h>
#include <string.h>

#include "tests/support/unit_test.h"
#include <zlib.h>

enum { N_RECORDS = 10000 };

static const char *const types[] = { "u8",  "u16be", "i32",    "u64", "u64be",
				     "f32", "f64be", "i128be", "b3",  "b13" };
enum { N_TYPES = sizeof types / sizeof types[0] };

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
	gen_fill(&gen.set, 0, n, data.records);
	return data;
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

TEST(special_halves_are_all_there)
{
	count_special_halves("f16", 0x7c00);
	count_special_halves("bf16", 0x7f80);
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
	gen.prefix_nbytes = prefix_nbytes;
	gen_fill(&gen.set, 0, N_RECORDS, records);
}

TEST(bytes_of_records_never_change)
{
	unsigned char *records = malloc(N_RECORDS * RECORD_NBYTES);
	struct layout layout = records_layout();

	assert_non_null(records);
	make_records(&layout, GEN_ZIPF, 3, records);
	assert_int_equal(crc32(0, records, N_RECORDS * RECORD_NBYTES), 0x3e463b65);
	layout_free(&layout);
	free(records);
}

/* Checksums in tests and reports hang on it: a change here is a change of the format. */
TEST(bytes_never_change)
{
	static const uint32_t expected[GEN_NAN + 1] = {
		[GEN_RANDOM] = 0x2e421024,       [GEN_SORTED] = 0xabc14784,
		[GEN_REVERSED] = 0xeb11d47b,     [GEN_EQUAL] = 0xaeaf79c3,
		[GEN_TWO_KEYS] = 0x3cc1fba0,     [GEN_ZIPF] = 0x49809444,
		[GEN_HUNDRED_KEYS] = 0x7975489e, [GEN_NEARLY_SORTED] = 0x8253bfb9,
		[GEN_SAWTOOTH] = 0x5c55f52a,     [GEN_ORGAN_PIPE] = 0xb059e5cd,
		[GEN_CLUSTERED] = 0xf971cc74,    [GEN_NAN] = 0xe76125d7,
	};

	for (unsigned dist = GEN_RANDOM; dist <= GEN_NAN; dist++) {
		unsigned long hash = 0;

		for (unsigned i = 0; i < N_TYPES; i++) {
			struct generated_data data =
				make(types[i], (enum gen_dist)dist, N_RECORDS, 1);

			hash = crc32(hash, data.records,
				     (unsigned)(N_RECORDS * data.layout.record_nbytes));
			free(data.records);
		}
		assert_int_equal(hash, expected[dist]);
	}
}
