/*
 * queue_pool - queues and events on a pool of CPU threads (see queue_pool.h)
 *
 * One lock protects everything. Tasks take between a tenth of a millisecond and tens of
 * milliseconds, so the lock is taken some thousand times per second.
 *
 * An event counts how often it was recorded and how often it was reached. A queue that waits for
 * the event remembers the number of recordings, so recording the event again does not delay the
 * queue.
 *
 * Each event has its own condition variable. With one for all events, every small task would wake
 * all feeders and writers of a merge, which would only compete for the lock.
 *
 * Static functions on queues, tasks and events require the lock, unless their comment says
 * otherwise.
 */
#include "src/device/cpu/queue_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/cancellation.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"
#include "src/device/device.h"

enum queue_task_kind { TASK_RUN, TASK_RECORD_EVENT, TASK_WAIT_EVENT };

struct queue_task {
	struct queue_task *next;
	enum queue_task_kind kind;
	queue_task_fn *run;           /* RUN */
	struct diagnostics *messages; /* RUN: diagnostics of the submitting thread */
	struct pool_event *event;     /* RECORD_EVENT, WAIT_EVENT */
	uint64_t ticket;              /* WAIT_EVENT: the required event->n_signaled */
	alignas(16) unsigned char arguments[QUEUE_TASK_ARGS_NBYTES];
};

struct pool_event {
	struct device_event handle;
	struct queue_pool *pool;
	uint64_t n_recorded, n_signaled;
	pthread_cond_t signaled_cond;
	struct pool_queue *parked_queues; /* linked by queue->next */
};

struct pool_queue {
	struct device_queue handle;
	struct queue_pool *pool;
	struct pool_queue *next; /* in the ready list or among an event's parked queues */
	struct queue_task *first_task, **last_task;
	enum queue_priority priority;
	bool busy;       /* ready, running or parked: must not be made ready again */
	bool has_closer; /* a closing thread waits until it is not busy */
};

/* Convert the handles that the rest of the program uses. */
static struct pool_queue *pool_queue(struct device_queue *queue)
{
	return (struct pool_queue *)queue;
}

static struct pool_event *pool_event(struct device_event *event)
{
	return (struct pool_event *)event;
}

struct ready_list {
	struct pool_queue *first, **end;
};

struct queue_pool {
	struct workers workers;
	pthread_cond_t idle_cond; /* a queue that is being closed became idle */
	struct ready_list ready_lists[N_QUEUE_PRIORITIES];
	void *context;
	const struct cancellation *cancellation;
};

static void push_ready(struct pool_queue *queue)
{
	struct ready_list *list = &queue->pool->ready_lists[queue->priority];

	queue->busy = true;
	queue->next = NULL;
	*list->end = queue;
	list->end = &queue->next;
	pthread_cond_signal(&queue->pool->workers.changed);
}

/* Return the most urgent list that is not empty, or NULL. */
static struct ready_list *find_ready_list(struct queue_pool *pool)
{
	for (int i = N_QUEUE_PRIORITIES - 1; i >= 0; i--)
		if (pool->ready_lists[i].first)
			return &pool->ready_lists[i];
	return NULL;
}

static struct pool_queue *pop_ready_queue(struct ready_list *list)
{
	struct pool_queue *queue = list->first;

	list->first = queue->next;
	if (!list->first)
		list->end = &list->first;
	return queue;
}

static void signal_event(struct pool_event *event)
{
	struct pool_queue *queue = event->parked_queues;

	event->n_signaled++;
	event->parked_queues = NULL;
	while (queue) {
		struct pool_queue *next = queue->next;

		push_ready(queue);
		queue = next;
	}
	pthread_cond_broadcast(&event->signaled_cond);
}

/* Park the queue if its next task must wait. Returns whether it was parked. */
static bool park_queue(struct pool_queue *queue)
{
	struct queue_task *task = queue->first_task;

	if (task->kind != TASK_WAIT_EVENT || task->event->n_signaled >= task->ticket)
		return false;
	queue->next = task->event->parked_queues;
	task->event->parked_queues = queue;
	return true;
}

