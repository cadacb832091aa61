/*
 * thread_pool.c - groups of threads, threads that share the tasks of a job, and queues between them
 * (see thread_pool.h)
 */
#include "src/base/thread_pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/cancellation.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

int thread_group_start(struct thread_group *group, uint32_t n, void *(*run)(void *context),
		       void *context, const char *purpose)
{
	const uint32_t n_wanted = group->n_threads + n;
	pthread_t *threads = n > 0 ? realloc(group->threads, n_wanted * sizeof *threads) :
				     group->threads;
	int r = n > 0 && !threads ? -ENOMEM : 0;

	if (r == 0)
		group->threads = threads;
	for (; group->n_threads < n_wanted && r == 0; group->n_threads += r == 0)
		r = thread_start(run, context, 0, &threads[group->n_threads]);
	return r < 0 && purpose ? fail(r, "cannot start %s: %m%s; try a smaller -S or --parallel",
				       purpose, thread_format_limits(r).text) :
				  r;
}

void thread_group_join(struct thread_group *group)
{
	for (uint32_t i = 0; i < group->n_threads; i++)
		pthread_join(group->threads[i], NULL);
	free(group->threads);
	*group = (struct thread_group){ 0 };
}

void workers_open(struct workers *workers)
{
	*workers = (struct workers){ .closing = false };
	pthread_mutex_init(&workers->lock, NULL);
	thread_init_timed_condition(&workers->changed);
}

void workers_close(struct workers *workers)
{
	pthread_mutex_lock(&workers->lock);
	workers->closing = true;
	pthread_cond_broadcast(&workers->changed);
	pthread_mutex_unlock(&workers->lock);
	thread_group_join(&workers->threads);
	pthread_cond_destroy(&workers->changed);
	pthread_mutex_destroy(&workers->lock);
}

struct thread_pool {
	struct workers workers; /* without the caller */
	pthread_cond_t work_done;
	/* Protected by the lock: the job. */
	thread_pool_task *task;
	void *context;
	struct diagnostics *diagnostics; /* of the caller of thread_pool_run() */
	uint32_t n_tasks, n_claimed, n_active;
	int error; /* 0 or the first error */

	const struct cancellation *cancellation;
};

void thread_pool_set_cancellation(struct thread_pool *pool, const struct cancellation *cancellation)
{
	pool->cancellation = cancellation;
}

/* Run tasks until none is left. Called with the lock held, which is released during a task. */
static void run_tasks(struct thread_pool *pool)
{
	pool->n_active++;
	diagnostics_push(pool->diagnostics);
	while (pool->n_claimed < pool->n_tasks && pool->error == 0) {
		const uint32_t i = pool->n_claimed++;
		int r;

		pthread_mutex_unlock(&pool->workers.lock);
		r = cancellation_check(pool->cancellation);
		if (r == 0)
			r = pool->task(pool->context, i);
		pthread_mutex_lock(&pool->workers.lock);
		if (r < 0 && pool->error == 0)
			pool->error = r;
	}
	if (--pool->n_active == 0)
		pthread_cond_signal(&pool->work_done);
}

static void *task_thread_main(void *argument)
{
	struct thread_pool *pool = argument;

	SCOPED_LOCK(&pool->workers.lock);
	while (!pool->workers.closing) {
		if (pool->n_claimed < pool->n_tasks && pool->error == 0)
			run_tasks(pool);
		else
			pthread_cond_wait(&pool->workers.changed, &pool->workers.lock);
	}
	return NULL;
}

int thread_pool_open(uint32_t n_threads, struct thread_pool **ret_pool)
{
	struct thread_pool *pool = calloc(1, sizeof *pool);

	if (!pool)
		return -ENOMEM;
	workers_open(&pool->workers);
	pthread_cond_init(&pool->work_done, NULL);
	if (n_threads > 1)
		(void)thread_group_start(&pool->workers.threads, n_threads - 1, task_thread_main,
					 pool, NULL);
	*ret_pool = pool;
	return 0;
}

void thread_pool_close(struct thread_pool *pool)
{
	if (!pool)
		return;
	workers_close(&pool->workers);
	pthread_cond_destroy(&pool->work_done);
	free(pool);
}

int thread_pool_run(struct thread_pool *pool, thread_pool_task *task, void *context,
		    uint32_t n_tasks)
{
	SCOPED_LOCK(&pool->workers.lock);
	pool->task = task;
	pool->context = context;
	pool->diagnostics = diagnostics_current();
	pool->n_tasks = n_tasks;
	pool->n_claimed = 0;
	pool->error = 0;
	if (n_tasks > 1)
		pthread_cond_broadcast(&pool->workers.changed);
	run_tasks(pool);
	while (pool->n_active > 0)
		pthread_cond_wait(&pool->work_done, &pool->workers.lock);
	pool->n_tasks = 0;
	return pool->error;
}

