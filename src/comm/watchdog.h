/*
 * watchdog - a thread that ends the process when nobody else can
 *
 * It calls nothing that could hang. Two things make it act:
 *	a call of the transport has not returned for the timeout: it says so, tries to end all
 *	the end has been decided, and `end_ns` later the process is still there
 *
 * Time is counted in its own rounds, so a process that was stopped and goes on is not taken for
 * one that hangs.
 */
#pragma once

#include <stdint.h>

struct watchdog;
struct comm_params;
struct transport;

/* Settings are borrowed. Returns 0 or a negative errno, said by fail(). */
int watchdog_open(const struct comm_params *params, struct watchdog **ret_watchdog);
/* NULL is fine. */
void watchdog_close(struct watchdog *watchdog);

/* In place of that of the settings. Any thread. */
void watchdog_set_timeout(struct watchdog *watchdog, uint64_t timeout_ns);

/* It can be asked to end all; NULL: no more. */
void watchdog_set_transport(struct watchdog *watchdog, struct transport *transport);

/*
 * The calling thread, always the same, goes into the transport, which may take `patience` times
 * the timeout; and: it has come back.
 */
void watchdog_begin_call(struct watchdog *watchdog, unsigned timeout_factor);
void watchdog_end_call(struct watchdog *watchdog);

/*
 * All ranks are being ended: `end_ns` later this process ends with that status, whatever happens.
 * Only the first call counts, and calls before_abort(). Any thread.
 */
void watchdog_begin_abort(struct watchdog *watchdog, int status);

/* All that could be done has been: end this process now, if nobody else does. Any thread. */
void watchdog_exit_process(struct watchdog *watchdog) __attribute__((noreturn));
