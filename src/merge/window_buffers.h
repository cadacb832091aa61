/*
 * window_buffers - the buffers and lanes of windows, kept from one merge to the next
 *
 * A sort that spills makes a merge for every run, each with windows like those of the one before.
 * Fresh memory for each would have to be cleared by the kernel, pinned, or waited for (cudaFree()
 * waits for the whole device): as much of it as is spilled. So it is kept until a merge needs more.
 */
#pragma once

#include <stdint.h>

struct job;
struct lane;
struct mark;

/* Bytes of each buffer; 0: none. */
struct window_sizes {
	uint64_t in, out, scratch; /* device memory */
	uint64_t host;             /* host memory */
};

struct window_buffers {
	void *in, *out, *scratch, *host; /* NULL if there is none */
	struct lane *lane;
	struct mark *mark;
};

struct window_memory;

/* Nothing yet. 0, or -ENOMEM after a message. */
int window_memory_open(struct window_memory **ret_memory);

/* NULL is fine. */
void window_memory_close(struct window_memory *memory);

/*
 * Have the buffers of n windows, of these sizes at least, and idle lanes. They stay the memory's,
 * and are the caller's until the next call. 0, or a negative errno after a message.
 */
int window_memory_take(struct window_memory *memory, const struct job *job, uint32_t n,
		       const struct window_sizes *sizes, const struct window_buffers **ret_buffers);

/* Give everything back, when what is queued in the lanes has ended. */
void window_memory_drop(struct window_memory *memory);

/* The same of all workers of the job. */
void window_memory_drop_all(const struct job *job);
