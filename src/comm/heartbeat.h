/*
 * heartbeat - who has been silent for too long, of those from whom something is awaited
 *
 * A rank that computes sends nothing; its progress thread answers pings (comm.h). A rank from
 * which something is awaited is pinged after a quarter of the timeout without a message from it,
 * and given up after all of it. A rank from which nothing is awaited is not pinged.
 *
 * Who was away himself, stopped or without a processor, cannot say that others were silent: after
 * a pause between two looks everybody's time begins again. Plain data and no clock: one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_state {
	uint64_t last_message_ns; /* or since when something is awaited, if that is later */
	unsigned n_pending;
	bool is_pinged; /* since it was heard */
};

struct heartbeat {
	uint64_t timeout_ns; /* 0: nobody is ever given up */
	uint64_t last_check_ns;
	unsigned n_ranks;
	unsigned n_pending_any;
	struct peer_state *peers;
};

enum heartbeat_state {
	HEARTBEAT_OK,      /* or nothing is awaited */
	HEARTBEAT_PING,    /* ask it: said once for each silence */
	HEARTBEAT_TIMEOUT, /* give it up */
};

/* 0 or -ENOMEM, without a message. */
int heartbeat_init(struct heartbeat *heartbeat, unsigned n_ranks, uint64_t timeout_ns,
		   uint64_t now_ns);
void heartbeat_destroy(struct heartbeat *heartbeat);

/* From now on, and everybody's time begins again. */
void heartbeat_set_timeout(struct heartbeat *heartbeat, uint64_t timeout_ns, uint64_t now_ns);

/* Something is awaited from `rank`, or if that is n_ranks from anybody; and: no more. */
void heartbeat_begin_wait(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns);
void heartbeat_end_wait(struct heartbeat *heartbeat, unsigned rank);

/* Nothing is awaited any more. */
void heartbeat_end_all_waits(struct heartbeat *heartbeat);

void heartbeat_record(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns);

/* Is it time to look at all? So often that a silence is seen a sixteenth too late at most. */
bool heartbeat_needs_check(struct heartbeat *heartbeat, uint64_t now_ns);
enum heartbeat_state heartbeat_check(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns);

/* Is anything awaited that `rank` could send? */
bool heartbeat_is_waiting(const struct heartbeat *heartbeat, unsigned rank);
