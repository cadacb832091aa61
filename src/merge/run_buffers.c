/*
 * run_buffers - what the runs of a merge offer to a window, before it is cut (see run_buffers.h)
 */
#include "src/merge/run_buffers.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/merge/run_buffers_internal.h"

/* First keys of runs in device memory. */
static int sample_buffered_runs(struct run_buffers *buffers, uint64_t stride)
{
	int r = 0;

	for (uint32_t i = 0; i < buffers->n_runs && r == 0; i++)
		r = run_devices_sample(&buffers->run_devices, buffers->runs[i].run, stride);
	return r < 0 ? r : run_devices_wait(&buffers->run_devices);
}

/* If something is to be read: by whom. */
static int open_read_threads(struct run_buffers *buffers)
{
	uint32_t n_read = 0, n_fetchers = buffers->job->plan.n_fetchers;
	int r;

	for (uint32_t i = 0; i < buffers->n_runs; i++)
		n_read += run_buffer_is_read(&buffers->runs[i]);
	if (n_read == 0)
		return 0;
	r = thread_pool_open(n_fetchers < n_read ? n_fetchers : n_read, &buffers->thread_pool);
	return r < 0 ? fail(r, "no memory for %u readers", n_fetchers) : 0;
}

/* Of a record that is on its way to the device, in host memory; 0: none is. */
static size_t staging_item_nbytes(const struct run_buffers *buffers)
{
	const struct layout *layout = buffers->job->layout;
	size_t max_nbytes = 0;

	for (uint32_t i = 0; buffers->job->plan.copies_to_device && i < buffers->n_runs; i++) {
		const struct run_buffer *buffer = &buffers->runs[i];
		size_t nbytes = 0;

		if (run_buffer_is_read(buffer))
			nbytes = layout->item_nbytes;
		else if (buffer->peer_memory)
			nbytes = layout->resident_nbytes;
		max_nbytes = nbytes > max_nbytes ? nbytes : max_nbytes;
	}
	return max_nbytes;
}

/* Where to what comes from elsewhere, if that cannot be device memory. */
static int open_staging(struct run_buffers *buffers)
{
	const struct job *job = buffers->job;
	void *staging;
	int r;

	buffers->staging_nbytes = buffers->capacity_records * staging_item_nbytes(buffers);
	if (buffers->staging_nbytes == 0)
		return 0;
	r = device_alloc(job_device(job), MEMORY_HOST, buffers->staging_nbytes, &staging);
	if (r < 0)
		return fail(r, "no pinned memory to read runs into: %m; try a smaller -S");
	buffers->staging = staging;
	return 0;
}

static int run_buffers_start(struct run_buffers *buffers, struct run *const *runs,
			     uint64_t resident_stride)
{
	const struct job *job = buffers->job;
	int r;

	buffers->available = calloc(buffers->n_runs, sizeof *buffers->available);
	if (!buffers->available)
		return fail(-ENOMEM, "no memory for a merge of %u runs", buffers->n_runs);
	r = run_devices_open(job, runs, buffers->n_runs, &buffers->run_devices);
	if (r < 0)
		return r;
	buffers->queue = buffers->run_devices.devices[job->merge_device].queue;
	buffers->event = buffers->run_devices.devices[job->merge_device].event;
	r = open_read_threads(buffers);
	if (r == 0)
		r = open_staging(buffers);
	return r < 0 ? r : sample_buffered_runs(buffers, resident_stride);
}

/* A run is merged from where it is if this device can read it there. */
static struct run_buffer make_run_buffer(const struct job *job, struct run *run)
{
	const char *memory = run_memory(run);
	const bool is_accessible = run_is_peer_accessible(job, run);

	return (struct run_buffer){
		.run = run,
		.memory = is_accessible ? memory : NULL,
		.peer_memory = is_accessible ? NULL : memory,
	};
}

