/*
 * run_buffers_internal - a supply, as the files that make it up share it
 *
 *	run_buffers.c	what is open for it; cutting, and what is left
 *	run_buffers_fill.c	the slices of a window, from wherever runs are
 */
#pragma once

#include "src/base/thread_pool.h"
#include "src/merge/run_devices.h"
#include "src/merge/run_buffers.h"
#include "src/merge/block_unpack.h"

/* One run's share in the windows. */
struct run_buffer {
	struct run *run;
	const char *memory;      /* the run's, from where it is merged; NULL: it is read, or: */
	const char *peer_memory; /* in memory of a device that is not reached: it is fetched */
	uint64_t next_block;     /* the first not taken */
	uint64_t position;       /* in memory: records consumed */
	const char *leftover;    /* n_leftover records that the last window did not use */
	uint64_t n_leftover;

	/* What is read for this window, by whoever of the thread pool */
	uint64_t n_blocks, n_read; /* blocks, records */
	char *destination;         /* device memory, with room for resident records */
	const char *items;         /* where they come from: its end, or staging */
	size_t items_nbytes;       /* what is read */

	struct sort_op_result unique_result; /* by queue_unique_slice(): n and dropped */
	struct record_totals totals; /* of an input run: read, and dropped before it is merged */
};

struct run_buffers {
	const struct job *job;
	struct run_devices run_devices;
	struct device_queue *queue; /* of the device that merges: one of them, as the event */
	struct device_event *event;
	struct thread_pool *thread_pool; /* that reads; NULL if nothing is read */
	uint64_t capacity_records;
	uint64_t number;         /* of the window */
	struct slice *available; /* n_runs */
	char *staging;           /* host memory that is read into, or NULL */
	size_t staging_nbytes, staging_used;
	struct block_unpack unpack;
	uint32_t n_runs;
	struct run_buffer runs[];
};

/* Is it read, by threads of the host? */
static inline bool run_buffer_is_read(const struct run_buffer *buffer)
{
	return !buffer->memory && !buffer->peer_memory;
}
