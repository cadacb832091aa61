/*
 * merge_queues.h - a queue for each device that holds resident runs of a merge
 *
 *	device 0	[ run 0 ][ run 2 ]	merges: reads these where they are
 *	device 1	[ run 1 ][ run 3 ]	its own queue samples, cuts and reads these
 *
 * The queues of a device work on the memory of that device. If peer access was found to work
 * (sort_device.peer_access_mask), another device merges from that memory as if it were its own.
 * Otherwise the data is copied through host memory.
 *
 * Used by one thread.
 */
#pragma once

#include "src/run/run.h"

struct merge_queue {
	struct device_queue *queue; /* NULL: the device holds no run and does not merge */
	struct device_event *event;
};

struct merge_queues {
	struct merge_queue *by_device; /* job.n_devices */
	uint32_t n;
};

/*
 * Open queues of the merging device and of the devices that hold runs. *ret_queues must be zeroed
 * before. Returns 0 or a negative errno (reported); call merge_queues_close() in both cases.
 */
int merge_queues_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      struct merge_queues *ret_queues);

/* Wait for queued operations, and close the queues. */
void merge_queues_close(struct merge_queues *queues);

/* Return the queue of the device that holds a resident run. */
struct device_queue *merge_queues_get(const struct merge_queues *queues, const struct run *run);

/* Queue run_sample() of a resident run on its device. Other runs: does nothing. */
int merge_queues_sample(const struct merge_queues *queues, struct run *run, uint64_t stride);

/* Wait for all operations on the queues. Returns 0 or a negative errno (reported). */
int merge_queues_wait(const struct merge_queues *queues);
