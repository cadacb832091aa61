/*
 * window_buffer_cache - the buffers and queues of windows, kept from one merge to the next
 *
 * A sort that spills makes a merge for every run, each with windows like those of the one before.
 * Fresh memory for each would have to be cleared by the kernel, pinned, or waited for (cudaFree()
 * waits for the whole device): as much of it as is spilled. So it is kept until a merge needs more.
 */
#pragma once

#include <stdint.h>

struct job;
struct device_queue;
struct device_event;

/* Bytes of each buffer; 0: none. */
struct window_sizes {
	uint64_t in, out, scratch; /* device memory */
	uint64_t host;             /* host memory */
};

struct window_buffers {
	void *in, *out, *scratch, *host; /* NULL if there is none */
	struct device_queue *queue;
	struct device_event *event;
};

struct window_buffer_cache;

/* Nothing yet. 0, or -ENOMEM after a message. */
int window_buffer_cache_open(struct window_buffer_cache **ret_cache);

/* NULL is fine. */
void window_buffer_cache_close(struct window_buffer_cache *cache);

/*
 * Have the buffers of n windows, of these sizes at least, and idle queues. They stay the memory's,
 * and are the caller's until the next call. 0, or a negative errno after a message.
 */
int window_buffer_cache_acquire(struct window_buffer_cache *cache, const struct job *job,
				uint32_t n, const struct window_sizes *sizes,
				const struct window_buffers **ret_buffers);

/* Give everything back, when what is queued in the queues has ended. */
void window_buffer_cache_clear(struct window_buffer_cache *cache);

/* The same of all workers of the job. */
void window_buffer_cache_clear_all(const struct job *job);
