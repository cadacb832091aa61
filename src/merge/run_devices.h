/*
 * run_devices.h - a queue for each device that holds resident runs of a merge
 *
 *	device 0	[ run 0 ][ run 2 ]	merges: reads these where they are
 *	device 1	[ run 1 ][ run 3 ]	its own queue samples, cuts and reads these
 *
 * What is in a device's memory is worked on by that device's queues. If peer access was found to
 * work (sort_device.peer_access_mask), another device merges it in place, as if it were its own;
 * else the data is copied by way of the host.
 *
 * Used by one thread.
 */
#pragma once

#include "src/run/run.h"

struct run_device {
	struct device_queue *queue; /* NULL: it holds no run and does not merge */
	struct device_event *event;
};

struct run_devices {
	struct run_device *devices; /* job.n_devices */
	uint32_t n;
};

/*
 * Open queues of the device that merges and of those that hold runs. *ret_devices must be zeroed
 * before. Returns 0 or a negative errno (reported); run_devices_close() is due in both cases.
 */
int run_devices_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     struct run_devices *ret_devices);
/* Close the queues, after waiting for what is queued. */
void run_devices_close(struct run_devices *devices);

/* The queue of the device that holds a resident run. */
struct device_queue *run_devices_queue(const struct run_devices *devices, const struct run *run);

/* Queue run_sample() of a resident run on its device. Other runs: does nothing. */
int run_devices_sample(const struct run_devices *devices, struct run *run, uint64_t stride);

/* Wait for all that is queued on the queues. Returns 0 or a negative errno (reported). */
int run_devices_wait(const struct run_devices *devices);
