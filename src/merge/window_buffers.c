/*
 * window_buffers - the buffers and lanes of windows (see window_buffers.h)
 */
#include "src/merge/window_buffers.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/plan/job.h"

struct window_memory {
	struct device *device;
	struct window_sizes sizes;
	uint32_t n;
	struct window_buffers *buffers; /* n */
};

static int alloc(const struct job *job, enum memory kind, uint64_t nbytes, void **ret_memory)
{
	int r = nbytes ? device_alloc(job_device(job), kind, nbytes, ret_memory) : 0;

	return r < 0 ? job_fail_memory(job, job->worker, r, kind, "windows", nbytes) : 0;
}

static int open_buffers(const struct job *job, const struct window_sizes *sizes,
			struct window_buffers *buffers)
{
	struct device *device = job_device(job);
	int r = alloc(job, MEMORY_DEVICE, sizes->in, &buffers->in);

	if (r == 0)
		r = alloc(job, MEMORY_DEVICE, sizes->out, &buffers->out);
	if (r == 0)
		r = alloc(job, MEMORY_DEVICE, sizes->scratch, &buffers->scratch);
	if (r == 0)
		r = alloc(job, MEMORY_HOST, sizes->host, &buffers->host);
	if (r < 0)
		return r;
	r = lane_open(device, LANE_NORMAL, &buffers->lane);
	if (r == 0)
		r = mark_open(device, &buffers->mark);
	return r < 0 ? job_fail_device(job, job->worker, r, "cannot start a merge") : 0;
}

static void close_buffers(struct device *device, const struct window_sizes *sizes,
			  struct window_buffers *buffers)
{
	lane_close(buffers->lane);
	mark_close(buffers->mark);
	device_release(device, MEMORY_HOST, buffers->host, sizes->host);
	device_release(device, MEMORY_DEVICE, buffers->in, sizes->in);
	device_release(device, MEMORY_DEVICE, buffers->out, sizes->out);
	device_release(device, MEMORY_DEVICE, buffers->scratch, sizes->scratch);
}

int window_memory_open(struct window_memory **ret_memory)
{
	*ret_memory = calloc(1, sizeof **ret_memory);
	return *ret_memory ? 0 : fail(-ENOMEM, "no memory for windows");
}

void window_memory_drop(struct window_memory *memory)
{
	for (uint32_t i = 0; i < memory->n; i++)
		close_buffers(memory->device, &memory->sizes, &memory->buffers[i]);
	free(memory->buffers);
	*memory = (struct window_memory){ 0 };
}

void window_memory_drop_all(const struct job *job)
{
	for (uint32_t i = 0; i < job->n_workers; i++)
		window_memory_drop(job->workers[i].windows);
}

void window_memory_close(struct window_memory *memory)
{
	if (memory)
		window_memory_drop(memory);
	free(memory);
}

static bool is_enough(const struct window_memory *memory, uint32_t n,
		      const struct window_sizes *sizes)
{
	const struct window_sizes *has = &memory->sizes;

	return memory->n == n && has->in >= sizes->in && has->out >= sizes->out &&
	       has->scratch >= sizes->scratch && has->host >= sizes->host;
}

static int open_all(struct window_memory *memory, const struct job *job, uint32_t n,
		    const struct window_sizes *sizes)
{
	int r = 0;

	memory->device = job_device(job);
	memory->sizes = *sizes;
	memory->buffers = calloc(n, sizeof *memory->buffers);
	if (!memory->buffers)
		return fail(-ENOMEM, "no memory for %" PRIu32 " windows", n);
	for (; memory->n < n && r == 0; memory->n++)
		r = open_buffers(job, sizes, &memory->buffers[memory->n]);
	return r;
}

int window_memory_take(struct window_memory *memory, const struct job *job, uint32_t n,
		       const struct window_sizes *sizes, const struct window_buffers **ret_buffers)
{
	int r = 0;

	if (!is_enough(memory, n, sizes)) {
		window_memory_drop(memory);
		r = open_all(memory, job, n, sizes);
	}
	*ret_buffers = memory->buffers;
	return r;
}
