/*
 * codec_pool - contexts of codecs, as many as threads were ever at work at once
 *
 * Thread-safe but for init and destroy. Nothing prints.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>

#include "io/codec/codec.h"

struct codec_pool {
	int zstd_level; /* set at creation */

	pthread_mutex_t lock;
	/* Under the lock. */
	struct codec_context **idle; /* n_idle, on loan to nobody; room for all n_contexts */
	size_t n_idle, n_contexts;
};

void codec_pool_init(struct codec_pool *pool, int zstd_level);
/* All contexts must be back. */
void codec_pool_destroy(struct codec_pool *pool);

/* A context for one thread, with a scratch of that size at least. 0 or -ENOMEM. */
int codec_pool_acquire(struct codec_pool *pool, size_t scratch_nbytes,
		       struct codec_context **ret_context);
/* context: NULL is fine. */
void codec_pool_release(struct codec_pool *pool, struct codec_context *context);
