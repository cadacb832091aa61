/*
 * record - key types, the layout of a record, and what the sort moves in its place
 *
 * A file is a sequence of records of record_nbytes. The keys of a record are mapped to one
 * order-preserving unsigned integer, its code (see code.h); elements (codes of 4, 8 or 16 bytes)
 * are what the kernels sort. Here every record is one plain key, so the code holds the whole
 * record, and decoding the code gives the record back.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "src/code.h"
#include "src/digest.h"

enum key_kind { KEY_UNSIGNED, KEY_SIGNED, KEY_FLOAT, KEY_BYTES };

struct key {
	uint64_t offset; /* first byte in the record */
	uint32_t nbytes;
	enum key_kind kind;
	bool big_endian; /* always true for KEY_BYTES */
	bool descending;
};

/* An element of any size, widened: what splitters and samples are made of. */
typedef uint128_t code_t;

struct layout {
	struct key key;
	uint64_t record_nbytes;
	uint32_t element_nbytes; /* 4, 8 or 16 */
	/*
	 * What a stored run consists of, in items of item_nbytes = record_nbytes: the elements when
	 * they are as wide as the records (stores_elements), else the records, which are encoded
	 * again when they are read. So a run never takes more room than its records do.
	 */
	bool stores_elements;
	struct code_map map;
};

/*
 * Parse a TYPE of the command line ("u64", "i32be", "f64le", "b10") into *ret_key, at offset 0,
 * ascending. Returns 0, or -EINVAL without a message when `text` is no type; *ret_key is then
 * untouched.
 */
int key_parse_type(const char *text, struct key *ret_key);

/* Write the TYPE of `key` into `text`, "f32be" say. */
void key_format_type(const struct key *key, char text[static 16]);

/*
 * The layout of records that are one plain key (offset 0, 1 to 16 bytes).
 * Returns 0, or -ENOTSUP without a message for a wider key.
 */
int layout_make_plain(const struct key *key, struct layout *ret_layout);

/* The code of the record at `record` (record_nbytes, any alignment), widened. */
code_t layout_encode(const struct layout *layout, const void *record);

/* The record of `code` into `record`. */
void layout_decode(const struct layout *layout, code_t code, void *record);

/* The element at index i of an array of elements, widened. */
code_t element_get(const void *elements, uint32_t element_nbytes, uint64_t i);
