/*
 * key_encode - records to codes and back, many at a time, and what is learnt on the way
 *
 * For layouts in which a record is a code (layout_is_key_only()); of one record alone, see
 * layout_encode(). What sorts and what verifies both use it: it is the definition, only faster.
 */
#pragma once

#include "src/record/layout.h"

/* What decode found out while it wrote records. */
struct decode_result {
	struct digest digest; /* of the records written */
	uint64_t n_disorders; /* neighbours that are out of order */
	encoded_key_t first,
		last; /* elements at the edges, if n > 0: the caller compares windows */
};

/*
 * n records to codes, elements of the layout; their digest is added to *digest unless it is NULL.
 * Records may have any alignment, codes are aligned to their size. The two may be the same memory,
 * or overlap if the records end where the codes end (then they expand in place).
 */
void key_encode_batch(const struct layout *layout, const void *records, uint64_t n, void *keys,
		      struct digest *digest);

/*
 * Codes to records, in place if asked. strict: equal neighbours are disorder, too. Alignment as
 * above.
 */
void key_decode_batch(const struct layout *layout, const void *keys, uint64_t n, bool strict,
		      void *records, struct decode_result *ret_result);
