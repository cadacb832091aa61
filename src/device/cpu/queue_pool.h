/*
 * queue_pool - queues and events on a pool of CPU threads
 *
 * A queue is a FIFO of tasks that run one after the other, each on any free thread of the pool.
 * Tasks of different queues run concurrently. A queue of the CPU back end corresponds to a CUDA
 * stream.
 *
 *	queue a   [sort] [event m]             threads take the first of the most urgent
 *	queue b   [wait m] [merge] [event n]   queues that are ready, run one task of it,
 *	queue c   (empty)                      and put it back
 *
 *	ready:   a -> ...                      b is parked on m until m is reached
 *
 * A queue is in one of four states: idle (no task), ready (in the ready list), running (a thread
 * runs its task) or parked (its next task waits for an event that is not reached). A parked queue
 * occupies no thread, so any number of queues can wait for each other's events on any number of
 * threads. Only a cycle of events would deadlock.
 *
 * All functions are thread-safe, but only one thread at a time may submit to a queue.
 */
#pragma once

#include <stddef.h>

#include "src/device/backend.h"

struct queue_pool;

/* A task gets the context of the pool and a pointer to a copy of its arguments. */
typedef void queue_task_fn(void *context, const void *arguments);

enum { QUEUE_TASK_ARGS_NBYTES = 128 };

/*
 * Start n_threads (at least 1) threads. Once cancellation is requested (NULL: never), tasks are
 * skipped. Returns 0, -ENOMEM without a message, or another negative errno after a message.
 */
int queue_pool_open(unsigned n_threads, const struct cancellation *cancellation, void *context,
		    struct queue_pool **ret_pool);
/* Wait for the threads to end. All queues must be closed. NULL is ignored. */
void queue_pool_close(struct queue_pool *pool);

/* Open a queue. Returns 0, or -ENOMEM without a message. */
int pool_queue_open(struct queue_pool *pool, enum queue_priority priority,
		    struct device_queue **ret_queue);
/* Wait until all tasks have ended, and free the queue. NULL is ignored. */
void pool_queue_close(struct device_queue *queue);

/*
 * Append a task to the queue. The nbytes <= QUEUE_TASK_ARGS_NBYTES of arguments are copied. Returns
 * 0, or -ENOMEM after a message.
 */
int pool_queue_submit(struct device_queue *queue, queue_task_fn *task, const void *arguments,
		      size_t nbytes);

/* Open an event. Returns 0, or -ENOMEM without a message. */
int pool_event_open(struct queue_pool *pool, struct device_event **ret_event);
/* Free an event. No queue may reach or wait for it later. NULL is ignored. */
void pool_event_close(struct device_event *event);
/* Move `event` to the current end of `queue`. Returns 0, or -ENOMEM after a message. */
int pool_queue_record(struct device_queue *queue, struct device_event *event);
/*
 * Wait until the last recorded position of the event is reached, or not at all if there is none.
 * Returns 0, or -ECANCELED (reported): then tasks may have been skipped.
 */
int pool_event_wait(struct device_event *event);
/*
 * Make later tasks of `queue` wait for the event's current position. Returns 0, or -ENOMEM after a
 * message.
 */
int pool_queue_wait_event(struct device_queue *queue, struct device_event *event);
