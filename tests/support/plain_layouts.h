/*
 * plain_layouts - every type of the command line, and records of it
 *
 * Included after cmocka.h.
 */
#pragma once

#include "src/record/record.h"
#include "tests/support/elements.h"

/* Around the blocks that encode works in. */
static const uint64_t lengths[] = { 0, 1, 2, 3, 7, 8, 9, 100, 255, 256, 257, 511, 512, 513, 1000 };
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef void check_fn(const struct layout *layout, uint64_t n);

/* check() for every type of the command line, in both directions, and every length. */
static inline void for_all_layouts(check_fn *check)
{
	static const char *const types[] = { "u8",  "u16", "u32", "u64",  "u128", "i8",
					     "i16", "i32", "i64", "i128", "f32",  "f64" };
	char names[12 + 12 + 16][8];
	unsigned n_names = 0;

	for (unsigned i = 0; i < 12; i++) {
		snprintf(names[n_names++], sizeof names[0], "%s", types[i]);
		snprintf(names[n_names++], sizeof names[0], "%sbe", types[i]);
	}
	for (unsigned i = 1; i <= 16; i++)
		snprintf(names[n_names++], sizeof names[0], "b%u", i);
	for (unsigned i = 0; i < 2 * n_names; i++) {
		struct layout layout;
		struct key key;

		assert_int_equal(key_parse_type(names[i / 2], &key), 0);
		key.descending = i % 2;
		assert_int_equal(layout_make_plain(&key, &layout), 0);
		for (unsigned j = 0; j < N_LENGTHS; j++)
			check(&layout, lengths[j]);
	}
}

static inline unsigned char *make_records(const struct layout *layout, uint64_t n,
					  enum gen_dist dist)
{
	unsigned char *records = guarded_alloc(n * layout->record_nbytes);
	struct gen gen;

	gen_make(layout, dist, n, n, &gen);
	gen_fill(&gen, 0, n, records);
	return records;
}

static inline struct digest reference_digest(const struct layout *layout,
					     const unsigned char *records, uint64_t n)
{
	struct digest digest = { .n_records = n };

	for (uint64_t i = 0; i < n; i++)
		digest.sum +=
			digest_record(records + i * layout->record_nbytes, layout->record_nbytes);
	return digest;
}
