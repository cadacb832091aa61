/*
 * codec - how the items of a block are encoded for storage
 *
 * One table of codecs: the codec's number, which the index of a run holds for each block, is its
 * index. A block that does not shrink is stored raw, straight from its items.
 *
 *	raw	the items
 *	delta	differences of neighbours (delta_pack.h); for encoded keys of 4, 8 or 16 bytes
 *	zstd	a frame of Zstandard; for any items
 *
 * A context holds the memory of encoding and decoding. Each thread at work needs its own.
 */
#pragma once

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum codec_id { CODEC_RAW, CODEC_DELTA, CODEC_ZSTD, N_CODECS };

struct codec_context;

/* n contiguous items. */
struct codec_items {
	void *items; /* encoded keys are aligned to their size */
	size_t n;
	uint32_t item_nbytes;
};

struct codec {
	const char *name;
	/*
	 * Encode the items to at most `capacity` bytes. Returns the size, 0 if it does not fit, or
	 * -ENOMEM (not reported). NULL: the items are stored as they are.
	 */
	ssize_t (*encode)(struct codec_context *context, const struct codec_items *items,
			  void *stored, size_t capacity);
	/*
	 * Decode to exactly items->n items. Safe for any stored bytes. Returns 0, -EBADMSG if they
	 * are not such items, or -ENOMEM; neither is reported.
	 */
	int (*decode)(struct codec_context *context, const void *stored, size_t stored_nbytes,
		      const struct codec_items *items);
};

extern const struct codec codecs[N_CODECS];

/* Open a context that compresses at zstd_level. Returns 0 or -ENOMEM (not reported). */
int codec_context_open(int zstd_level, struct codec_context **ret_context);
/* NULL is ignored. */
void codec_context_close(struct codec_context *context);

/*
 * Return the memory of a context that encodes and decodes blocks of content_nbytes with zstd,
 * without its scratch memory.
 */
size_t codec_context_nbytes(int zstd_level, size_t content_nbytes);
/* Return the memory of a context that only decodes, without its scratch memory. */
size_t codec_decoder_nbytes(void);

/* Return the scratch memory of an acquired context, page-aligned. */
void *codec_context_scratch(struct codec_context *context);

/* --- contexts for many threads --- */

/* A pool grows to as many contexts as threads were at work at the same time. */
struct codec_pool {
	int zstd_level; /* constant */

	pthread_mutex_t lock;
	/* Protected by the lock. */
	struct codec_context **idle; /* n_idle of n_contexts, for which there is room */
	size_t n_idle, n_contexts;
};

void codec_pool_init(struct codec_pool *pool, int zstd_level);
/* All contexts must have been released. */
void codec_pool_destroy(struct codec_pool *pool);

/*
 * Acquire a context for one thread, with at least scratch_nbytes of scratch memory. Thread-safe.
 * Returns 0 or -ENOMEM (not reported).
 */
int codec_pool_acquire(struct codec_pool *pool, size_t scratch_nbytes,
		       struct codec_context **ret_context);
/* Thread-safe. NULL is ignored. */
void codec_pool_release(struct codec_pool *pool, struct codec_context *context);
