/*
 * npy - the header of a .npy file of numpy: what its items are, and how many
 *
 *	\x93NUMPY, version 1.0, 118, {'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }
 *
 * The size, of the text that follows, has 16 bits, or 32 from version 2 on, and is little-endian;
 * blanks make the whole a multiple of 64 bytes. The text is Python's spelling of a dictionary.
 * `descr` is a type of numpy, or a list of the fields of a structure, each with a name, a type,
 * which may be such a list again, and the shape of an array of it:
 *
 *	'<f8'						one field without a name
 *	[('id', '<u8'), ('at', [('x', '<f4')])]		fields id and at.x
 *
 * A record is what one step of the first dimension of `shape` comes to: an item, or a row of them.
 * The order of its keys is that of numpy: floats are numeric (src/record/key_type.h). An array of a
 * field is sorted as its bytes, as numpy does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/header/output_header.h"
#include "src/record/schema.h"

struct npy {
	uint64_t header_nbytes;
	unsigned version;
	uint64_t n_records;
	struct schema fields; /* of a record */
	char *descr;          /* as gsort spells it */
	char *top_names; /* of the structure that it is, with titles; each has a NUL, and all; none
			    is empty */
	char *row_shape; /* the shape of a record: ", 3", or "" */
};

#define NPY_MAGIC "\x93NUMPY"

enum {
	NPY_PREFIX_NBYTES = 12,
	NPY_MAX_HEADER_NBYTES = 1 << 20, /* numpy writes 64 KiB at most without being asked */
};

/* Do these n bytes begin as such a file does, of whatever version, or cut off? */
bool npy_has_magic(const unsigned char *bytes, size_t n);

/*
 * Do these n bytes, the first of a file, begin such a header? Then *ret_header_nbytes are before
 * the first record.
 */
bool npy_parse_prefix(const unsigned char *bytes, size_t n, uint64_t *ret_header_nbytes);

/*
 * What does the header say, all of which is there? `name` is for messages. Returns 0; -EINVAL after
 * a message that says what gsort cannot sort, or not understand; -ENOMEM after one. To be freed in
 * any case.
 */
int npy_parse(const unsigned char *header, uint64_t nbytes, const char *name, struct npy *ret_npy);

/* A zeroed struct is fine. */
void npy_free(struct npy *npy);

/* Are the records of both the same in all but their number? */
bool npy_has_same_records(const struct npy *a, const struct npy *b);

/*
 * The header of what is written of such records, of a size that does not depend on their number,
 * which is 0 at first. Returns 0 or -ENOMEM after a message.
 */
int npy_make_header(const struct npy *npy, const struct output_header_params *params,
		    struct output_header *ret_header);
