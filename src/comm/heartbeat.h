/*
 * heartbeat.h - detect silent ranks from which something is awaited
 *
 * A rank that computes sends no messages, but its progress thread answers pings (comm.h). A rank
 * from which something is awaited is pinged after timeout/4 without a message from it, and failed
 * after the timeout. Other ranks are not pinged.
 *
 * A process that was itself stopped or starved of CPU time cannot tell whether the others were
 * silent. So after a long pause between two checks all timeouts start again.
 *
 * Plain data without a clock, for one thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct peer_state {
	uint64_t last_message_ns; /* or, if later, when something was first awaited */
	unsigned n_pending;
	bool is_pinged; /* since its last message */
};

struct heartbeat {
	uint64_t timeout_ns; /* 0: never */
	uint64_t last_check_ns;
	unsigned n_ranks;
	unsigned n_pending_any;
	struct peer_state *peers;
};

enum heartbeat_state {
	HEARTBEAT_OK,      /* or nothing is awaited */
	HEARTBEAT_PING,    /* send a ping; returned once per silence */
	HEARTBEAT_TIMEOUT, /* the rank has failed */
};

/* Returns 0 or -ENOMEM, without a message. */
int heartbeat_init(struct heartbeat *heartbeat, unsigned n_ranks, uint64_t timeout_ns,
		   uint64_t now_ns);
void heartbeat_destroy(struct heartbeat *heartbeat);

/* Change the timeout and start it again for all ranks. */
void heartbeat_set_timeout(struct heartbeat *heartbeat, uint64_t timeout_ns, uint64_t now_ns);

/* Begin or end to await something from `rank`; n_ranks means any rank. */
void heartbeat_begin_wait(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns);
void heartbeat_end_wait(struct heartbeat *heartbeat, unsigned rank);

/* Stop awaiting anything. */
void heartbeat_end_all_waits(struct heartbeat *heartbeat);

void heartbeat_record(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns);

/* Return whether it is time to check: 16 times per timeout. */
bool heartbeat_needs_check(struct heartbeat *heartbeat, uint64_t now_ns);
enum heartbeat_state heartbeat_check(struct heartbeat *heartbeat, unsigned rank, uint64_t now_ns);

/* Return whether something is awaited that `rank` could send. */
bool heartbeat_is_waiting(const struct heartbeat *heartbeat, unsigned rank);
