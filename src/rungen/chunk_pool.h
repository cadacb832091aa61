/*
 * chunk_pool - the buffers that chunks live in, and the queues that sort them
 *
 *	free -> being filled (chunk_reader.h) -> being sorted -> sorted -> resident run -> free
 *	      \____________________ chunk_pool ____________________/
 *
 * A chunk is the unit of one sort: plan.chunk_records elements in device memory. The pool hands out
 * free ones, sorts full ones on its queues, and gives the sorted ones, in the order of their
 * completion, to the collector (run_generation.c). Two rings connect the three; when one of them
 * fails, all end.
 *
 * Of several workers each has as many chunks, and queues of its own. A chunk is taken of the one
 * that has the fewest to sort; which one that was nobody sees, for ties are broken by numbers.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>

#include "src/base/thread_pool.h"
#include "src/plan/job.h"
#include "src/record/record_totals.h"

struct chunk_pool;

struct chunk {
	struct chunk_pool *pool;
	/*
	 * Device memory of plan.chunk_nbytes; NULL until first used. Records, and once it is sorted
	 * a run: elements or items.
	 */
	void *buffer;
	uint32_t device_index; /* of the job, in whose memory it is */
	bool is_pending;       /* taken, and neither collected nor given back */
	uint64_t n;            /* records in it; of the run once it is collected (less with -u) */
	uint64_t number;       /* in input order */
	struct device_event
		*filled_event; /* all of it is in device memory (only if that is not the host's) */
	struct device_event *sorted_event;
	struct record_totals totals;       /* of its records, and of those that -u dropped */
	struct sort_op_result sort_result; /* what its sort found */
	struct chunk *next;                /* for lists of whoever has it */
};

struct sort_queue {
	struct device_queue *queue;
	void *output;         /* plan.spare_nbytes: where the next sorted records go */
	void *scratch;        /* used from one operation of a sort to the next, so ... */
	pthread_mutex_t lock; /* ... those of one chunk are queued together */
};

/* The chunks of a worker. */
struct chunk_list {
	struct chunk *first, **last; /* free ones, the longest free first */
	uint64_t n_pending;
};

struct chunk_pool {
	const struct job *job;
	struct chunk *chunks;           /* plan.n_chunks */
	struct sort_queue *sort_queues; /* plan.n_lanes of each worker; NULL once they are closed */
	struct bounded_queue
		*free_tokens; /* of tokens: whoever has one takes a chunk from some shelf */
	struct bounded_queue *sorting_chunks;
	pthread_mutex_t lock;          /* guards the shelves, and is_pending */
	struct chunk_list *free_lists; /* one of each worker */
};

/*
 * On failure what was opened is closed. -ENOMEM without a message: device memory for what is
 * planned cannot be had; -errno after a message otherwise. A device with memory of its own gives
 * all of it at once, so that its lack shows before anything is read; else memory is taken when it
 * is first used.
 */
int chunk_pool_open(const struct job *job, struct chunk_pool **ret_pool);

/* NULL is fine. No chunk may be in use. */
void chunk_pool_close(struct chunk_pool *pool);

/* Wait for a free chunk, with its memory. 0, or a negative errno after a message or the ring's. */
int chunk_pool_acquire(struct chunk_pool *pool, struct chunk **ret_chunk);

/* Give it back. */
void chunk_pool_release(struct chunk *chunk);

/*
 * Where the n records of a chunk go, so that they can become elements in place; n <=
 * plan.chunk_records.
 */
void *chunk_records(const struct chunk *chunk, uint64_t n);

/*
 * The chunk's n records lie at chunk_records(chunk, room): queue what makes a sorted run of them,
 * and hand it to the collector. 0, or a negative errno after a message or the ring's.
 */
int chunk_pool_sort(struct chunk *chunk, uint64_t capacity);

/*
 * Wait until the chunk is sorted, and take in what was found out: n and the ledger are valid
 * then. 0, or a negative errno after a message.
 */
int chunk_pool_collect(struct chunk *chunk);

/* Everybody who waits for a chunk, or will, gets r. */
void chunk_pool_fail(struct chunk_pool *pool, int r);

/* Nothing is left to be sorted: close the queues. */
void chunk_pool_close_queues(struct chunk_pool *pool);

/*
 * Release the memory of free chunks; nobody takes any more. Returns the bytes that the others hold
 * of a worker's memory: of the one that most is held of.
 */
uint64_t chunk_pool_trim(struct chunk_pool *pool);
