/*
 * output_header - what stands in front of the records of an output
 *
 * Bytes that are copied from an input, or a header that is made anew (npy.h), in which the number
 * of records stands. That is known late: until then there is room for any number.
 *
 *	{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }            \n
 *	                                          count_offset ^   ^ behind         ^ end
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/key_type.h"

struct output_header {
	unsigned char *bytes;
	size_t nbytes;
	char *count_suffix;  /* what follows the number of records; NULL: there is none */
	size_t count_offset; /* where it begins */
};

/* What is written in the place of records (src/record/layout.h). */
struct output_header_params {
	const struct key *keys; /* n_keys, within the record */
	uint32_t n_keys;
	bool count, count_is_be, keys_only, index;
};

/* Does it say how many records there are? */
static inline bool output_header_has_count(const struct output_header *header)
{
	return header->count_suffix != NULL;
}

/* Put the number of records in, if there is one in it. */
void output_header_set_count(struct output_header *header, uint64_t n_records);

/* A zeroed one is fine. */
void output_header_free(struct output_header *header);
