/*
 * codec - how the items of a block become the bytes that are stored, and back
 *
 * One table: a codec's id, which the index of a run holds for each block, is its place in it. A
 * block that does not shrink is stored raw, as it is, straight from where its items lie.
 *
 *	raw	the items
 *	delta	differences of neighbours (delta_pack.h); items must be codes of 4, 8 or 16 bytes
 *	zstd	a frame of Zstandard; any items
 *
 * What encoding and decoding need besides the items, a context has: one for each thread at work.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum codec_id { CODEC_RAW, CODEC_DELTA, CODEC_ZSTD, N_CODECS };

struct codec_context;

/* n items, one after the other. */
struct codec_items {
	void *items; /* aligned for their size if they are codes */
	size_t n;
	uint32_t item_nbytes;
};

struct codec {
	const char *name;
	/*
	 * The stored form of the items in at most `capacity` bytes. Returns its size, 0 if it does
	 * not fit, -ENOMEM without a message. NULL: the items are stored as they are.
	 */
	ssize_t (*encode)(struct codec_context *context, const struct codec_items *items,
			  void *stored, size_t capacity);
	/*
	 * Back to exactly items->n items. Returns 0, or without a message -EBADMSG if `stored`
	 * cannot be that, -ENOMEM. Safe for any bytes.
	 */
	int (*decode)(struct codec_context *context, const void *stored, size_t stored_nbytes,
		      const struct codec_items *items);
};

extern const struct codec codecs[N_CODECS];

/* zstd_level: as Zstandard has them. -ENOMEM without a message. */
int codec_context_open(int zstd_level, struct codec_context **ret_context);
/* NULL is fine. */
void codec_context_close(struct codec_context *context);

/* What a context takes that encodes and decodes so much at once with zstd, besides its scratch. */
size_t codec_context_nbytes(int zstd_level, size_t content_nbytes);
/* The same of one that only decodes. */
size_t codec_decoder_nbytes(void);

/*
 * Have memory for nbytes of stored bytes at least, beginning at a page. -ENOMEM without a message;
 * there is none then.
 */
int codec_context_reserve(struct codec_context *context, size_t nbytes);

/* That memory; the context's, until the next reserve. */
void *codec_context_scratch(struct codec_context *context);
