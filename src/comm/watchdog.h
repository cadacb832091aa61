/*
 * watchdog.h - detect ranks that have failed, and end a process that hangs
 *
 * The watchdog is a thread that ends the process if nothing else does. It calls nothing that could
 * hang. It acts in two cases:
 *
 * - A call of the transport has not returned within the timeout: it reports that and aborts the
 *   job.
 * - The job is being aborted, and the process is still there after abort_timeout_ns.
 *
 * Time is counted in rounds of this thread, so a process that was stopped and continued does not
 * look like one that hangs.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct watchdog;
struct transport;

struct watchdog_params {
	uint64_t timeout_ns;       /* of a call of the transport; 0: none */
	uint64_t abort_timeout_ns; /* from watchdog_begin_abort() to the end of the process */
	/* Called once, by any thread, when the job is aborted. May be NULL. */
	void (*before_abort)(void *context);
	void *context;
	/* End the process at once, without exit handlers. */
	void (*exit_process)(int status) __attribute__((noreturn));
};

/* Start the thread. Copies the parameters. */
int watchdog_open(const struct watchdog_params *params, struct watchdog **ret_watchdog);
/* NULL is ignored. */
void watchdog_close(struct watchdog *watchdog);

/* Change the timeout. Thread-safe. */
void watchdog_set_timeout(struct watchdog *watchdog, uint64_t timeout_ns);

/* Set the transport to abort the job with; NULL: none yet, or it is being closed. */
void watchdog_set_transport(struct watchdog *watchdog, struct transport *transport);

/* Mark the beginning and the end of a call of the transport. Always the same thread. */
void watchdog_begin_call(struct watchdog *watchdog);
void watchdog_end_call(struct watchdog *watchdog);

/*
 * Begin to abort the job: call before_abort(), and end this process after abort_timeout_ns at the
 * latest. Only the first call has an effect. Thread-safe.
 */
void watchdog_begin_abort(struct watchdog *watchdog, int status);

/* End this process now, unless another thread already does. Thread-safe. */
void watchdog_exit_process(struct watchdog *watchdog) __attribute__((noreturn));

/*
 * --- heartbeat: silent ranks from which something is awaited ---
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
