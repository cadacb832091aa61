/*
 * progress - one line that says how far the sort is
 *
 * A thread of its own wakes a few times a second, asks the stats how far the phase is, and rewrites one
 * line on standard error: phase, part done, rate, time left. On a terminal the line is rewritten in
 * place and removed at the end; elsewhere each state is a line, once a second.
 *
 * SIGUSR1 makes it print the line once, whatever the mode. There is no signal handler: progress_open()
 * blocks SIGUSR1 for the calling thread and so for all threads that it starts later, and the
 * thread waits for the signal with a timeout, which is its clock as well. So nothing of the program
 * is ever interrupted by it, and nothing need be async-signal-safe.
 */
#pragma once

#include <stddef.h>

#include "src/stats.h"

enum progress_mode {
	PROGRESS_AUTO, /* if standard error is a terminal, and after a second */
	PROGRESS_ALWAYS,
	PROGRESS_NEVER,
};

struct progress;

/*
 * Start reporting. Call before any other thread exists. `stats` must outlive it.
 * Returns 0, or a negative errno after a message.
 */
int progress_open(enum progress_mode mode, struct stats *stats, struct progress **ret_progress);

/* Stop, wait for the thread, and remove the line; NULL is fine. Before the last words to the user. */
void progress_close(struct progress *progress);

/* The line, without its end, as at `progress`: "merging  43%  1.2 GB/s  0:12 left". */
void progress_format(const struct stats_progress *progress, char *text, size_t text_nbytes);
