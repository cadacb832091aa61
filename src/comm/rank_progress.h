/*
 * rank_progress.h - progress of a distributed sort
 *
 * When the progress is requested on rank 0, it queries the other ranks, waits a moment for their
 * replies and adds up the counters. For a rank that has not replied it uses the previous reply. So
 * nothing is sent unless the progress is requested, and only ranks that have answered the previous
 * query are queried. The sort never waits for a reply. A lost rank is not detected here, but by
 * those who await its messages (COMM_UNWATCHED).
 *
 *	rank 0				other ranks
 *	rank_progress_get()    --- query --->	a thread that only answers queries
 *			    <-- counters ---
 *	rank_progress_finish() -- last query ->	ends
 *			    <-- counters ---
 */
#pragma once

#include "src/base/stats.h"
#include "src/comm/comm.h"

struct rank_progress;

/*
 * Called by every rank, at any time. `stats` counts the own part and is used until
 * rank_progress_close(). interval_ns: the minimum time between two queries.
 */
int rank_progress_open(struct comm *comm, struct stats *stats, uint64_t interval_ns,
		       struct rank_progress **ret_progress);

/* Get the progress of all ranks on rank 0, and of the own part on others. Thread-safe. */
void rank_progress_get(struct rank_progress *rank_progress, struct stats_progress *ret_progress);

/* Collective. Call it when the sort is done; rank_progress_get() then returns the final state. */
int rank_progress_finish(struct rank_progress *progress);

/* Fails the job unless rank_progress_finish() has succeeded. NULL is ignored. */
void rank_progress_close(struct rank_progress *progress);
