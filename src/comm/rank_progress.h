/*
 * rank_progress - how far several ranks are together, while they are at it
 *
 * When somebody wants to know at the first rank, that asks the others, waits for their answers for
 * a moment, and adds up what it has: of a rank that has not answered what it said last. So nothing
 * is sent as long as nobody looks, and to nobody but who has answered the last question. What the
 * ranks do does not wait for it; and a rank that is lost is no affair of this, but of those who
 * await something of it (comm_receive_unwatched()).
 *
 *	first rank			another one
 *	rank_progress_get()  --- how far? --->	a thread that does nothing else
 *		    <-- standing ---
 *	rank_progress_finish() -- the last -->	ends
 *		    <-- standing ---
 */
#pragma once

#include "src/base/stats.h"
#include "src/comm/comm.h"

struct rank_progress;

/*
 * Every rank does it, when it likes. stats: of the own part; borrowed until rank_progress_close().
 * interval_ns: between two questions; until then what is known will do. Returns 0 or a negative
 * errno after a message, as does rank_progress_finish().
 */
int rank_progress_open(struct comm *comm, struct stats *stats, uint64_t interval_ns,
		       struct rank_progress **ret_progress);

/* Of all ranks, at the first; at others, of the own part. Any thread. */
void rank_progress_get(struct rank_progress *rank_progress, struct stats_progress *ret_progress);

/*
 * All ranks have done all; every rank calls it, as a collective. From then on rank_progress_get()
 * says how it has ended.
 */
int rank_progress_finish(struct rank_progress *progress);

/* If it is not finished, the sort has failed, and this rank gives up. NULL is fine. */
void rank_progress_close(struct rank_progress *progress);
