/*
 * queue_pool - lanes and marks on a pool of CPU threads (see queue_pool.h)
 *
 * One lock guards everything: tasks take from tenths of a millisecond to tens of milliseconds, so
 * it is taken some thousand times a second.
 *
 * A mark counts how often it was set and how often it was reached. A lane that follows it remembers
 * the count of its own moment, so a mark that is set again later does not hold it longer.
 */
#include "src/device/cpu/queue_pool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/device/device.h"

enum { THREAD_STACK_NBYTES = 512 * 1024 };

enum task_kind { TASK_RUN, TASK_MARK, TASK_FOLLOW };

struct task {
	struct task *next;
	enum task_kind kind;
	lane_task *run;            /* RUN */
	struct messages *messages; /* RUN: of who has queued it */
	struct pool_mark *mark;    /* MARK, FOLLOW */
	uint64_t ticket;           /* FOLLOW: how often the mark must have been reached */
	alignas(16) unsigned char arguments[LANE_ARGUMENTS_NBYTES];
};

struct pool_mark {
	struct mark handle;
	struct lane_pool *pool;
	uint64_t n_set, n_reached;
	struct pool_lane *parked; /* linked by lane->next */
};

struct pool_lane {
	struct lane handle;
	struct lane_pool *pool;
	struct pool_lane *next; /* in the ready queue or among a mark's parked lanes */
	struct task *first, **last;
	enum lane_urgency urgency;
	bool busy; /* ready, running or parked: not to be made ready again */
};

/* Of what the rest of the program knows as a lane, and as a mark. */
static struct pool_lane *pool_lane(struct lane *lane)
{
	return (struct pool_lane *)lane;
}

static struct pool_mark *pool_mark(struct mark *mark)
{
	return (struct pool_mark *)mark;
}

struct queue {
	struct pool_lane *first, **end;
};

struct lane_pool {
	pthread_mutex_t lock;
	pthread_cond_t work;     /* a lane is ready, or closing */
	pthread_cond_t progress; /* a mark was reached or a lane became idle */
	struct queue ready[N_LANE_URGENCIES];
	bool closing;
	void *context;
	unsigned n_threads;
	pthread_t threads[];
};

/* With the lock held, as all static functions here unless they say otherwise. */
static void make_ready(struct pool_lane *lane)
{
	struct queue *queue = &lane->pool->ready[lane->urgency];

	lane->busy = true;
	lane->next = NULL;
	*queue->end = lane;
	queue->end = &lane->next;
	pthread_cond_signal(&lane->pool->work);
}

/* The most urgent queue that is not empty, or NULL. */
static struct queue *find_ready(struct lane_pool *pool)
{
	for (int i = N_LANE_URGENCIES - 1; i >= 0; i--)
		if (pool->ready[i].first)
			return &pool->ready[i];
	return NULL;
}

static struct pool_lane *take_lane(struct queue *queue)
{
	struct pool_lane *lane = queue->first;

	queue->first = lane->next;
	if (!queue->first)
		queue->end = &queue->first;
	return lane;
}

static struct task *take_task(struct pool_lane *lane)
{
	struct task *task = lane->first;

	lane->first = task->next;
	if (!lane->first)
		lane->last = &lane->first;
	return task;
}

static void reach(struct pool_mark *mark)
{
	struct pool_lane *lane = mark->parked;

	mark->n_reached++;
	mark->parked = NULL;
	while (lane) {
		struct pool_lane *next = lane->next;

		make_ready(lane);
		lane = next;
	}
	pthread_cond_broadcast(&mark->pool->progress);
}

/* Park the lane if its next task must wait. */
static bool park(struct pool_lane *lane)
{
	struct task *task = lane->first;

	if (task->kind != TASK_FOLLOW || task->mark->n_reached >= task->ticket)
		return false;
	lane->next = task->mark->parked;
	task->mark->parked = lane;
	return true;
}

/* Run the first task of a lane that this thread has taken; RUN lets go of the lock meanwhile. */
static void run_task(struct pool_lane *lane)
{
	struct task *task = take_task(lane);

	if (task->kind == TASK_RUN) {
		struct messages *before = messages_enter(task->messages);

		pthread_mutex_unlock(&lane->pool->lock);
		task->run(lane->pool->context, task->arguments);
		pthread_mutex_lock(&lane->pool->lock);
		messages_enter(before);
	} else if (task->kind == TASK_MARK) {
		reach(task->mark);
	}
	free(task);
}

/*
 * Tasks run until the lane is empty or parked, or, after one that took time, another lane's turn
 * has come.
 */
static void run_lane(struct pool_lane *lane)
{
	struct lane_pool *pool = lane->pool;

	while (lane->first) {
		const bool runs = lane->first->kind == TASK_RUN;

		if (park(lane))
			return;
		run_task(lane);
		if (runs && lane->first && lane->first->kind == TASK_RUN && find_ready(pool)) {
			make_ready(lane);
			return;
		}
	}
	lane->busy = false;
	pthread_cond_broadcast(&pool->progress);
}

