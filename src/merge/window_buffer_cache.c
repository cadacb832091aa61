/*
 * window_buffer_cache - the buffers and queues of windows (see window_buffer_cache.h)
 */
#include "src/merge/window_buffer_cache.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/plan/job.h"

struct window_buffer_cache {
	struct device *device;
	struct window_sizes sizes;
	uint32_t n;
	struct window_buffers *buffers; /* n */
};

static int alloc_window_memory(const struct job *job, enum memory_kind kind, uint64_t nbytes,
			       void **ret_memory)
{
	int r = nbytes ? device_alloc(job_device(job), kind, nbytes, ret_memory) : 0;

	return r < 0 ? job_fail_memory(job, job->merge_device, r, kind, "windows", nbytes) : 0;
}

static int open_buffers(const struct job *job, const struct window_sizes *sizes,
			struct window_buffers *buffers)
{
	struct device *device = job_device(job);
	int r = alloc_window_memory(job, MEMORY_DEVICE, sizes->in, &buffers->in);

	if (r == 0)
		r = alloc_window_memory(job, MEMORY_DEVICE, sizes->out, &buffers->out);
	if (r == 0)
		r = alloc_window_memory(job, MEMORY_DEVICE, sizes->scratch, &buffers->scratch);
	if (r == 0)
		r = alloc_window_memory(job, MEMORY_HOST, sizes->host, &buffers->host);
	if (r < 0)
		return r;
	r = device_queue_open(device, QUEUE_PRIORITY_NORMAL, &buffers->queue);
	if (r == 0)
		r = device_event_open(device, &buffers->event);
	return r < 0 ? job_fail_device(job, job->merge_device, r, "cannot start a merge") : 0;
}

static void close_buffers(struct device *device, const struct window_sizes *sizes,
			  struct window_buffers *buffers)
{
	device_queue_close(buffers->queue);
	device_event_close(buffers->event);
	device_free(device, MEMORY_HOST, buffers->host, sizes->host);
	device_free(device, MEMORY_DEVICE, buffers->in, sizes->in);
	device_free(device, MEMORY_DEVICE, buffers->out, sizes->out);
	device_free(device, MEMORY_DEVICE, buffers->scratch, sizes->scratch);
}

int window_buffer_cache_open(struct window_buffer_cache **ret_cache)
{
	*ret_cache = calloc(1, sizeof **ret_cache);
	return *ret_cache ? 0 : fail(-ENOMEM, "no memory for windows");
}

void window_buffer_cache_clear(struct window_buffer_cache *cache)
{
	for (uint32_t i = 0; i < cache->n; i++)
		close_buffers(cache->device, &cache->sizes, &cache->buffers[i]);
	free(cache->buffers);
	*cache = (struct window_buffer_cache){ 0 };
}

void window_buffer_cache_clear_all(const struct job *job)
{
	for (uint32_t i = 0; i < job->n_devices; i++)
		window_buffer_cache_clear(job->devices[i].window_buffers);
}

void window_buffer_cache_close(struct window_buffer_cache *cache)
{
	if (cache)
		window_buffer_cache_clear(cache);
	free(cache);
}

static bool has_buffers(const struct window_buffer_cache *cache, uint32_t n,
			const struct window_sizes *sizes)
{
	const struct window_sizes *available = &cache->sizes;

	return cache->n == n && available->in >= sizes->in && available->out >= sizes->out &&
	       available->scratch >= sizes->scratch && available->host >= sizes->host;
}

static int open_window_buffers(struct window_buffer_cache *cache, const struct job *job, uint32_t n,
			       const struct window_sizes *sizes)
{
	int r = 0;

	cache->device = job_device(job);
	cache->sizes = *sizes;
	cache->buffers = calloc(n, sizeof *cache->buffers);
	if (!cache->buffers)
		return fail(-ENOMEM, "no memory for %" PRIu32 " windows", n);
	for (; cache->n < n && r == 0; cache->n++)
		r = open_buffers(job, sizes, &cache->buffers[cache->n]);
	return r;
}

int window_buffer_cache_acquire(struct window_buffer_cache *cache, const struct job *job,
				uint32_t n, const struct window_sizes *sizes,
				const struct window_buffers **ret_buffers)
{
	int r = 0;

	if (!has_buffers(cache, n, sizes)) {
		window_buffer_cache_clear(cache);
		r = open_window_buffers(cache, job, n, sizes);
	}
	*ret_buffers = cache->buffers;
	return r;
}
