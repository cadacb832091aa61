/*
 * key_batch.h - encode and decode many key-only records at once
 *
 * layout_encode() is for a single record. Both what sorts and what verifies use these functions:
 * they implement the definition in key_encoding.h, only faster.
 */
#pragma once

#include "src/record/layout.h"

/* What decoding finds out on the way. */
struct decode_result {
	struct digest digest;      /* digest of the records written */
	uint64_t n_disorders;      /* neighbours out of order */
	encoded_key_t first, last; /* elements, if n > 0: the caller compares windows */
};

/*
 * Encode n records to elements, and add their digest to *digest unless it is NULL. Records may have
 * any alignment; elements are aligned to their size. The two may be the same memory, or overlap if
 * the records end where the elements end: then they expand in place.
 */
void key_batch_encode(const struct layout *layout, const void *records, uint64_t n, void *keys,
		      struct digest *digest);

/*
 * Decode n elements to records, which may be the same memory. strict: count equal neighbours as
 * disorders, too. Alignment as for encoding.
 */
void key_batch_decode(const struct layout *layout, const void *keys, uint64_t n, bool strict,
		      void *records, struct decode_result *ret_result);
