/*
 * window_order - where each window begins in the output, and whether it follows the one before
 *
 * A window is numbered when it is cut, but where it starts in the output is settled when its turn
 * comes in front of the writers (only then is it known what -u has dropped). There its first item
 * is compared with the last of the window before, so every neighbour of the output is checked, and
 * what is known of the output so far is added up. It is also where all windows up to this one are
 * known to be merged: what they were merged from can go.
 */
#pragma once

#include <pthread.h>

#include "src/merge/window.h"

struct placement {
	const struct job *job;
	const struct sink *sink;
	struct run *const *runs; /* n_runs */
	uint32_t n_runs;

	/* Under the lock: whose turn it is, and what is known so far */
	pthread_mutex_t lock;
	pthread_cond_t turn_changed;
	uint64_t turn;
	int error;
	bool has_last;
	void *last; /* layout_edge_nbytes() */
	struct merge_result result;
};

/*
 * With what is above the lock set: begin, or go on from sink->start. 0, or -ENOMEM after a message;
 * placement_close() is due in both cases.
 */
int placement_open(struct placement *placement);
void placement_close(struct placement *placement);

/*
 * Wait for the turn of a finished window, find its place in the output, in items, and add up what
 * is known of it; tell the sink if the merge can be taken up behind it. Any thread. 0, the sink's
 * error, or what others have failed with.
 */
int placement_assign(struct placement *placement, const struct window *window,
		     uint64_t *ret_position);

/* The first failure wins; nobody waits any longer. */
void placement_fail(struct placement *placement, int r);
