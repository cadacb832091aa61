/*
 * merge_queues.c - a queue for each device that holds resident runs of a merge
 */
#include "src/merge/merge_queues.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

static int open_queue(const struct job *job, uint32_t device_index, struct merge_queues *queues)
{
	struct merge_queue *queue = &queues->by_device[device_index];
	int r;

	if (queue->queue)
		return 0;
	r = device_queue_open(job->devices[device_index].device, QUEUE_PRIORITY_HIGH,
			      &queue->queue);
	if (r == 0)
		r = device_event_open(job->devices[device_index].device, &queue->event);
	return r < 0 ? job_fail_device(job, device_index, r, "cannot start a merge") : 0;
}

int merge_queues_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		      struct merge_queues *ret_queues)
{
	int r;

	ret_queues->by_device = calloc(job->n_devices, sizeof *ret_queues->by_device);
	if (!ret_queues->by_device)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	ret_queues->n = job->n_devices;
	r = open_queue(job, job->merge_device, ret_queues);
	for (uint32_t i = 0; i < n_runs && r == 0; i++)
		if (run_is_resident(runs[i]))
			r = open_queue(job, runs[i]->device_index, ret_queues);
	return r;
}

void merge_queues_close(struct merge_queues *queues)
{
	for (uint32_t i = 0; i < queues->n; i++) {
		device_queue_close(queues->by_device[i].queue);
		device_event_close(queues->by_device[i].event);
	}
	free(queues->by_device);
	*queues = (struct merge_queues){ 0 };
}

struct device_queue *merge_queues_get(const struct merge_queues *queues, const struct run *run)
{
	return queues->by_device[run->device_index].queue;
}

int merge_queues_sample(const struct merge_queues *queues, struct run *run, uint64_t stride)
{
	return run_is_resident(run) ? run_sample(run, merge_queues_get(queues, run), stride) : 0;
}

int merge_queues_wait(const struct merge_queues *queues)
{
	int r = 0;

	for (uint32_t i = 0; i < queues->n; i++) {
		const struct merge_queue *queue = &queues->by_device[i];
		const int wait_result =
			queue->queue ? device_queue_synchronize(queue->queue, queue->event) : 0;

		if (r == 0)
			r = wait_result;
	}
	return r;
}
