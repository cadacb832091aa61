/*
 * comm_internal - what the carrier shares with those it carries for; of comm.c, progress_thread.c
 * and p2p.c only
 */
#pragma once

#include <pthread.h>

#include "src/comm/p2p_protocol.h"
#include "src/comm/watchdog.h"
#include "src/comm/comm.h"
#include "src/comm/transport.h"

enum { COMM_EXIT_FAILURE = 2 }; /* of a process that ends because a rank has failed */

struct comm {
	struct comm_params params;
	transport_open_fn *transport_open;
	void *transport_argument;
	struct watchdog *watchdog;
	pthread_t progress_thread;
	unsigned rank, size;
	char (*hosts)[COMM_HOST_NBYTES];

	pthread_mutex_t lock;
	pthread_cond_t work_available; /* something is to be done by the carrier */
	pthread_cond_t state_changed;  /* all are to look: it is open, has forgotten, or failed */
	struct comm_waiter *waiters;   /* for transfers; each is told of its own */
	struct comm_transfer *submitted, **submitted_end;
	bool is_open, cancels_receives, is_closing, is_aborting, has_new_timeout;
	int abort_status; /* if aborting */
	int first_error;  /* of the first failure */
	bool has_stopped; /* of all that was under way then */

	/* The carrier's own. */
	struct transport *transport;
	struct p2p *p2p;
	uint64_t last_progress_ns; /* when something was last to be done */
};

/* A thread that waits for a transfer. There are many: who has nothing to do is not to be woken. */
struct comm_waiter {
	struct comm_waiter *next, **link; /* at: the pointer that leads here */
	pthread_cond_t wakeup;
};

/* What is waited for until clock_now_ns() says so. */
void comm_cond_init(pthread_cond_t *condition);

/* With the lock. Returns 0, or ETIMEDOUT. */
int comm_cond_timedwait(struct comm *comm, pthread_cond_t *condition, uint64_t until_ns);

/* With the lock: 0, or, when nothing is under way any more, the first failure. */
int comm_get_error(struct comm *comm);

/*
 * Start the carrier; returns when the transport is there, or a negative errno after a message: it
 * cannot be had, and no carrier is left.
 */
int progress_thread_start(struct comm *comm);

/* Returns when it has forgotten what nothing has come for; 0, or the first failure. */
int progress_thread_cancel_receives(struct comm *comm);

/* Returns when all that was sent has gone, and the carrier; 0, or the first failure. */
int progress_thread_stop(struct comm *comm);
