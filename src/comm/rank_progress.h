/*
 * rank_progress - how far several ranks are together, while they are at it
 *
 * When somebody wants to know at the first rank, that asks the others, waits for their answers for
 * a moment, and adds up what it has: of a rank that has not answered what it said last. So nothing
 * is sent as long as nobody looks, and to nobody but who has answered the last question. What the
 * ranks do does not wait for it; and a rank that is lost is no affair of this, but of those who
 * await something of it (ranks_receive_patiently()).
 *
 *	first rank			another one
 *	news_get()  --- how far? --->	a thread that does nothing else
 *		    <-- standing ---
 *	news_finish() -- the last -->	ends
 *		    <-- standing ---
 */
#pragma once

#include "src/base/stats.h"
#include "src/comm/comm.h"

struct news;

/*
 * Every rank does it, when it likes. stats: of the own part; borrowed until news_close().
 * interval_ns: between two questions; until then what is known will do. Returns 0 or a negative
 * errno after a message, as does news_finish().
 */
int news_open(struct ranks *ranks, struct stats *stats, uint64_t interval_ns,
	      struct news **ret_news);

/* Of all ranks, at the first; at others, of the own part. Any thread. */
void news_get(struct news *news, struct stats_progress *ret_progress);

/*
 * All ranks have done all; every rank calls it, as a collective. From then on news_get() says how
 * it has ended.
 */
int news_finish(struct news *news);

/* If it is not finished, the sort has failed, and this rank gives up. NULL is fine. */
void news_close(struct news *news);