/* Run the first task of a queue that this thread has taken. RUN tasks run without the lock. */
static void run_task(struct pool_queue *queue)
{
	struct queue_task *task = queue->first_task;

	queue->first_task = task->next;
	if (!queue->first_task)
		queue->last_task = &queue->first_task;
	if (task->kind == TASK_RUN) {
		struct diagnostics *previous = diagnostics_push(task->messages);

		pthread_mutex_unlock(&queue->pool->workers.lock);
		if (!cancellation_is_requested(queue->pool->cancellation))
			task->run(queue->pool->context, task->arguments);
		pthread_mutex_lock(&queue->pool->workers.lock);
		diagnostics_push(previous);
	} else if (task->kind == TASK_RECORD_EVENT) {
		signal_event(task->event);
	}
	free(task);
}

/*
 * Run tasks until the queue is empty or parked. After a RUN task, requeue the queue if it has
 * another one and other queues are ready.
 */
static void run_queue(struct pool_queue *queue)
{
	struct queue_pool *pool = queue->pool;

	while (queue->first_task) {
		const bool is_run_task = queue->first_task->kind == TASK_RUN;

		if (park_queue(queue))
			return;
		run_task(queue);
		if (is_run_task && queue->first_task && queue->first_task->kind == TASK_RUN &&
		    find_ready_list(pool)) {
			push_ready(queue);
			return;
		}
	}
	queue->busy = false;
	if (queue->has_closer)
		pthread_cond_broadcast(&pool->idle_cond);
}

static void *pool_thread_main(void *argument)
{
	struct queue_pool *pool = argument;
	struct ready_list *list;

	SCOPED_LOCK(&pool->workers.lock);
	for (;;) {
		while (!(list = find_ready_list(pool)) && !pool->workers.closing)
			pthread_cond_wait(&pool->workers.changed, &pool->workers.lock);
		if (!list)
			break;
		run_queue(pop_ready_queue(list));
	}
	return NULL;
}

static int start_pool_threads(struct queue_pool *pool, unsigned n_threads)
{
	const int r =
		thread_group_start(&pool->workers.threads, n_threads, pool_thread_main, pool, NULL);

	/* The hint does not help if no thread can be started at all. */
	if (r < 0)
		fail(r, "cannot start thread %u of %u: %m%s%s", pool->workers.threads.n_threads + 1,
		     n_threads, thread_format_limits(r).text,
		     pool->workers.threads.n_threads ? "; try a smaller --parallel" : "");
	return r;
}

int queue_pool_open(unsigned n_threads, const struct cancellation *cancellation, void *context,
		    struct queue_pool **ret_pool)
{
	struct queue_pool *pool = calloc(1, sizeof *pool);
	int r;

	if (!pool)
		return -ENOMEM;
	workers_open(&pool->workers);
	pthread_cond_init(&pool->idle_cond, NULL);
	for (int i = 0; i < N_QUEUE_PRIORITIES; i++)
		pool->ready_lists[i].end = &pool->ready_lists[i].first;
	pool->context = context;
	pool->cancellation = cancellation;
	r = start_pool_threads(pool, n_threads);
	if (r < 0) {
		queue_pool_close(pool);
		return r;
	}
	*ret_pool = pool;
	return 0;
}

void queue_pool_close(struct queue_pool *pool)
{
	if (!pool)
		return;
	workers_close(&pool->workers);
	pthread_cond_destroy(&pool->idle_cond);
	free(pool);
}

int pool_queue_open(struct queue_pool *pool, enum queue_priority priority,
		    struct device_queue **ret_queue)
{
	struct pool_queue *queue = calloc(1, sizeof *queue);

	if (!queue)
		return -ENOMEM;
	queue->pool = pool;
	queue->priority = priority;
	queue->last_task = &queue->first_task;
	*ret_queue = &queue->handle;
	return 0;
}

