/*
 * run_devices - where the resident runs of a merge live, and a lane of each device there
 *
 *	worker 0	[ run 0 ][ run 2 ]	merges: these from where they lie
 *	worker 1	[ run 1 ][ run 3 ]	sampled, cut and read by a lane of its own
 *
 * What is in a device's memory is for that device's lanes. Another device may read it where that
 * was found to work (worker.reaches), and then merges from it as from its own; else what it wants
 * of it goes by way of the host.
 *
 * Used by one thread.
 */
#pragma once

#include "src/run/run.h"

struct home {
	struct lane *lane; /* NULL: nobody lives there */
	struct mark *mark;
};

struct homes {
	struct home *of; /* job.n_workers */
	uint32_t n;
};

/*
 * The worker that merges has one, and all in whose memory runs are. 0, or a negative errno after a
 * message; homes_close() is due in both cases, for which *ret_homes must be zeroed before.
 */
int homes_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       struct homes *ret_homes);
/* Waits for what is queued. */
void homes_close(struct homes *homes);

/* The lane of a resident run's device. */
struct lane *homes_lane(const struct homes *homes, const struct run *run);

/* As run_sample(), by that lane. */
int homes_sample(const struct homes *homes, struct run *run, uint64_t stride);

/* Wait for all that was queued in the lanes. 0, or a negative errno after a message. */
int homes_wait(const struct homes *homes);
