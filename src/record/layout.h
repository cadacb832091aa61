/*
 * layout.h - what a sort moves in place of a record
 *
 *	key-only   elements: encoded keys
 *	indirect   elements: keys and numbers of mapped records, which stay where they are
 *	records    items: the record, or what stands for it
 *
 * layout.c explains them, with examples.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/record/key_encoding.h"
#include "src/record/digest.h"
#include "src/record/key_type.h"
#include "src/record/normalised_key.h"

/* An element of any width, widened. Splitters and samples are made of these. */
typedef uint128_t encoded_key_t;

/* Longer records are refused. */
enum { LAYOUT_MAX_RECORD_NBYTES = 65536 };

/* In the order in which layout_make() tries them. */
enum layout_kind { LAYOUT_KEY_ONLY, LAYOUT_INDIRECT, LAYOUT_RECORDS, N_LAYOUT_KINDS };

/* Bytes of a record that are copied to the item. */
struct projection_copy {
	uint32_t record_offset, item_offset, nbytes;
};

/* How an item is made of a record. Plain data; the layout owns the array. */
struct projection {
	const struct projection_copy *copies; /* n_copies, by item_offset: the body */
	uint32_t n_copies;
	bool is_identity; /* the item is the record */
	bool has_count;   /* at offset 0 */
	bool count_is_big_endian;
	bool has_position; /* in the last 8 bytes of the item */
};

struct layout {
	enum layout_kind kind;
	uint64_t record_nbytes; /* in the input */
	uint64_t item_nbytes;   /* of a stored run; key-only: record_nbytes */
	/* Of a run in device memory: the element, or, for records, the item. */
	uint64_t resident_nbytes;
	/* The part of the item that is written to the output. */
	uint64_t output_offset, output_nbytes;

	/* Key-only */
	uint32_t element_nbytes; /* 4, 8 or 16 */
	/*
	 * A stored run holds the elements if they are as wide as the records (stores_elements),
	 * else the records, which are encoded again when they are read. So a run never takes more
	 * space than its records do.
	 */
	bool stores_elements;
	struct key_encoding encoding;

	/* Records and indirect; element_nbytes is 8 or 16 */
	struct projection projection;
	uint64_t body_offset, body_nbytes; /* the part of the item that is digested */
	struct key_fields item_keys;
	bool keep_last; /* -u keeps the last of equal items, not the first */

	/* All kinds */
	struct key key; /* the first one, as given */
	struct key_fields record_keys;
};

/* What a layout is made for. */
struct layout_params {
	uint64_t record_nbytes;
	const struct key *keys; /* n_keys, at least 1, most significant first; copied */
	uint32_t n_keys;
	/* Make items also if the records are key-only, in the order of their encoded keys. */
	bool force_records;
	bool needs_equality; /* equal keys must compare equal: -u, or the input is sorted */
	bool keep_last;      /* -u keeps the last of equal records, if they differ at all */
	bool count, keys_only, argsort;
};

/*
 * Make a layout. Returns 0; -EINVAL if a key is not within the record, or -ENOTSUP if the record is
 * longer than LAYOUT_MAX_RECORD_NBYTES (both not reported); or -ENOMEM (reported). Free it with
 * layout_free().
 */
int layout_make(const struct layout_params *params, struct layout *ret_layout);

void layout_free(struct layout *layout);

/*
 * Make the layout of records that are one key of 1 to 16 bytes at offset 0. Nothing of it must be
 * freed, and it has no record_keys. Returns 0, or -ENOTSUP (not reported) for other keys.
 */
int layout_make_key_only(const struct key *key, struct layout *ret_layout);

/*
 * Make the indirect layout of records whose layout is `records`, if elements hold all of their keys
 * and it pays to leave the records where they are. It borrows what the other layout owns. Returns
 * whether it was made.
 */
bool layout_make_indirect(const struct layout *records, struct layout *ret_layout);

/* --- For every kind of layout --- */

/* Return whether an item differs from the record. */
static inline bool layout_has_projection(const struct layout *layout)
{
	return !layout->projection.is_identity;
}

