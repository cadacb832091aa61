/*
 * progress_display.h - one line that says how far the sort is
 *
 * A thread of its own wakes now and then, asks how far the phase is, and tells on
 * standard error: phase, part done, rate, time left in the phase, and part
 * and time of the whole. On a terminal it rewrites one
 * line in place, a few times a second, and removes it at the end; elsewhere each state is a line,
 * once a second.
 *
 * SIGUSR1 makes it print the line once, whatever the mode. There is no signal handler:
 * progress_display_open() blocks SIGUSR1 for the calling thread, and so for all threads that are
 * started later, and the reporting thread waits for the signal with a timeout, which is its clock
 * as well. So nothing of the program is ever interrupted by it, and nothing need be
 * async-signal-safe.
 */
#pragma once

#include "include/gsort.h"

enum progress_mode {
	PROGRESS_AUTO, /* if standard error is a terminal, and after a second */
	PROGRESS_ALWAYS,
	PROGRESS_NEVER,
};

struct progress_display;

/* Says how far it is, to any thread: gsort_get_progress() of a sort. */
typedef void progress_query(void *context, struct gsort_progress *ret_display);

/*
 * From now on SIGUSR1 waits for progress_display_open(), in this thread and those that are
 * started later: where there are some before that.
 */
void progress_display_block_signal(void);

/*
 * Start reporting. To be called before any other thread exists, but those that hold SIGUSR1, which
 * stays blocked until the process ends. `ask` is called until progress_display_close(). Returns
 * 0, or a negative errno after a message.
 */
int progress_display_open(enum progress_mode mode, progress_query *query, void *context,
			  struct progress_display **ret_display);

/*
 * Stop, wait for the thread, and remove the line; NULL is fine. To be called before the last words
 * to the user.
 */
void progress_display_close(struct progress_display *display);
