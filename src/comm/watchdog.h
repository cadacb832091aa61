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

struct guard;
struct ranks_settings;
struct transport;

/* Settings are borrowed. Returns 0 or a negative errno, said by fail(). */
int guard_open(const struct ranks_settings *settings, struct guard **ret_guard);
/* NULL is fine. */
void guard_close(struct guard *guard);

/* In place of that of the settings. Any thread. */
void guard_set_stall(struct guard *guard, uint64_t stall_ns);

/* It can be asked to end all; NULL: no more. */
void guard_lend_transport(struct guard *guard, struct transport *transport);

/*
 * The calling thread, always the same, goes into the transport, which may take `patience` times
 * the timeout; and: it has come back.
 */
void guard_enter(struct guard *guard, unsigned patience);
void guard_leave(struct guard *guard);

/*
 * All ranks are being ended: `end_ns` later this process ends with that status, whatever happens.
 * Only the first call counts, and calls before_end(). Any thread.
 */
void guard_begin_end(struct guard *guard, int status);

/* All that could be done has been: end this process now, if nobody else does. Any thread. */
void guard_end(struct guard *guard) __attribute__((noreturn));
