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

struct crew {
	pthread_mutex_t lock;
	pthread_cond_t started, ended;
	/* Under the lock: the job. */
	crew_part *part;
	void *context;
	struct messages *messages; /* of who wants it done */
	uint32_t n_parts, n_taken, n_at_work;
	int r; /* the first failure */
	bool closing;

	uint32_t n_threads; /* without the caller's */
	pthread_t threads[];
};

/* Under the lock, which is let go meanwhile: do parts until none is left. */
static void do_parts(struct crew *crew)
{
	crew->n_at_work++;
	messages_enter(crew->messages);
	while (crew->n_taken < crew->n_parts && crew->r == 0) {
		const uint32_t i = crew->n_taken++;
		int r;

		pthread_mutex_unlock(&crew->lock);
		r = crew->part(crew->context, i);
		pthread_mutex_lock(&crew->lock);
		if (r < 0 && crew->r == 0)
			crew->r = r;
	}
	if (--crew->n_at_work == 0)
		pthread_cond_signal(&crew->ended);
}

static void *crew_main(void *argument)
{
	struct crew *crew = argument;

	pthread_mutex_lock(&crew->lock);
	while (!crew->closing) {
		if (crew->n_taken < crew->n_parts && crew->r == 0)
			do_parts(crew);
		else
			pthread_cond_wait(&crew->started, &crew->lock);
	}
	pthread_mutex_unlock(&crew->lock);
	return NULL;
}

int crew_open(uint32_t n_threads, struct crew **ret_crew)
{
	struct crew *crew = calloc(1, sizeof *crew + n_threads * sizeof crew->threads[0]);

	if (!crew)
		return -ENOMEM;
	pthread_mutex_init(&crew->lock, NULL);
	pthread_cond_init(&crew->started, NULL);
	pthread_cond_init(&crew->ended, NULL);
	while (crew->n_threads + 1 < n_threads &&
	       thread_start(crew_main, crew, 0, &crew->threads[crew->n_threads]) == 0)
		crew->n_threads++;
	*ret_crew = crew;
	return 0;
}

void crew_close(struct crew *crew)
{
	if (!crew)
		return;
	pthread_mutex_lock(&crew->lock);
	crew->closing = true;
	pthread_cond_broadcast(&crew->started);
	pthread_mutex_unlock(&crew->lock);
	for (uint32_t i = 0; i < crew->n_threads; i++)
		pthread_join(crew->threads[i], NULL);
	pthread_cond_destroy(&crew->ended);
	pthread_cond_destroy(&crew->started);
	pthread_mutex_destroy(&crew->lock);
	free(crew);
}

int crew_run(struct crew *crew, crew_part *part, void *context, uint32_t n)
{
	int r;

	pthread_mutex_lock(&crew->lock);
	crew->part = part;
	crew->context = context;
	crew->messages = messages_current();
	crew->n_parts = n;
	crew->n_taken = 0;
	crew->r = 0;
	if (n > 1)
		pthread_cond_broadcast(&crew->started);
	do_parts(crew);
	while (crew->n_at_work > 0)
		pthread_cond_wait(&crew->ended, &crew->lock);
	r = crew->r;
	crew->n_parts = 0;
	pthread_mutex_unlock(&crew->lock);
	return r;
}

struct shared_work {
	crew_member *work;
	void *context;
	pthread_mutex_t lock; /* held until all are started */
	uint32_t n, n_come;
};

static void *shared_main(void *argument)
{
	struct shared_work *shared = argument;
	uint32_t number;

	pthread_mutex_lock(&shared->lock);
	number = shared->n_come++;
	pthread_mutex_unlock(&shared->lock);
	shared->work(shared->context, number, shared->n);
	return NULL;
}

void crew_share_numbered(uint32_t n_threads, crew_member *work, void *context)
{
	struct shared_work shared = { .work = work, .context = context };
	pthread_t *threads = n_threads > 1 ? calloc(n_threads - 1, sizeof *threads) : NULL;
	uint32_t n = 0;

	pthread_mutex_init(&shared.lock, NULL);
	pthread_mutex_lock(&shared.lock);
	while (threads && n + 1 < n_threads &&
	       thread_start(shared_main, &shared, 0, &threads[n]) == 0)
		n++;
	shared.n = n + 1;
	pthread_mutex_unlock(&shared.lock);
	shared_main(&shared);
	while (n)
		pthread_join(threads[--n], NULL);
	pthread_mutex_destroy(&shared.lock);
	free(threads);
}

struct unnumbered_work {
	void (*work)(void *context);
	void *context;
};

static void work_unnumbered(void *context, uint32_t number, uint32_t n)
{
	const struct unnumbered_work *unnumbered = context;

	(void)number, (void)n;
	unnumbered->work(unnumbered->context);
}

void crew_share(uint32_t n_threads, void (*work)(void *context), void *context)
{
	crew_share_numbered(n_threads, work_unnumbered, &(struct unnumbered_work){ work, context });
}
