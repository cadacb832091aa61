/*
 * plain_layouts.h - layouts of all types and of several keys
 *
 * Included after cmocka.h.
 */
#pragma once

#include "src/record/layout.h"
#include "tests/support/elements.h"
#include "tests/support/key_lists.h"

/* Lengths around the blocks of key_batch_encode(). */
static const uint64_t lengths[] = { 0, 1, 2, 3, 7, 8, 9, 100, 255, 256, 257, 511, 512, 513, 1000 };
enum { N_LENGTHS = sizeof lengths / sizeof lengths[0] };

typedef void check_fn(const struct layout *layout, uint64_t n);

static inline void check_lengths(const struct key *key, check_fn *check)
{
	struct layout layout;

	if (key->kind == KEY_COMPLEX) /* has no code */
		return;
	assert_int_equal(layout_make_key_only(key, &layout), 0);
	for (unsigned i = 0; i < N_LENGTHS; i++)
		check(&layout, lengths[i]);
}

static inline void check_list(const char *list, bool reversed, check_fn *check)
{
	struct layout layout;

	assert_int_equal(key_list_layout(list, reversed, &layout), 0);
	assert_true(layout_is_key_only(&layout));
	for (unsigned i = 0; i < N_LENGTHS; i++)
		check(&layout, lengths[i]);
	layout_free(&layout);
}

/*
 * Call check() for all types of the command line and for records of several keys, in both
 * directions and with all lengths.
 */
static inline void for_each_key_only_layout(check_fn *check)
{
	struct key key;

	for (unsigned i = 0; key_type_by_index(i, &key); i++)
		for (unsigned j = 0; j < (key_has_orders(&key) ? 8 : 4); j++) {
			key.big_endian = j & 1;
			key.descending = j & 2;
			key.numeric = j & 4;
			check_lengths(&key, check);
		}
	for (unsigned nbytes = 1; nbytes <= 16; nbytes++)
		for (unsigned j = 0; j < 2; j++)
			check_lengths(&(struct key){ .nbytes = nbytes,
						     .kind = KEY_BYTES,
						     .big_endian = true,
						     .descending = j },
				      check);
	for (unsigned i = 0; i < 2 * N_COVERING_LISTS; i++)
		check_list(covering_lists[i / 2], i % 2, check);
}

static inline unsigned char *make_records(const struct layout *layout, uint64_t n,
					  enum gen_dist dist)
{
	unsigned char *records = guarded_alloc(n * layout->record_nbytes);
	struct gen gen;

	gen_init(layout, dist, n, n, &gen);
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
