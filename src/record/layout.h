/*
 * layout - the layout of a record, and what the sort moves in its place
 *
 * A file is a sequence of records of record_nbytes, each with one key or more. There are three
 * layouts.
 *
 *	codes	The record is its keys: one of at most 16 bytes, or several that together have each
 *		of its bytes once. It is mapped to an unsigned integer that sorts the same way, its
 *		code (key_encoding.h), and back: nothing else moves. What a run consists of is
 *		elements, the codes, or records where these are narrower.
 *
 *	records	Everything else. A run consists of items: the records, or what stands for them.
 *		Elements are made of the first bytes of the normalised key (normalised_key.h) and
 *		the record's number in the chunk or the window, are sorted or merged, refined
 *		where they tie, and then the items are gathered in their order.
 *
 *	references  Records that lie in memory as a whole, and stay there, since they are mapped.
 *		What a run consists of is elements as above, but with the record's number in the
 *		whole input. They hold all of the key, so they are as good as codes; records are
 *		gathered once, when the output is made.
 *
 * An item is what of a record must travel: mostly the record as it is. Some results are made of
 * something else, which is put together once, when the record is read, so that a run, a merge and
 * the output need not know:
 *
 *	  u64 count         body                      u64 position
 *	[ --count only ][ the record, or with       ][ --argsort only ]
 *	                  --keys-only or --argsort
 *	                  its keys, one after the other ]
 *
 * and the output is made of a range of it. The count is of the records that the item stands for,
 * 1 at first, added up by -u, in the byte order that the user reads; the position is of the record
 * in the input, counted in records, little-endian.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/record/key_encoding.h"
#include "src/record/digest.h"
#include "src/record/key_type.h"
#include "src/record/normalised_key.h"

/* An element of any size, widened: what splitters and samples are made of. */
typedef uint128_t encoded_key_t;

/* The longest record. */
enum { LAYOUT_MAX_RECORD_NBYTES = 65536 };

/* The first that suits is taken: whatever is a record is sorted as the last. */
enum layout_kind { LAYOUT_KEY_ONLY, LAYOUT_INDIRECT, LAYOUT_RECORDS, N_LAYOUT_KINDS };

/* nbytes of a record to an item. */
struct projection_copy {
	uint32_t record_offset, item_offset, nbytes;
};

/* How an item is made of a record. Plain data; the array is the layout's. */
struct projection {
	const struct projection_copy *copies; /* n_copies, in the order of `to`: the body */
	uint32_t n_copies;
	bool is_identity; /* the item is the record */
	bool has_count;   /* at offset 0 */
	bool count_is_big_endian;
	bool has_position; /* in the last 8 bytes */
};

struct layout {
	enum layout_kind kind;
	uint64_t record_nbytes; /* in the input */
	uint64_t item_nbytes;   /* of a stored run; record_nbytes for codes */
	/* Of a run in device memory, for each record: the element, or of records the item. */
	uint64_t resident_nbytes;
	/* What the output takes of an item. */
	uint64_t output_offset, output_nbytes;

	/* Codes */
	uint32_t element_nbytes; /* 4, 8 or 16 */
	/*
	 * What a stored run consists of: the elements when they are as wide as the records
	 * (stores_elements), else the records, which are encoded again when they are read. So a run
	 * never takes more room than its records do.
	 */
	bool stores_elements;
	struct key_encoding encoding;

	/* Records and references; element_nbytes is 8 or 16 */
	struct projection projection;
	uint64_t body_offset, body_nbytes; /* of an item: what is digested */
	struct key_fields item_keys;

	/* Any */
	struct key key; /* the first, as it was given */
	struct key_fields record_keys;
};

/* What a layout is made for. */
struct layout_params {
	uint64_t record_nbytes;
	const struct key *keys; /* n_keys, at least 1, in the order of their weight; copied */
	uint32_t n_keys;
	/* LAYOUT_RECORDS also for codes, in their order: something asks for items */
	bool force_records;
	bool needs_equality; /* keys that are equal must be known as such: -u, or the input is in
				order */
	bool count, keys_only, argsort;
};

/*
 * Make a layout. Keys must lie within the record. Returns 0; -EINVAL without a message if one does
 * not; -ENOTSUP without a message for records of more than 64 KiB; -ENOMEM after one. The layout
 * owns memory: layout_free().
 */
int layout_make(const struct layout_params *params, struct layout *ret_layout);

/* What a key takes in the normalised key. */
uint32_t key_normalised_nbytes(const struct key *key);

/* A zeroed layout is fine. */
void layout_free(struct layout *layout);

/*
 * The layout of records that are one plain key (offset 0, 1 to 16 bytes); owns nothing that must be
 * freed, and has no record_keys. Returns 0, or -ENOTSUP without a message for a wider key.
 */
