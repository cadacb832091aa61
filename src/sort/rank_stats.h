/*
 * rank_stats - what each of several ranks has done, and what that comes to
 *
 * Every rank knows its own facts and statistics. When all is done they are sent to the first as a
 * list of numbers, which one table (rank_stats.c) describes: where each stands, and what becomes
 * of it when ranks are added up. So a number that is new is one row, and whoever tells of a sort
 * is given the whole in the same structs as the sort of one process.
 */
#pragma once

#include "src/comm/comm.h"
#include "src/sort/sort_summary.h"

/* What one rank has done, or all of them. */
struct rank_summary {
	struct sort_summary summary;
	struct stats_totals totals; /* without devices */
};

struct rank_stats {
	/*
	 * Bytes, records and times of processors are added up, and so is memory; of how long
	 * something took it is what the slowest rank has. Names are those of the first;
	 * only which devices it has each rank says for itself (facts.backend).
	 */
	struct rank_summary total;
	unsigned n_ranks;
	struct rank_summary *ranks;      /* n, by rank */
	char (*hosts)[COMM_HOST_NBYTES]; /* n: the machine of each */
};

/*
 * Every rank calls it, with its own; the first waits for all. Messages have a tag of their own,
 * which is nobody else's. Returns 0, with *ret_stats NULL for all but the first, or a negative
 * errno after a message.
 */
int rank_stats_gather(struct comm *comm, const struct rank_summary *own_summary,
		      struct rank_stats **ret_stats);

/* NULL is fine. */
void rank_stats_close(struct rank_stats *stats);

/* Add what one rank has done to what others have. */
void rank_stats_add(struct rank_summary *sum, const struct rank_summary *entry);

/*
 * How much more than its share the rank has written that has written most, in parts of that share.
 */
double rank_stats_imbalance(const struct rank_stats *stats);
