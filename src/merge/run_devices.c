/*
 * run_devices.c - a queue for each device that holds resident runs of a merge
 */
#include "src/merge/run_devices.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

static int open_run_device(const struct job *job, uint32_t device_index,
			   struct run_devices *devices)
{
	struct run_device *device = &devices->devices[device_index];
	int r;

	if (device->queue)
		return 0;
	r = device_queue_open(job->devices[device_index].device, QUEUE_PRIORITY_HIGH,
			      &device->queue);
	if (r == 0)
		r = device_event_open(job->devices[device_index].device, &device->event);
	return r < 0 ? job_fail_device(job, device_index, r, "cannot start a merge") : 0;
}

int run_devices_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     struct run_devices *ret_devices)
{
	int r;

	ret_devices->devices = calloc(job->n_devices, sizeof *ret_devices->devices);
	if (!ret_devices->devices)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	ret_devices->n = job->n_devices;
	r = open_run_device(job, job->merge_device, ret_devices);
	for (uint32_t i = 0; i < n_runs && r == 0; i++)
		if (run_is_resident(runs[i]))
			r = open_run_device(job, run_device_index(runs[i]), ret_devices);
	return r;
}

void run_devices_close(struct run_devices *devices)
{
	for (uint32_t i = 0; i < devices->n; i++) {
		device_queue_close(devices->devices[i].queue);
		device_event_close(devices->devices[i].event);
	}
	free(devices->devices);
	*devices = (struct run_devices){ 0 };
}

struct device_queue *run_devices_queue(const struct run_devices *devices, const struct run *run)
{
	return devices->devices[run_device_index(run)].queue;
}

int run_devices_sample(const struct run_devices *devices, struct run *run, uint64_t stride)
{
	return run_is_resident(run) ? run_sample(run, run_devices_queue(devices, run), stride) : 0;
}

int run_devices_wait(const struct run_devices *devices)
{
	int r = 0;

	for (uint32_t i = 0; i < devices->n; i++) {
		const struct run_device *device = &devices->devices[i];
		const int wait_result =
			device->queue ? device_queue_synchronize(device->queue, device->event) : 0;

		if (r == 0)
			r = wait_result;
	}
	return r;
}