int layout_make_key_only(const struct key *key, struct layout *ret_layout);

/*
 * The layout of references to records whose layout is `records`, if elements hold all of their keys
 * and it pays to leave them where they are. It borrows what the other owns. Returns whether there
 * is one.
 */
bool layout_make_indirect(const struct layout *records, struct layout *ret_layout);

/* --- What every kind of layout can do (layout_ops.h) --- */

/* Does the record become another item when it is read? Else it is the item, or an element of it. */
static inline bool layout_has_projection(const struct layout *layout)
{
	return !layout->projection.is_identity;
}

/*
 * Does a run in device memory consist of elements that hold all of the key? They are made of
 * records before they are sorted, and become records again when they are merged. Else it consists
 * of items, and what is merged of it is what is written.
 */
bool layout_has_elements(const struct layout *layout);
/* Do the records stay where they are until the output is made? */
bool layout_is_indirect(const struct layout *layout);
/* Is a record one code, and nothing else? */
bool layout_is_key_only(const struct layout *layout);

/* A whole key, as splitters have it: so many bytes, 16 at least, without an alignment. */
size_t layout_key_nbytes(const struct layout *layout);
/*
 * What is known of the first key of each block, and as good as it if keys are no longer: the
 * beginning of the whole key, as a number that sorts as the keys do. Of a record of the input, and
 * of a whole key.
 */
encoded_key_t layout_record_key(const struct layout *layout, const void *record);
encoded_key_t layout_get_key_prefix(const struct layout *layout, const void *key);
/* The whole key of which this is the beginning; it has no other bytes, or they are the caller's. */
void layout_key_from_prefix(const struct layout *layout, encoded_key_t prefix, void *key);
/*
 * Where the records of the same key begin: of elements that refer to records, of which no two are
 * equal, that in front of all of them.
 */
encoded_key_t layout_first_equal(const struct layout *layout, encoded_key_t prefix);
/* The whole key of an item. */
void layout_item_key(const struct layout *layout, const void *item, void *key);
/* As memcmp() does. */
int layout_compare_keys(const struct layout *layout, const void *a, const void *b);

/* What is remembered of the first and the last item of a window, to compare it with the next. */
size_t layout_edge_nbytes(const struct layout *layout);
int layout_compare_edges(const struct layout *layout, const void *a, const void *b);

/* --- Codes --- */

/*
 * The codes of a field of at most 16 bytes, of any form but KEY_FORM_NANS, as if it were a record:
 * of two that differ in the normalised key the lesser has the lesser one.
 */
struct key_encoding key_field_encoding(const struct key_field *field);

/* The code of the record at `record` (record_nbytes, any alignment), widened. */
encoded_key_t layout_encode(const struct layout *layout, const void *record);

/* The record of `code` into `record`. */
void layout_decode(const struct layout *layout, encoded_key_t encoded, void *record);

/* The element at index i of an array of elements, widened. */
encoded_key_t element_get(const void *elements, uint32_t element_nbytes, uint64_t i);

/* --- Records --- */

/* The most bytes of the key that an element of a record holds; the rest is its number. */
enum { RECORD_NUMBER_NBYTES = 4 };

static inline uint32_t layout_prefix_nbytes(const struct layout *layout)
{
	return layout->element_nbytes - RECORD_NUMBER_NBYTES;
}

/* May elements tie that are no equals? */
static inline bool layout_needs_refining(const struct layout *layout)
{
	return layout->record_keys.key_nbytes > layout_prefix_nbytes(layout);
}

/* The first 16 bytes of the normalised key of a record or an item, zeros behind its end. */
encoded_key_t layout_key_prefix(const struct key_fields *keys, const void *record);

/* All of the normalised key: key_nbytes, rounded up to 8 with zeros. */
void layout_normalise_key(const struct key_fields *keys, const void *record, unsigned char *key);

/* The item of the record at `position` in the input, with a count of 1. */
void layout_project_record(const struct layout *layout, const void *record, uint64_t position,
			   void *item);

/* The same of n records, from `position` on; adds their bodies to *digest. */
void layout_project_records(const struct layout *layout, const void *records, uint64_t n,
			    uint64_t position, void *items, struct digest *digest);

/* The count of an item, if it has one; else 1. */
uint64_t layout_item_count(const struct layout *layout, const void *item);
void layout_set_item_count(const struct layout *layout, void *item, uint64_t count);

/* The hash of an item's body. */
static inline uint64_t layout_item_hash(const struct layout *layout, const void *item)
{
	return digest_record((const unsigned char *)item + layout->body_offset,
			     layout->body_nbytes);
}
