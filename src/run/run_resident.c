/*
 * run_resident.c - a sorted chunk in device memory as a run
 *
 * The memory has no blocks of its own: a block begins every `stride` items, and the device fetches
 * its first key. Windows merge slices of the memory directly. Memory that all windows have passed
 * is returned to the system early, a huge page at a time.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/run/run.h"

/*
 * Memory is returned in multiples of DISCARD_NBYTES. A subrun is shorter: its memory is returned in
 * multiples of a quarter of the subrun, within these bounds.
 */
enum { DISCARD_NBYTES = 2 << 20, MIN_DISCARD_NBYTES = 256 << 10 };

struct resident_run {
	struct run run;
	struct device *device;
	const struct layout *layout;
	void (*release)(void *owner);
	void *owner;
	uint64_t discard_nbytes;   /* memory is returned in multiples of this */
	uint64_t discarded_nbytes; /* returned so far, from the start of the memory */
	struct run_samples samples;
};

static void resident_close(struct run *run)
{
	struct resident_run *self = (struct resident_run *)run;

	if (self->release)
		self->release(self->owner);
	free(self->samples.first_keys);
	free(self);
}

static uint64_t resident_block_start(const struct run *run, uint64_t i)
{
	return i * ((const struct resident_run *)run)->samples.stride;
}

static encoded_key_t resident_first_key(const struct run *run, uint64_t i)
{
	return ((const struct resident_run *)run)->samples.first_keys[i];
}

static int resident_sample(struct run *run, struct device_queue *queue, uint64_t stride)
{
	struct resident_run *self = (struct resident_run *)run;
	int r = run_set_stride(run, stride, &self->samples);

	return r < 0 ? r :
		       device_queue_sample(queue, &(struct sample_op){
							  .layout = self->layout,
							  .items = run->memory,
							  .n = run->n_items,
							  .stride = stride,
							  .ret_keys = self->samples.first_keys,
						  });
}

static void resident_discard_slice(struct run *run, const struct slice *slice)
{
	struct resident_run *self = (struct resident_run *)run;
	const uint64_t nbytes = run->n_items * self->layout->resident_nbytes;
	uint64_t merged_nbytes;

	/* Another device merges a copy of its slices, which is not this memory. */
	if (slice->n == 0 || (const char *)slice->elements < run->memory ||
	    (const char *)slice->elements >= run->memory + nbytes)
		return;
	merged_nbytes = (uint64_t)((const char *)slice->elements - run->memory) +
			slice->n * self->layout->resident_nbytes;
	merged_nbytes -= merged_nbytes % self->discard_nbytes;
	if (merged_nbytes <= self->discarded_nbytes)
		return;
	device_discard(self->device, run->memory + self->discarded_nbytes,
		       merged_nbytes - self->discarded_nbytes);
	self->discarded_nbytes = merged_nbytes;
}

static int resident_open_subrun(const struct layout *layout, struct run *run, uint64_t begin,
				uint64_t end, struct run **ret_subrun);

static const struct run_ops resident_run_ops = {
	.close = resident_close,
	.open_subrun = resident_open_subrun,
	.block_start = resident_block_start,
	.first_key = resident_first_key,
	.sample = resident_sample,
	.discard_slice = resident_discard_slice,
};

int run_open_resident(const struct job *job, struct resident_buffer buffer,
		      void (*release)(void *owner), void *owner, struct run **ret_run)
{
	struct resident_run *self = calloc(1, sizeof *self);

	if (!self)
		return fail(-ENOMEM, "no memory for a run");
	*self = (struct resident_run){ .run = { .ops = &resident_run_ops,
						.n_items = buffer.n,
						.memory = buffer.memory,
						.device_index = buffer.device_index,
						.bucket_starts = buffer.bucket_starts,
						.n_buckets = buffer.n_buckets },
				       .device = job->devices[buffer.device_index].device,
				       .layout = job->layout,
				       .release = release,
				       .owner = owner,
				       .discard_nbytes = DISCARD_NBYTES };
	*ret_run = &self->run;
	return 0;
}

static int resident_open_subrun(const struct layout *layout, struct run *run, uint64_t begin,
				uint64_t end, struct run **ret_subrun)
{
	struct resident_run *subrun = malloc(sizeof *subrun);

	(void)layout;
	if (!subrun)
		return fail(-ENOMEM, "no memory for a part of a run");
	*subrun = *(struct resident_run *)run;
	subrun->run.n_items = end - begin;
	subrun->run.n_blocks = 0;
	subrun->run.part_begin += begin;
	subrun->run.memory += begin * subrun->layout->resident_nbytes;
	subrun->release = NULL;
	subrun->discard_nbytes = u64_clamp((end - begin) * subrun->layout->resident_nbytes / 4,
					   MIN_DISCARD_NBYTES, DISCARD_NBYTES);
	subrun->samples = (struct run_samples){ 0 };
	*ret_subrun = &subrun->run;
	return 0;
}

/* --- the queues of a merge --- */

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
	return run_is_resident(run) ? run->ops->sample(run, merge_queues_get(queues, run), stride) :
				      0;
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
