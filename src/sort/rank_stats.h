/*
 * rank_stats - what each of several ranks has done, and what that comes to
 *
 * Every rank knows its own facts and statistics. When all is done they are sent to the first as a
 * list of numbers, which one table (rank_stats.c) describes: where each stands, and what becomes of it
 * when ranks are added up. So a number that is new is one row, and whoever tells of a sort is given
 * the whole in the same structs as the sort of one process.
 */
#pragma once

#include "src/comm/comm.h"
#include "src/sort/sort_summary.h"

/* What one rank has done, or all of them. */
struct census_entry {
	struct sort_facts facts;
	struct stats_totals totals; /* without devices */
};

struct census {
	/*
	 * Bytes, records and times of processors are added up, and so is memory; of how long
	 * something took it is what the slowest rank has. Names are those of the first;
	 * only which devices it has each rank says for itself (facts.backend).
	 */
	struct census_entry all;
	unsigned n;
	struct census_entry *ranks;       /* n, by rank */
	char (*hosts)[RANKS_HOST_NBYTES]; /* n: the machine of each */
};

/*
 * Every rank calls it, with its own; the first waits for all. Messages have a tag of their own,
 * which is nobody else's. Returns 0, with *ret_census NULL for all but the first, or a negative
 * errno after a message.
 */
int census_take(struct ranks *ranks, const struct census_entry *own, struct census **ret_census);

/* NULL is fine. */
void census_close(struct census *census);

/* Add what one rank has done to what others have. */
void census_add(struct census_entry *sum, const struct census_entry *entry);

/*
 * How much more than its share the rank has written that has written most, in parts of that share.
 */
double census_imbalance(const struct census *census);