void pool_queue_close(struct device_queue *handle)
{
	struct pool_queue *queue = pool_queue(handle);

	if (!queue)
		return;
	pthread_mutex_lock(&queue->pool->workers.lock);
	queue->has_closer = true;
	while (queue->busy)
		pthread_cond_wait(&queue->pool->idle_cond, &queue->pool->workers.lock);
	pthread_mutex_unlock(&queue->pool->workers.lock);
	free(queue);
}

/* Allocate a task. Returns NULL after a message. The lock need not be held. */
static struct queue_task *create_task(enum queue_task_kind kind)
{
	struct queue_task *task = aligned_alloc(alignof(struct queue_task), sizeof *task);

	if (task)
		*task = (struct queue_task){ .kind = kind };
	else
		fail(-ENOMEM, "no memory to queue an operation");
	return task;
}

static void append_task(struct pool_queue *queue, struct queue_task *task)
{
	*queue->last_task = task;
	queue->last_task = &task->next;
	if (!queue->busy)
		push_ready(queue);
}

int pool_queue_submit(struct device_queue *handle, queue_task_fn *run, const void *arguments,
		      size_t nbytes)
{
	struct pool_queue *queue = pool_queue(handle);
	struct queue_task *task = create_task(TASK_RUN);

	assert(nbytes <= QUEUE_TASK_ARGS_NBYTES);
	if (!task)
		return -ENOMEM;
	task->run = run;
	task->messages = diagnostics_current();
	memcpy(task->arguments, arguments, nbytes);
	SCOPED_LOCK(&queue->pool->workers.lock);
	append_task(queue, task);
	return 0;
}

int pool_event_open(struct queue_pool *pool, struct device_event **ret_event)
{
	struct pool_event *event = calloc(1, sizeof *event);

	if (!event)
		return -ENOMEM;
	event->pool = pool;
	pthread_cond_init(&event->signaled_cond, NULL);
	*ret_event = &event->handle;
	return 0;
}

void pool_event_close(struct device_event *handle)
{
	struct pool_event *event = pool_event(handle);

	if (!event)
		return;
	pthread_cond_destroy(&event->signaled_cond);
	free(event);
}

/* Queue a task that records the event, or waits for its last record. */
static int submit_event_task(struct device_queue *queue_handle, struct device_event *event_handle,
			     enum queue_task_kind kind)
{
	struct pool_queue *queue = pool_queue(queue_handle);
	struct pool_event *event = pool_event(event_handle);
	struct queue_task *task = create_task(kind);

	if (!task)
		return -ENOMEM;
	task->event = event;
	SCOPED_LOCK(&queue->pool->workers.lock);
	event->n_recorded += kind == TASK_RECORD_EVENT;
	task->ticket = event->n_recorded;
	append_task(queue, task);
	return 0;
}

int pool_queue_record(struct device_queue *queue, struct device_event *event)
{
	return submit_event_task(queue, event, TASK_RECORD_EVENT);
}

/* All threads may be running long tasks, so the waiting thread runs urgent queues itself. */
int pool_event_wait(struct device_event *handle)
{
	struct pool_event *event = pool_event(handle);
	struct queue_pool *pool = event->pool;
	struct ready_list *high_priority = &pool->ready_lists[QUEUE_PRIORITY_HIGH];
	uint64_t ticket;

	pthread_mutex_lock(&pool->workers.lock);
	ticket = event->n_recorded;
	while (event->n_signaled < ticket) {
		if (high_priority->first)
			run_queue(pop_ready_queue(high_priority));
		else
			pthread_cond_wait(&event->signaled_cond, &pool->workers.lock);
	}
	pthread_mutex_unlock(&pool->workers.lock);
	return cancellation_check(pool->cancellation);
}

int pool_queue_wait_event(struct device_queue *queue, struct device_event *event)
{
	return submit_event_task(queue, event, TASK_WAIT_EVENT);
}
