/*
 * codec - how the items of a block become the bytes that are stored (see codec.h)
 */
#include "io/codec/codec.h"

#include <errno.h>
#include <stdlib.h>
#define ZSTD_STATIC_LINKING_ONLY /* for its estimates */
#include <zstd.h>
#include <zstd_errors.h>

#include "src/record/delta_pack.h"

enum { PAGE_NBYTES = 4096 };

struct codec_context {
	int zstd_level; /* set at creation */

	/* Made when they are first needed. */
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

int codec_context_reserve(struct codec_context *context, size_t nbytes)
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
