/*
 * record_totals - what has become of records
 *
 * Every record is entered where it is read, and again where it is written or dropped. In between it
 * lives in a run, a chunk, a window; when the sort is done nothing may be left there:
 *
 *	read = written + dropped
 *
 * as multisets (digest.h). Each part of the sort keeps a ledger of its own, and adds it to that of
 * whoever asked for its work.
 */
#pragma once

#include "src/record/digest.h"

struct record_totals {
	struct digest read;    /* from the inputs */
	struct digest written; /* to the output */
	struct digest dropped; /* equal to one that is kept (-u), or beyond the limit */
};

static inline void record_totals_add(struct record_totals *total, struct record_totals addend)
{
	digest_add(&total->read, addend.read);
	digest_add(&total->written, addend.written);
	digest_add(&total->dropped, addend.dropped);
}

/* Those that are accounted for: written or dropped. */
static inline struct digest record_totals_accounted(struct record_totals totals)
{
	digest_add(&totals.written, totals.dropped);
	return totals.written;
}

static inline bool record_totals_are_balanced(struct record_totals totals)
{
	return digest_equal(totals.read, record_totals_accounted(totals));
}