/*
 * Return whether a resident run consists of elements that hold all of the key. Elements are encoded
 * before the sort and decoded after the last merge. Other runs consist of items, which are written
 * as they are.
 */
static inline bool layout_has_elements(const struct layout *layout)
{
	return layout->kind != LAYOUT_RECORDS;
}

/* Return whether the records stay in place until the output is made. */
static inline bool layout_is_indirect(const struct layout *layout)
{
	return layout->kind == LAYOUT_INDIRECT;
}

/* Return whether the record consists of its keys only. */
static inline bool layout_is_key_only(const struct layout *layout)
{
	return layout->kind == LAYOUT_KEY_ONLY;
}

/* Return the size of a whole key, as splitters have it: at least 16 bytes, with any alignment. */
size_t layout_key_nbytes(const struct layout *layout);
/*
 * Return the first 16 bytes of a whole key as a number that sorts like them: of a record of the
 * input, and of a whole key. The index has this number for the first key of each block. It decides
 * if whole keys have at most 16 bytes.
 */
encoded_key_t layout_record_key(const struct layout *layout, const void *record);
encoded_key_t layout_get_key_prefix(const struct layout *layout, const void *key);
/* Make a whole key of its first 16 bytes. The caller sets the bytes after them. */
void layout_key_from_prefix(const struct layout *layout, encoded_key_t prefix, void *key);
/*
 * Return the lowest prefix with the same key. (Indirect elements are unique; the lowest one with
 * the key is before all of them.)
 */
encoded_key_t layout_first_equal(const struct layout *layout, encoded_key_t prefix);
/* Make the whole key of an item. */
void layout_item_key(const struct layout *layout, const void *item, void *key);
/* Compare two whole keys like memcmp(). */
int layout_compare_keys(const struct layout *layout, const void *a, const void *b);

/* Return the size of an edge: what is kept of the first and the last item of a window. */
size_t layout_edge_nbytes(const struct layout *layout);
/*
 * Return whether an item with the edge `next` is out of order after one with the edge `last`.
 * strict: equal edges are out of order, too.
 */
bool layout_is_disorder(const struct layout *layout, bool strict, const void *last,
			const void *next);

/* --- Encoded keys --- */

/* Encode the record at `record` (record_nbytes, any alignment), widened. */
encoded_key_t layout_encode(const struct layout *layout, const void *record);

/* Return element i of an array, widened. */
encoded_key_t element_get(const void *elements, uint32_t element_nbytes, uint64_t i);

/* --- Records --- */

/* The number at the end of an element; the rest is the beginning of the key. */
enum { RECORD_NUMBER_NBYTES = 4 };

static inline uint32_t layout_prefix_nbytes(const struct layout *layout)
{
	return layout->element_nbytes - RECORD_NUMBER_NBYTES;
}

/* Return whether elements can tie although their keys differ. */
static inline bool layout_needs_refining(const struct layout *layout)
{
	return layout->record_keys.key_nbytes > layout_prefix_nbytes(layout);
}

/* Return the first 16 bytes of the normalised key of a record or an item, padded with zeros. */
encoded_key_t layout_key_prefix(const struct key_fields *keys, const void *record);

/* Make the whole normalised key: key_nbytes, padded with zeros to a multiple of 8. */
void layout_normalise_key(const struct key_fields *keys, const void *record, unsigned char *key);

/* Make the item of the record at `position` in the input, with a count of 1. */
void layout_project_record(const struct layout *layout, const void *record, uint64_t position,
			   void *item);

/* Make the items of n records, from `position` on, and add their bodies to *digest. */
void layout_project_records(const struct layout *layout, const void *records, uint64_t n,
			    uint64_t position, void *items, struct digest *digest);

/* Return the count of an item; 1 if it has none. */
uint64_t layout_item_count(const struct layout *layout, const void *item);
void layout_set_item_count(const struct layout *layout, void *item, uint64_t count);

/* Return the hash of an item's body. */
static inline uint64_t layout_item_hash(const struct layout *layout, const void *item)
{
	return digest_record((const unsigned char *)item + layout->body_offset,
			     layout->body_nbytes);
}
