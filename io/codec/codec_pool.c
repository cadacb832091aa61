/*
 * codec_pool - contexts of codecs (see codec_pool.h)
 */
#include "io/codec/codec_pool.h"

#include <errno.h>
#include <stdlib.h>

void codec_pool_init(struct codec_pool *pool, int zstd_level)
{
	*pool = (struct codec_pool){ .zstd_level = zstd_level };
	pthread_mutex_init(&pool->lock, NULL);
}

void codec_pool_destroy(struct codec_pool *pool)
{
	for (size_t i = 0; i < pool->n_idle; i++)
		codec_context_close(pool->idle[i]);
	free(pool->idle);
	pthread_mutex_destroy(&pool->lock);
}

/* One more context, with a place for it when it is idle. Under the lock. */
static int add_context(struct codec_pool *pool, struct codec_context **ret_context)
{
	const size_t n = pool->n_contexts + 1;
	struct codec_context **idle = realloc(pool->idle, n * sizeof(struct codec_context *));
	int r;

	if (!idle)
		return -ENOMEM;
	pool->idle = idle;
	r = codec_context_open(pool->zstd_level, ret_context);
	if (r == 0)
		pool->n_contexts = n;
	return r;
}

int codec_pool_acquire(struct codec_pool *pool, size_t scratch_nbytes,
		       struct codec_context **ret_context)
{
	struct codec_context *context;
	int r = 0;

	pthread_mutex_lock(&pool->lock);
	if (pool->n_idle)
		context = pool->idle[--pool->n_idle];
	else
		r = add_context(pool, &context);
	pthread_mutex_unlock(&pool->lock);
	if (r < 0)
		return r;
	r = codec_context_reserve(context, scratch_nbytes);
	if (r < 0)
		codec_pool_release(pool, context);
	else
		*ret_context = context;
	return r;
}

void codec_pool_release(struct codec_pool *pool, struct codec_context *context)
{
	if (!context)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->idle[pool->n_idle++] = context;
	pthread_mutex_unlock(&pool->lock);
}
