/*
 * codec - how the items of a block are encoded for storage (see codec.h)
 */
#include "io/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_estimate...() */
#include <zstd.h>
#include <zstd_errors.h>

#include "src/base/thread.h"
#include "src/record/delta_pack.h"

enum { PAGE_NBYTES = 4096 };

struct codec_context {
	int zstd_level; /* constant */

	/* Allocated when first needed. */
	ZSTD_CCtx *cctx;
	ZSTD_DCtx *dctx;
	void *scratch;
	size_t scratch_nbytes;
};

int codec_context_open(int zstd_level, struct codec_context **ret_context)
{
	struct codec_context *context = calloc(1, sizeof *context);

	if (!context)
		return -ENOMEM;
	context->zstd_level = zstd_level;
	*ret_context = context;
	return 0;
}

void codec_context_close(struct codec_context *context)
{
	if (!context)
		return;
	ZSTD_freeCCtx(context->cctx);
	ZSTD_freeDCtx(context->dctx);
	free(context->scratch);
	free(context);
}

size_t codec_context_nbytes(int zstd_level, size_t content_nbytes)
{
	const ZSTD_compressionParameters parameters =
		ZSTD_getCParams(zstd_level, content_nbytes, 0);

	return ZSTD_estimateCCtxSize_usingCParams(parameters) + codec_decoder_nbytes();
}

size_t codec_decoder_nbytes(void)
{
	return ZSTD_estimateDCtxSize();
}

/* Allocate page-aligned scratch memory. Returns 0 or -ENOMEM; then there is none. */
static int reserve_scratch(struct codec_context *context, size_t nbytes)
{
	const size_t rounded_nbytes = (nbytes + PAGE_NBYTES - 1) / PAGE_NBYTES * PAGE_NBYTES;

	if (context->scratch_nbytes >= nbytes)
		return 0;
	free(context->scratch);
	context->scratch = aligned_alloc(PAGE_NBYTES, rounded_nbytes);
	context->scratch_nbytes = context->scratch ? rounded_nbytes : 0;
	return context->scratch ? 0 : -ENOMEM;
}

void *codec_context_scratch(struct codec_context *context)
{
	return context->scratch;
}

static size_t items_nbytes(const struct codec_items *items)
{
	return items->n * items->item_nbytes;
}

static ssize_t encode_delta(struct codec_context *context, const struct codec_items *items,
			    void *stored, size_t capacity)
{
	(void)context;
	return (ssize_t)delta_encode(items->items, items->n, items->item_nbytes, stored, capacity);
}

static int decode_delta(struct codec_context *context, const void *stored, size_t stored_nbytes,
			const struct codec_items *items)
{
	(void)context;
	return delta_decode(stored, stored_nbytes, items->items, items->n, items->item_nbytes);
}

static ssize_t encode_zstd(struct codec_context *context, const struct codec_items *items,
			   void *stored, size_t capacity)
{
	size_t nbytes;

	if (!context->cctx)
		context->cctx = ZSTD_createCCtx();
	if (!context->cctx)
		return -ENOMEM;
	nbytes = ZSTD_compressCCtx(context->cctx, stored, capacity, items->items,
				   items_nbytes(items), context->zstd_level);
	if (!ZSTD_isError(nbytes))
		return (ssize_t)nbytes;
	return ZSTD_getErrorCode(nbytes) == ZSTD_error_dstSize_tooSmall ? 0 : -ENOMEM;
}

static int decode_zstd(struct codec_context *context, const void *stored, size_t stored_nbytes,
		       const struct codec_items *items)
{
	size_t nbytes;

	if (!context->dctx)
		context->dctx = ZSTD_createDCtx();
	if (!context->dctx)
		return -ENOMEM;
	nbytes = ZSTD_decompressDCtx(context->dctx, items->items, items_nbytes(items), stored,
				     stored_nbytes);
	if (ZSTD_isError(nbytes) && ZSTD_getErrorCode(nbytes) == ZSTD_error_memory_allocation)
		return -ENOMEM;
	return nbytes == items_nbytes(items) ? 0 : -EBADMSG;
}

const struct codec codecs[N_CODECS] = {
	[CODEC_RAW] = { .name = "raw" },
	[CODEC_DELTA] = { .name = "delta", .encode = encode_delta, .decode = decode_delta },
	[CODEC_ZSTD] = { .name = "zstd", .encode = encode_zstd, .decode = decode_zstd },
};

/* --- contexts for many threads --- */

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

/* Add a context, with room for it in `idle`. Requires the lock. */
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
	r = reserve_scratch(context, scratch_nbytes);
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
	SCOPED_LOCK(&pool->lock);
	pool->idle[pool->n_idle++] = context;
}
