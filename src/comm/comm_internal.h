/*
 * comm_internal - what the carrier shares with those it carries for; of comm.c, progress_thread.c and
 * p2p.c only
 */
#pragma once

#include <pthread.h>

#include "src/comm/p2p_protocol.h"
#include "src/comm/watchdog.h"
#include "src/comm/comm.h"
#include "src/comm/transport.h"

enum { RANKS_STATUS_TROUBLE = 2 }; /* of a process that ends because a rank has failed */

struct ranks {
	struct ranks_settings settings;
	transport_opener *open;
	void *argument;
	struct guard *guard;
	pthread_t carrier;
	unsigned rank, size;
	char (*hosts)[RANKS_HOST_NBYTES];

	pthread_mutex_t lock;
	pthread_cond_t asked;         /* something is to be done by the carrier */
	pthread_cond_t told;          /* all are to look: it is open, has forgotten, or failed */
	struct ranks_waiter *waiting; /* for transfers; each is told of its own */
	struct ranks_transfer *begun, **begun_end;
	bool is_open, is_forgetting, is_closing, is_aborting, has_new_stall;
	int status;      /* if aborting */
	int r;           /* of the first failure */
	bool has_let_go; /* of all that was under way then */

	/* The carrier's own. */
	struct transport *transport;
	struct delivery *delivery;
	uint64_t moved_ns; /* when something was last to be done */
};

/* A thread that waits for a transfer. There are many: who has nothing to do is not to be woken. */
struct ranks_waiter {
	struct ranks_waiter *next, **at; /* at: the pointer that leads here */
	pthread_cond_t told;
};

/* What is waited for until clock_now_ns() says so. */
void ranks_init_timed(pthread_cond_t *condition);

/* With the lock. Returns 0, or ETIMEDOUT. */
int ranks_wait_timed(struct ranks *ranks, pthread_cond_t *condition, uint64_t until_ns);

/* With the lock: 0, or, when nothing is under way any more, the first failure. */
int ranks_failure(struct ranks *ranks);

/*
 * Start the carrier; returns when the transport is there, or a negative errno after a message: it
 * cannot be had, and no carrier is left.
 */
int carrier_start(struct ranks *ranks);

/* Returns when it has forgotten what nothing has come for; 0, or the first failure. */
int carrier_forget(struct ranks *ranks);

/* Returns when all that was sent has gone, and the carrier; 0, or the first failure. */
int carrier_finish(struct ranks *ranks);
