/*
 * watchdog.h - a thread that ends the process if nothing else does
 *
 * It calls nothing that could hang. It acts in two cases:
 *
 * - A call of the transport has not returned within the timeout: it reports that and aborts the
 *   job.
 * - The job is being aborted, and the process is still there after abort_timeout_ns.
 *
 * Time is counted in rounds of this thread, so a process that was stopped and continued does not
 * look like one that hangs.
 */
#pragma once

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

/* The transport to abort the job with; NULL: none. */
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
