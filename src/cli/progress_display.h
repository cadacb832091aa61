/*
 * progress_display.h - one line that shows the progress of a sort on standard error
 *
 * A thread queries the progress at intervals and prints a line: phase, percentage, rate and
 * remaining time of the phase, and percentage and remaining time of the whole sort. On a terminal
 * the line is rewritten in place several times a second and removed at the end. Elsewhere a line is
 * printed once a second.
 *
 * SIGUSR1 prints the line once, in any mode. There is no signal handler: progress_display_open()
 * blocks SIGUSR1 for the calling thread and for all threads that are started later, and the
 * thread waits for the signal with a timeout, which is its clock as well. So the signal interrupts
 * nothing, and the code need not be async-signal-safe.
 */
#pragma once

#include "include/gsort.h"

enum progress_mode {
	PROGRESS_AUTO, /* if standard error is a terminal, and after a second */
	PROGRESS_ALWAYS,
	PROGRESS_NEVER,
};

struct progress_display;

/* Get the progress, as gsort_get_progress() does. Must be thread-safe. */
typedef void progress_query(void *context, struct gsort_progress *ret_display);

/*
 * Block SIGUSR1 in this thread and those that are started later, until progress_display_open()
 * handles it. For programs that start threads before that.
 */
void progress_display_block_signal(void);

/*
 * Start the display. All threads that exist must block SIGUSR1, which stays blocked until the
 * process ends. `query` is called until progress_display_close(). Returns 0 or a negative errno
 * (reported).
 */
int progress_display_open(enum progress_mode mode, progress_query *query, void *context,
			  struct progress_display **ret_display);

/*
 * Stop the display, wait for its thread, and remove the line. Call it before the last messages.
 * NULL is ignored.
 */
void progress_display_close(struct progress_display *display);
