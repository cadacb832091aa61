/*
 * thread_pool - a few threads that do the parts of one job after the other (see thread_pool.h)
 */
#include "src/base/thread_pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"

struct thread_pool {
	pthread_mutex_t lock;
	pthread_cond_t work_available, work_done;
	/* Under the lock: the job. */
	thread_pool_task *task;
	void *context;
	struct diagnostics *diagnostics; /* of who wants it done */
	uint32_t n_tasks, n_claimed, n_active;
	int error; /* the first failure */
	bool closing;

	uint32_t n_threads; /* without the caller's */
	pthread_t threads[];
};

/* Under the lock, which is let go meanwhile: do parts until none is left. */
static void run_tasks(struct thread_pool *pool)
{
	pool->n_active++;
	diagnostics_push(pool->diagnostics);
	while (pool->n_claimed < pool->n_tasks && pool->error == 0) {
		const uint32_t i = pool->n_claimed++;
		int r;

		pthread_mutex_unlock(&pool->lock);
		r = pool->task(pool->context, i);
		pthread_mutex_lock(&pool->lock);
		if (r < 0 && pool->error == 0)
			pool->error = r;
	}
	if (--pool->n_active == 0)
		pthread_cond_signal(&pool->work_done);
}

static void *task_thread_main(void *argument)
{
	struct thread_pool *pool = argument;

	pthread_mutex_lock(&pool->lock);
	while (!pool->closing) {
		if (pool->n_claimed < pool->n_tasks && pool->error == 0)
			run_tasks(pool);
		else
			pthread_cond_wait(&pool->work_available, &pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int thread_pool_open(uint32_t n_threads, struct thread_pool **ret_pool)
{
	struct thread_pool *pool = calloc(1, sizeof *pool + n_threads * sizeof pool->threads[0]);

	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->work_available, NULL);
	pthread_cond_init(&pool->work_done, NULL);
	while (pool->n_threads + 1 < n_threads &&
	       thread_start(task_thread_main, pool, 0, &pool->threads[pool->n_threads]) == 0)
		pool->n_threads++;
	*ret_pool = pool;
	return 0;
}

void thread_pool_close(struct thread_pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	pthread_cond_broadcast(&pool->work_available);
	pthread_mutex_unlock(&pool->lock);
	for (uint32_t i = 0; i < pool->n_threads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->work_done);
	pthread_cond_destroy(&pool->work_available);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int thread_pool_run(struct thread_pool *pool, thread_pool_task *task, void *context,
		    uint32_t n_tasks)
{
	int r;

	pthread_mutex_lock(&pool->lock);
	pool->task = task;
	pool->context = context;
	pool->diagnostics = diagnostics_current();
	pool->n_tasks = n_tasks;
	pool->n_claimed = 0;
	pool->error = 0;
	if (n_tasks > 1)
		pthread_cond_broadcast(&pool->work_available);
	run_tasks(pool);
	while (pool->n_active > 0)
		pthread_cond_wait(&pool->work_done, &pool->lock);
	r = pool->error;
	pool->n_tasks = 0;
	pthread_mutex_unlock(&pool->lock);
	return r;
}

struct thread_team {
	numbered_thread_fn *work;
	void *context;
	pthread_mutex_t lock; /* held until all are started */
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
	pthread_t *threads = n_threads > 1 ? calloc(n_threads - 1, sizeof *threads) : NULL;
	uint32_t n = 0;

	pthread_mutex_init(&team.lock, NULL);
	pthread_mutex_lock(&team.lock);
	while (threads && n + 1 < n_threads &&
	       thread_start(team_thread_main, &team, 0, &threads[n]) == 0)
		n++;
	team.n_threads = n + 1;
	pthread_mutex_unlock(&team.lock);
	team_thread_main(&team);
	while (n)
		pthread_join(threads[--n], NULL);
	pthread_mutex_destroy(&team.lock);
	free(threads);
}

struct unnumbered_work {
	void (*work)(void *context);
	void *context;
};

static void call_unnumbered(void *context, uint32_t number, uint32_t n)
{
	const struct unnumbered_work *unnumbered = context;

	(void)number, (void)n;
	unnumbered->work(unnumbered->context);
}

void threads_run(uint32_t n_threads, void (*work)(void *context), void *context)
{
	threads_run_numbered(n_threads, call_unnumbered,
			     &(struct unnumbered_work){ work, context });
}
