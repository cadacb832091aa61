/*
 * output_header - the header of an output
 *
 * A copy of an input's header, or a new header of a format (npy.h) that contains the number of
 * records. That is known late: until then the header has room for any number.
 *
 *	{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }            \
 *
 *	                                          count_offset ^   ^ count_suffix   ^ nbytes
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/key_type.h"

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