int run_buffers_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     const struct window_plan *windows, struct run_buffers **ret_buffers)
{
	struct run_buffers *buffers = calloc(1, sizeof *buffers + n_runs * sizeof buffers->runs[0]);
	int r;

	if (!buffers)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	buffers->job = job;
	buffers->capacity_records = windows->capacity_records;
	buffers->n_runs = n_runs;
	for (uint32_t i = 0; i < n_runs; i++)
		buffers->runs[i] = make_run_buffer(job, runs[i]);
	r = run_buffers_start(buffers, runs, windows->resident_stride);
	if (r < 0) {
		run_buffers_close(buffers);
		return r;
	}
	*ret_buffers = buffers;
	return 0;
}

void run_buffers_close(struct run_buffers *buffers)
{
	if (!buffers)
		return;
	run_devices_close(&buffers->run_devices);
	thread_pool_close(buffers->thread_pool);
	device_free(job_device(buffers->job), MEMORY_HOST, buffers->staging,
		    buffers->staging_nbytes);
	free(buffers->available);
	block_unpack_free(&buffers->unpack);
	free(buffers);
}

int run_buffers_load_item(void *context, struct run *run, uint64_t block, void *item)
{
	struct run_buffers *buffers = context;
	const struct job *job = buffers->job;
	const size_t item_nbytes = job->layout->item_nbytes;
	const char *memory = run_memory(run);
	int r;

	if (!memory)
		return run_read_first_item(run, block, item);
	r = device_queue_copy(run_devices_queue(&buffers->run_devices, run), item,
			      memory + run_block_start(run, block) * item_nbytes, item_nbytes);
	return r < 0 ? r : run_devices_wait(&buffers->run_devices);
}

int run_buffers_cut(struct run_buffers *buffers, const struct splitter *splitter, uint32_t slice,
		    uint64_t *ret_cuts)
{
	int r = device_queue_cut(buffers->queue, &(struct cut_op){
							 .layout = buffers->job->layout,
							 .slices = buffers->available,
							 .k = buffers->n_runs,
							 .key = splitter->key,
							 .slice = slice,
							 .ret_cuts = ret_cuts,
						 });

	return r < 0 ? r : device_queue_synchronize(buffers->queue, buffers->event);
}

uint64_t run_buffers_n_available(const struct run_buffers *buffers, uint32_t i)
{
	return buffers->available[i].n;
}

/* What of the slices is, or was, with other devices: read there, or by way of the host. */
static void count_peer_reads(const struct run_buffers *buffers, const struct slice *slices)
{
	const struct job *job = buffers->job;
	struct device_totals device_totals = { 0 };

	for (uint32_t i = 0; i < buffers->n_runs; i++) {
		const struct run_buffer *buffer = &buffers->runs[i];
		const uint64_t nbytes = slices[i].n * job->layout->resident_nbytes;

		if (buffer->peer_memory)
			device_totals.staged_read_nbytes += nbytes;
		else if (buffer->memory && run_device_index(buffer->run) != job->merge_device)
			device_totals.peer_read_nbytes += nbytes;
	}
	stats_add_device(job->stats, job->devices[job->merge_device].stats_index, &device_totals);
}

uint64_t run_buffers_take(struct run_buffers *buffers, const uint64_t *cuts, struct slice *slices)
{
	const uint64_t resident_nbytes = buffers->job->layout->resident_nbytes;
	uint64_t n = 0;

	for (uint32_t i = 0; i < buffers->n_runs; i++) {
		struct run_buffer *buffer = &buffers->runs[i];
		const struct slice *available = &buffers->available[i];
		const uint64_t n_taken = cuts ? cuts[i] : available->n;

		slices[i] = (struct slice){ .elements = available->elements, .n = n_taken };
		buffer->leftover = (const char *)available->elements + n_taken * resident_nbytes;
		buffer->n_leftover = available->n - n_taken;
		buffer->position += n_taken;
		n += n_taken;
	}
	count_peer_reads(buffers, slices);
	return n;
}

struct record_totals run_buffers_totals(const struct run_buffers *buffers)
{
	struct record_totals sum = { 0 };

	for (uint32_t i = 0; i < buffers->n_runs; i++)
		record_totals_add(&sum, buffers->runs[i].totals);
	return sum;
}
