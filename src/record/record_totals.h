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

struct ledger {
	struct digest read;    /* from the inputs */
	struct digest written; /* to the output */
	struct digest dropped; /* equal to one that is kept (-u), or beyond the limit */
};

static inline void ledger_add(struct ledger *to, struct ledger more)
{
	digest_add(&to->read, more.read);
	digest_add(&to->written, more.written);
	digest_add(&to->dropped, more.dropped);
}

/* Those that are accounted for: written or dropped. */
static inline struct digest ledger_gone(struct ledger ledger)
{
	digest_add(&ledger.written, ledger.dropped);
	return ledger.written;
}

static inline bool ledger_balances(struct ledger ledger)
{
	return digest_equal(ledger.read, ledger_gone(ledger));
}
