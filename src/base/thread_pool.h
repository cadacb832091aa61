/*
 * thread_pool.h - groups of threads, threads that share the tasks of a job, and queues between them
 *
 * A group runs one function on several threads, which end by themselves. Workers are a group whose
 * threads wait for work until they are closed.
 *
 * A job is a number of tasks, which any thread may run in any order. The caller of
 * thread_pool_run() runs tasks as well, and returns when all are done. It is meant for long tasks
 * that wait for disks or decode; back ends have queues of their own (src/device/device.h).
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread_group {
	pthread_t *threads;
	uint32_t n_threads; /* started and not joined */
};

/*
 * Add n threads to the group, each of which calls run(context). Returns 0 or a negative errno; then
 * fewer were started, and a message was written unless `purpose` is NULL. It names the first thread
 * that is missing, as in "a reader thread".
 */
int thread_group_start(struct thread_group *group, uint32_t n, void *(*run)(void *context),
		       void *context, const char *purpose);

/* Wait until all threads have ended. An empty group is fine. */
void thread_group_join(struct thread_group *group);

struct workers {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* there is work, or `closing` is set; allows timed waits */
	bool closing;           /* protected by the lock: the threads must return */
	struct thread_group threads;
};

/* Initialise workers without threads. */
void workers_open(struct workers *workers);

/* Set `closing`, wait until all threads have ended, and destroy the lock and the condition. */
void workers_close(struct workers *workers);

struct cancellation;
struct thread_pool;

/* Run task i. Returns 0 or a negative errno after a message. */
typedef int thread_pool_task(void *context, uint32_t i);

/*
 * Start a pool of n_threads, including the thread that runs a job. The pool has fewer if some
 * cannot be started. Returns 0, or -ENOMEM without a message.
 */
int thread_pool_open(uint32_t n_threads, struct thread_pool **ret_pool);

/* Skip the tasks of jobs once cancellation is requested. NULL: never. */
void thread_pool_set_cancellation(struct thread_pool *pool,
				  const struct cancellation *cancellation);

/* NULL is fine. */
void thread_pool_close(struct thread_pool *pool);

/*
 * Run the tasks 0 to n_tasks - 1. Returns 0 or the first error; after an error, tasks that have not
 * started are skipped. Only one job at a time.
 */
int thread_pool_run(struct thread_pool *pool, thread_pool_task *task, void *context,
		    uint32_t n_tasks);

/*
 * Call work(context, number, n) on n threads at once, including the caller's, with the number of
 * the thread, from 0, and return when all calls have returned. Runs on fewer threads if some cannot
 * be started.
 */
typedef void numbered_thread_fn(void *context, uint32_t number, uint32_t n);
void threads_run_numbered(uint32_t n_threads, numbered_thread_fn *work, void *context);

/*
 * Process the blocks 0 to n_blocks - 1 on n_threads threads, including the caller's. Each thread
 * has a buffer of buffer_nbytes, claims one block after the other, and calls process(). That
 * returns 0, a negative errno (reported), or 1 to end; either leaves out all blocks that no thread
 * has claimed. Returns 0 or the first error (reported).
 */
typedef int process_block_fn(void *context, uint64_t block, void *buffer);
int threads_run_blocks(uint32_t n_threads, uint64_t n_blocks, size_t buffer_nbytes,
		       process_block_fn *process, void *context);

/*
 * --- bounded queues ---
 *
 * Queues of pointers between the stages of a pipeline. A stage blocks only on a full or an empty
 * queue. A queue ends in one of two ways: finished (consumers get what is left, then -ENODATA) or
 * failed (all callers get the error at once; the first error stays). A stage that fails fails its
 * queues, so every wait ends.
 *
 * First in, first out. Thread-safe, with any number of producers and consumers.
 */

struct bounded_queue;

/* Create a queue of `capacity` items. Returns 0, or -ENOMEM without a message. */
int bounded_queue_open(size_t capacity, struct bounded_queue **ret_queue);
/* Free the queue, but not the items in it. No thread may use it any more. NULL is fine. */
void bounded_queue_close(struct bounded_queue *queue);

/*
 * Append an item; waits while the queue is full. Returns 0, the queue's error if it failed, or
 * -EPIPE if it was finished.
 */
int bounded_queue_push(struct bounded_queue *queue, void *item);
/*
 * Remove the first item; waits while the queue is empty. Returns 0, -ENODATA if the queue is
 * finished and empty, or its error if it failed.
 */
int bounded_queue_pop(struct bounded_queue *queue, void **ret_item);

/* Finish the queue: nothing more will be pushed. */
void bounded_queue_finish(struct bounded_queue *queue);
/* Fail the queue with r, a negative errno, unless it has failed before. */
void bounded_queue_fail(struct bounded_queue *queue, int r);
