/*
 * chunk_pool.h - the buffers of chunks, and the queues that sort them
 *
 *	free -> being filled -> being sorted -> sorted -> resident run -> free
 *	      \____________________ chunk_pool ______________________/
 *
 * A chunk is the unit of one sort: plan.chunk_records elements in device memory. The pool hands out
 * free chunks, sorts full ones on its queues, and passes them to the collector (run_generation.c).
 * Two bounded queues connect the three; when one of them fails, all of them stop.
 *
 * With several devices each has the same number of chunks, and queues of its own. A chunk is taken
 * from the device that has the fewest to sort. That does not show in the result, because ties are
 * broken by the chunk's number.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "src/base/thread_pool.h"
#include "src/plan/job.h"
#include "src/record/digest.h"
#include "src/run/run.h"

struct chunk_pool;

struct chunk {
	struct chunk_pool *pool;
	/*
	 * plan.chunk_nbytes of device memory; NULL until it is first used. Records, and when they
	 * are sorted, elements or items.
	 */
	void *buffer;
	uint32_t device_index; /* of the job's devices: where the buffer is */
	bool is_pending;       /* taken, but not yet collected or released */
	uint64_t n;            /* records; when it is collected, items of the run (less with -u) */
	uint64_t number;       /* in input order */
	/* All records are in device memory; NULL if that is host memory. */
	struct device_event *filled_event;
	struct device_event *sorted_event;
	struct record_totals totals; /* records that it was made of, and those that -u dropped */
	struct sort_op_result sort_result; /* set by its sort */
	uint32_t *bucket_starts; /* of its buckets, plan.n_buckets + 1; NULL: it is sorted */
	struct chunk *next;      /* for lists of its current owner */
};

struct sort_queue {
	struct device_queue *queue;
	void *output;         /* plan.sort_output_nbytes: the next chunk is sorted into it */
	void *scratch;        /* used by consecutive operations of a sort, so ... */
	pthread_mutex_t lock; /* ... those of one chunk are queued under a lock */
};

/* The free chunks of a device. */
struct chunk_list {
	struct chunk *first, **last; /* the longest free first */
	uint64_t n_pending;          /* chunks of the device whose is_pending is set */
};

struct chunk_pool {
	const struct job *job;
	struct chunk *chunks; /* plan.n_chunks */
	/* plan.n_queues of each device; NULL when they are closed. */
	struct sort_queue *sort_queues;
	struct bounded_queue
		*free_tokens; /* a thread that pops a token takes a chunk from a free list */
	struct bounded_queue *sorting_chunks;
	/* Chunks are distributed among these buckets; NULL: they are sorted. */
	struct bucket_splitters *splitters;
	pthread_mutex_t lock;          /* guards the free lists and is_pending */
	struct chunk_list *free_lists; /* one for each device */
};

/*
 * Open a pool. On a device with its own memory all chunks are allocated now, so that a lack of
 * memory shows before anything is read; otherwise a chunk is allocated when it is first used.
 * Returns 0, -ENOMEM without a message if host or device memory is short, or another negative errno
 * (reported). After an error nothing is left open.
 */
int chunk_pool_open(const struct job *job, struct chunk_pool **ret_pool);

/* Close a pool of which no chunk is in use. */
void chunk_pool_close(struct chunk_pool *pool);

/*
 * Wait for a free chunk, with its buffer. Returns 0, a negative errno (reported), or the error of
 * chunk_pool_fail().
 */
int chunk_pool_acquire(struct chunk_pool *pool, struct chunk **ret_chunk);

void chunk_pool_release(struct chunk *chunk);

/*
 * Return where n <= plan.chunk_records records must be stored in a chunk, so that they can become
 * elements in place.
 */
void *chunk_records(const struct chunk *chunk, uint64_t n);

/*
 * Queue the sort of a chunk, whose n records lie at chunk_records(chunk, capacity), and pass it to
 * the collector. Returns like chunk_pool_acquire().
 */
int chunk_pool_sort(struct chunk *chunk, uint64_t capacity);

/*
 * Sort n elements of a sample of the input. Before anything else is sorted. Returns 0 or a negative
 * errno (reported).
 */
int chunk_pool_sort_sample(struct chunk_pool *pool, void *elements, uint64_t n);

/* Sort chunks that were distributed among buckets. Returns 0 or a negative errno (reported). */
int chunk_pool_sort_buckets(struct chunk_pool *pool);

/*
 * Wait until the chunk is sorted; n and totals are valid then. Returns 0 or a negative errno
 * (reported).
 */
int chunk_pool_collect(struct chunk *chunk);

/* Make all calls that wait for a chunk return r. */
void chunk_pool_fail(struct chunk_pool *pool, int r);

/* Close the queues when nothing is left to be sorted. */
void chunk_pool_close_queues(struct chunk_pool *pool);

/*
 * Free the buffers of free chunks; no chunk can be acquired any more. Returns the bytes that the
 * other chunks use, of the device where that is most.
 */
uint64_t chunk_pool_trim(struct chunk_pool *pool);

/* --- the input as sorted runs (run_generation.c) --- */

/*
 * Read the rest of job->input and append sorted runs of it to the list. Resident ones live in
 * chunks of the pool, which must outlive them. Adds what was read and dropped to *totals. May
 * lengthen the blocks of the plan. Returns 0 or a negative errno (reported).
 */
int generate_runs(struct job *job, struct chunk_pool *pool, struct run_list *list,
		  struct record_totals *totals);