static void *thread_main(void *argument)
{
	struct lane_pool *pool = argument;
	struct queue *queue;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!(queue = find_ready(pool)) && !pool->closing)
			pthread_cond_wait(&pool->work, &pool->lock);
		if (!queue)
			break;
		run_lane(take_lane(queue));
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static int start_threads(struct lane_pool *pool, unsigned n_threads)
{
	char limits[THREAD_LIMITS_NBYTES];
	int r = 0;

	for (; pool->n_threads < n_threads && r == 0; pool->n_threads += r == 0)
		r = thread_start(thread_main, pool, THREAD_STACK_NBYTES,
				 &pool->threads[pool->n_threads]);
	/* Where there can be none at all, fewer are no help. */
	if (r < 0)
		fail_hint(r, pool->n_threads ? HINT_FEWER_THREADS : HINT_NONE, 0,
			  "cannot start thread %u of %u: %m%s", pool->n_threads + 1, n_threads,
			  thread_limits(r, limits));
	return r;
}

int lane_pool_open(unsigned n_threads, void *context, struct lane_pool **ret_pool)
{
	struct lane_pool *pool = calloc(1, sizeof *pool + n_threads * sizeof pool->threads[0]);
	int r;

	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work, NULL);
	pthread_cond_init(&pool->progress, NULL);
	for (int i = 0; i < N_LANE_URGENCIES; i++)
		pool->ready[i].end = &pool->ready[i].first;
	pool->context = context;
	r = start_threads(pool, n_threads);
	if (r < 0) {
		lane_pool_close(pool);
		return r;
	}
	*ret_pool = pool;
	return 0;
}

void lane_pool_close(struct lane_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->work);
	pthread_mutex_unlock(&pool->lock);
	for (unsigned i = 0; i < pool->n_threads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->progress);
	pthread_cond_destroy(&pool->work);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int lane_pool_lane_open(struct lane_pool *pool, enum lane_urgency urgency, struct lane **ret_lane)
{
	struct pool_lane *lane = calloc(1, sizeof *lane);

	if (!lane)
		return -ENOMEM;
	lane->pool = pool;
	lane->urgency = urgency;
	lane->last = &lane->first;
	*ret_lane = &lane->handle;
	return 0;
}

void lane_pool_lane_close(struct lane *handle)
{
	struct pool_lane *lane = pool_lane(handle);

	if (!lane)
		return;
	pthread_mutex_lock(&lane->pool->lock);
	while (lane->busy)
		pthread_cond_wait(&lane->pool->progress, &lane->pool->lock);
	pthread_mutex_unlock(&lane->pool->lock);
	free(lane);
}

/* NULL after a message. */
static struct task *task_make(enum task_kind kind)
{
	struct task *task = aligned_alloc(alignof(struct task), sizeof *task);

	if (task)
		*task = (struct task){ .kind = kind };
	else
		fail(-ENOMEM, "no memory to queue an operation");
	return task;
}

static void append(struct pool_lane *lane, struct task *task)
{
	*lane->last = task;
	lane->last = &task->next;
	if (!lane->busy)
		make_ready(lane);
}

int lane_pool_queue(struct lane *handle, lane_task *run, const void *arguments, size_t nbytes)
{
	struct pool_lane *lane = pool_lane(handle);
	struct task *task = task_make(TASK_RUN);

	assert(nbytes <= LANE_ARGUMENTS_NBYTES);
	if (!task)
		return -ENOMEM;
	task->run = run;
	task->messages = messages_current();
	memcpy(task->arguments, arguments, nbytes);
	pthread_mutex_lock(&lane->pool->lock);
	append(lane, task);
	pthread_mutex_unlock(&lane->pool->lock);
	return 0;
}

int lane_pool_mark_open(struct lane_pool *pool, struct mark **ret_mark)
{
	struct pool_mark *mark = calloc(1, sizeof *mark);

	if (!mark)
		return -ENOMEM;
	mark->pool = pool;
	*ret_mark = &mark->handle;
	return 0;
}

void lane_pool_mark_close(struct mark *mark)
{
	free(pool_mark(mark));
}

int lane_pool_mark(struct lane *lane_handle, struct mark *mark_handle)
{
	struct pool_lane *lane = pool_lane(lane_handle);
	struct pool_mark *mark = pool_mark(mark_handle);
	struct task *task = task_make(TASK_MARK);

	if (!task)
		return -ENOMEM;
	task->mark = mark;
	pthread_mutex_lock(&lane->pool->lock);
	mark->n_set++;
	append(lane, task);
	pthread_mutex_unlock(&lane->pool->lock);
	return 0;
}

/* The threads may all be at tasks that take long: who waits takes an urgent lane himself. */
void lane_pool_wait(struct mark *handle)
{
	struct pool_mark *mark = pool_mark(handle);
	struct lane_pool *pool = mark->pool;
	struct queue *urgent = &pool->ready[LANE_URGENT];
	uint64_t ticket;

	pthread_mutex_lock(&pool->lock);
	ticket = mark->n_set;
	while (mark->n_reached < ticket) {
		if (urgent->first)
			run_lane(take_lane(urgent));
		else
			pthread_cond_wait(&pool->progress, &pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
}

int lane_pool_follow(struct lane *lane_handle, struct mark *mark_handle)
{
	struct pool_lane *lane = pool_lane(lane_handle);
	struct pool_mark *mark = pool_mark(mark_handle);
	struct task *task = task_make(TASK_FOLLOW);

	if (!task)
		return -ENOMEM;
	task->mark = mark;
	pthread_mutex_lock(&lane->pool->lock);
	task->ticket = mark->n_set;
	append(lane, task);
	pthread_mutex_unlock(&lane->pool->lock);
	return 0;
}
