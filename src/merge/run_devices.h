/*
 * run_devices - where the resident runs of a merge live, and a queue of each device there
 *
 *	worker 0	[ run 0 ][ run 2 ]	merges: these from where they lie
 *	worker 1	[ run 1 ][ run 3 ]	sampled, cut and read by a queue of its own
 *
 * What is in a device's memory is for that device's queues. Another device may read it where that
 * was found to work (worker.reaches), and then merges from it as from its own; else what it wants
 * of it goes by way of the host.
 *
 * Used by one thread.
 */
#pragma once

#include "src/run/run.h"

struct run_device {
	struct device_queue *queue; /* NULL: nobody lives there */
	struct device_event *event;
};

struct run_devices {
	struct run_device *devices; /* job.n_devices */
	uint32_t n;
};

/*
 * The worker that merges has one, and all in whose memory runs are. 0, or a negative errno after a
 * message; run_devices_close() is due in both cases, for which *ret_homes must be zeroed before.
 */
int run_devices_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     struct run_devices *ret_devices);
/* Waits for what is queued. */
void run_devices_close(struct run_devices *devices);

/* The queue of a resident run's device. */
struct device_queue *run_devices_queue(const struct run_devices *devices, const struct run *run);

/* As run_sample(), by that queue. */
int run_devices_sample(const struct run_devices *devices, struct run *run, uint64_t stride);

/* Wait for all that was queued in the queues. 0, or a negative errno after a message. */
int run_devices_wait(const struct run_devices *devices);
