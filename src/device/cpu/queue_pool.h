/*
 * queue_pool - queues and events on a pool of CPU threads
 *
 * A queue is a FIFO of tasks that run one after the other, each on whichever thread of the pool is
 * free; the tasks of different queues run at the same time. It is to the CPU back end what streams
 * are to CUDA.
 *
 *	queue a   [sort] [event m]               threads take the first of the most urgent
 *	queue b   [follow m] [merge] [event n]   queues that are ready, run one task of it,
 *	queue c   (empty)                        and put it back
 *
 *	ready:   a -> ...                     b is parked on m until m is reached
 *
 * A queue is in exactly one place: idle (no task), ready (in the queue), running (a thread has it)
 * or parked (its next task follows an event that is not reached). Because a parked queue holds no
 * thread, any number of queues can follow each other's events on any number of threads; only a
 * cycle of events would hang.
 *
 * All functions are thread-safe, except that a queue is filled by one thread at a time.
 */
#pragma once

#include <stddef.h>

#include "src/device/queue_priority.h"

struct queue_pool;
struct device_queue;
struct device_event;

/* A task gets the pool's context and a pointer to the copy of the arguments it was queued with. */
typedef void queue_task_fn(void *context, const void *arguments);

enum { QUEUE_TASK_ARGS_NBYTES = 128 };

/*
 * Start n_threads (at least 1) threads. Returns 0, -ENOMEM without a message, or another negative
 * errno after one.
 */
int queue_pool_open(unsigned n_threads, void *context, struct queue_pool **ret_pool);
/* Waits for the threads to end; every queue must be closed. NULL is fine. */
void queue_pool_close(struct queue_pool *pool);

/* -ENOMEM without a message. */
int pool_queue_open(struct queue_pool *pool, enum queue_priority priority,
		    struct device_queue **ret_queue);
/* Waits until all its tasks have run. NULL is fine. */
void pool_queue_close(struct device_queue *queue);

/* Queue task(copy of arguments). nbytes <= QUEUE_TASK_ARGS_NBYTES. -ENOMEM after a message. */
int pool_queue_submit(struct device_queue *queue, queue_task_fn *task, const void *arguments,
		      size_t nbytes);

/* -ENOMEM without a message. */
int pool_event_open(struct queue_pool *pool, struct device_event **ret_event);
/* Not while a queue may still reach or follow it. NULL is fine. */
void pool_event_close(struct device_event *event);
/* Move `event` to the present end of `queue`. -ENOMEM after a message. */
int pool_queue_record(struct device_queue *queue, struct device_event *event);
/* Block until the last position given to device_event() is reached; at once if there was none. */
void pool_event_wait(struct device_event *event);
/*
 * What is queued in `queue` from now on runs after the event's present position was reached.
 * -ENOMEM after a message.
 */
int pool_queue_wait_event(struct device_queue *queue, struct device_event *event);
