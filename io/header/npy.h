/*
 * npy - the header of a .npy file of numpy
 *
 *	\\x93NUMPY, version 1.0, 118, {'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }
 *
 * The size of the text has 16 bits, or 32 from version 2 on, and is little-endian. Blanks pad the
 * header to a multiple of 64 bytes. The text is a dictionary in Python's syntax. `descr` is a type
 * of numpy, or a list of the fields of a structure. A field has a name, a type, which may be
 * another list, and a shape if it is an array:
 *
 *	'<f8'						one field without a name
 *	[('id', '<u8'), ('at', [('x', '<f4')])]		fields id and at.x
 *
 * A record is what an index of the first dimension selects: an item, or a row of items. Keys have
 * numpy's order: floats are numeric (src/record/key_type.h), arrays are compared as bytes.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/schema.h"

/*
 * --- the header of an output ---
 *
 * A copy of an input's header, or a new .npy header that contains the number of records. That is
 * known late: until then the header has room for any number.
 *
 *	{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }            \
 *
 *	                                          count_offset ^   ^ count_suffix   ^ nbytes
 */

struct output_header {
	unsigned char *bytes;
	size_t nbytes;
	char *count_suffix;  /* text after the number of records; NULL: no number */
	size_t count_offset; /* offset of the number */
};

/* The contents of an output (src/record/layout.h). */
struct output_header_params {
	const struct key *keys; /* n_keys, within the record */
	uint32_t n_keys;
	bool count, count_is_be, keys_only, index;
};

/* Return whether the header contains the number of records. */
static inline bool output_header_has_count(const struct output_header *header)
{
	return header->count_suffix != NULL;
}

/* Set the number of records, if the header contains it. */
void output_header_set_count(struct output_header *header, uint64_t n_records);

/* Free a header, which may be all zeros. */
void output_header_free(struct output_header *header);

/* --- .npy --- */

struct npy {
	uint64_t header_nbytes;
	unsigned version;
	uint64_t n_records;
	struct schema fields; /* of a record */
	char *descr;          /* normalised */
	char *top_names; /* names and titles of the top structure, each with a NUL, and a NUL */
	char *row_shape; /* ", 3" or "" */
};

#define NPY_MAGIC "\x93NUMPY"

enum {
	NPY_PREFIX_NBYTES = 12,
	NPY_MAX_HEADER_NBYTES = 1 << 20, /* numpy writes at most 64 KiB by default */
};

/* Return whether a file begins with the magic number, of whatever version. */
bool npy_has_magic(const unsigned char *bytes, size_t n);

/*
 * Parse the beginning of a file. Returns whether it is a header of a supported version, of
 * *ret_header_nbytes.
 */
bool npy_parse_prefix(const unsigned char *bytes, size_t n, uint64_t *ret_header_nbytes);

/*
 * Parse a complete header; `name` is for messages. Returns 0; -EINVAL (reported) if it is invalid,
 * or gsort cannot sort the data; or -ENOMEM (reported). Free the result in any case.
 */
int npy_parse(const unsigned char *header, uint64_t nbytes, const char *name, struct npy *ret_npy);

/* Free the members, which may be all zeros. */
void npy_free(struct npy *npy);

/* Return whether both have the same records, but perhaps another number of them. */
bool npy_has_same_records(const struct npy *a, const struct npy *b);

/*
 * Make the header of an output, for 0 records. Its size does not depend on their number. Returns 0
 * or -ENOMEM (reported).
 */
int npy_make_header(const struct npy *npy, const struct output_header_params *params,
		    struct output_header *ret_header);
