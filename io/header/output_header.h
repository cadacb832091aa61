/*
 * output_header - what stands in front of the records of an output
 *
 * Bytes that are copied from an input, or a header that is made anew (npy.h), in which the number
 * of records stands. That is known late: until then there is room for any number.
 *
 *	{'descr': '<f8', 'fortran_order': False, 'shape': (1000,), }            \n
 *	                                          count_at ^   ^ behind         ^ end
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/key_type.h"

struct header {
	unsigned char *bytes;
	size_t nbytes;
	char *behind;    /* what follows the number of records; NULL: there is none */
	size_t count_at; /* where it begins */
};

/* What is written in the place of records (src/record/layout.h). */
struct header_wish {
	const struct key *keys; /* n_keys, within the record */
	uint32_t n_keys;
	bool count, count_is_be, keys_only, index;
};

/* Does it say how many records there are? */
static inline bool header_counts(const struct header *header)
{
	return header->behind != NULL;
}

/* Put the number of records in, if there is one in it. */
void header_set_count(struct header *header, uint64_t n_records);

/* A zeroed one is fine. */
void header_free(struct header *header);