struct thread_team {
	numbered_thread_fn *work;
	void *context;
	pthread_mutex_t lock; /* held until all threads are started */
	uint32_t n_threads, n_numbered;
};

static void *team_thread_main(void *argument)
{
	struct thread_team *team = argument;
	uint32_t number;

	pthread_mutex_lock(&team->lock);
	number = team->n_numbered++;
	pthread_mutex_unlock(&team->lock);
	team->work(team->context, number, team->n_threads);
	return NULL;
}

void threads_run_numbered(uint32_t n_threads, numbered_thread_fn *work, void *context)
{
	struct thread_team team = { .work = work, .context = context };
	struct thread_group threads = { 0 };

	pthread_mutex_init(&team.lock, NULL);
	pthread_mutex_lock(&team.lock);
	if (n_threads > 1)
		(void)thread_group_start(&threads, n_threads - 1, team_thread_main, &team, NULL);
	team.n_threads = threads.n_threads + 1;
	pthread_mutex_unlock(&team.lock);
	team_thread_main(&team);
	thread_group_join(&threads);
	pthread_mutex_destroy(&team.lock);
}

struct block_job {
	process_block_fn *process;
	void *context;
	uint64_t n_blocks;
	size_t buffer_nbytes;
	_Atomic uint64_t next_block;
	atomic_bool is_over;
	atomic_int error; /* the first one, or 0 */
};

static void process_blocks(void *context, uint32_t number, uint32_t n)
{
	struct block_job *job = context;
	void *buffer = malloc(job->buffer_nbytes);
	int no_error = 0, r = buffer ? 0 :
				       fail(-ENOMEM, "no memory for a buffer of %zu bytes: %m",
					    job->buffer_nbytes);

	(void)number, (void)n;
	while (r == 0 && !atomic_load(&job->is_over)) {
		const uint64_t block = atomic_fetch_add(&job->next_block, 1);

		r = block < job->n_blocks ? job->process(job->context, block, buffer) : 1;
	}
	if (r < 0)
		atomic_compare_exchange_strong(&job->error, &no_error, r);
	atomic_store(&job->is_over, true);
	free(buffer);
}

int threads_run_blocks(uint32_t n_threads, uint64_t n_blocks, size_t buffer_nbytes,
		       process_block_fn *process, void *context)
{
	struct block_job job = { .process = process,
				 .context = context,
				 .n_blocks = n_blocks,
				 .buffer_nbytes = buffer_nbytes };

	threads_run_numbered(n_threads < n_blocks ? n_threads : (uint32_t)n_blocks, process_blocks,
			     &job);
	return atomic_load(&job.error);
}

/* --- bounded queues --- */

struct bounded_queue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	size_t capacity, head, n_items;
	bool finished;
	int error; /* 0 or the first error */
	void *items[];
};

int bounded_queue_open(size_t capacity, struct bounded_queue **ret_queue)
{
	struct bounded_queue *queue = calloc(1, sizeof *queue + capacity * sizeof queue->items[0]);

	if (!queue)
		return -ENOMEM;
	pthread_mutex_init(&queue->lock, NULL);
	pthread_cond_init(&queue->changed, NULL);
	queue->capacity = capacity;
	*ret_queue = queue;
	return 0;
}

void bounded_queue_close(struct bounded_queue *queue)
{
	if (!queue)
		return;
	pthread_cond_destroy(&queue->changed);
	pthread_mutex_destroy(&queue->lock);
	free(queue);
}

int bounded_queue_push(struct bounded_queue *queue, void *item)
{
	SCOPED_LOCK(&queue->lock);
	while (queue->n_items == queue->capacity && !queue->error && !queue->finished)
		pthread_cond_wait(&queue->changed, &queue->lock);
	if (queue->error || queue->finished)
		return queue->error ? queue->error : -EPIPE;
	queue->items[(queue->head + queue->n_items++) % queue->capacity] = item;
	pthread_cond_broadcast(&queue->changed);
	return 0;
}

int bounded_queue_pop(struct bounded_queue *queue, void **ret_item)
{
	SCOPED_LOCK(&queue->lock);
	while (queue->n_items == 0 && !queue->error && !queue->finished)
		pthread_cond_wait(&queue->changed, &queue->lock);
	if (queue->error || queue->n_items == 0)
		return queue->error ? queue->error : -ENODATA;
	*ret_item = queue->items[queue->head];
	queue->head = (queue->head + 1) % queue->capacity;
	queue->n_items--;
	pthread_cond_broadcast(&queue->changed);
	return 0;
}

void bounded_queue_finish(struct bounded_queue *queue)
{
	SCOPED_LOCK(&queue->lock);
	queue->finished = true;
	pthread_cond_broadcast(&queue->changed);
}

void bounded_queue_fail(struct bounded_queue *queue, int r)
{
	SCOPED_LOCK(&queue->lock);
	if (!queue->error)
		queue->error = r;
	pthread_cond_broadcast(&queue->changed);
}
