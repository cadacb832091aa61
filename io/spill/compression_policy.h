/*
 * compression_policy.h - which codec the blocks of spilled runs get, and its effect
 *
 * One for all runs of a sort. It owns the codec contexts, as many as threads were ever at work, and
 * counts.
 *
 *	none	raw
 *	delta	encoded keys: delta; records: zstd level 1, because a record is not a number
 *	zstd	zstd, with a level
 *	auto	as delta, or raw, whichever makes the sort faster
 *
 * auto: Let W be the time to store a byte raw, E the time to encode a byte, and s the compressed
 * part of a byte. Encoding pays if
 *
 *	E + s W < 0.9 W
 *
 * The factor 0.9 is a margin for measurement errors. Reading the run back is omitted, because it
 * adds the same to both sides: decoding takes about half as long as encoding, and reading as
 * writing. A device with its own memory encodes delta itself, faster than it could transfer the
 * keys; then auto means delta.
 *
 * While blocks are stored raw, E and s are measured on a few blocks now and then; otherwise on all.
 * W is measured on every write. Until the page cache is full, W is little more than the time of a
 * copy; afterwards it is the time of the disk. All measurements decay, so that the choice, which is
 * made for each window, follows the disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec.h"

enum compression_mode { COMPRESS_AUTO, COMPRESS_NONE, COMPRESS_DELTA, COMPRESS_ZSTD };

enum { DEFAULT_ZSTD_LEVEL = 3 };

struct compression_params {
	enum compression_mode mode;
	int zstd_level; /* of COMPRESS_ZSTD */
};

/* Parse "auto", "none", "delta", "zstd" or "zstd:LEVEL". Returns 0 or -EINVAL (not reported). */
int compression_parse(const char *text, struct compression_params *ret_params);

/* Parse only LEVEL, from 1 to the maximum of Zstandard. */
int compression_parse_level(const char *text, int *ret_level);
int compression_max_level(void);

/* Return whether blocks of encoded keys may be delta-encoded. */
bool compression_allows_delta(const struct compression_params *params);

/* Return the memory of a codec context for blocks of this size, without scratch. */
size_t compression_context_nbytes(const struct compression_params *params, bool are_encoded_keys,
				  size_t block_nbytes);

struct compression;

/* are_encoded_keys: items are sorted encoded keys of 4, 8 or 16 bytes. Returns 0 or -ENOMEM. */
int compression_open(const struct compression_params *params, bool are_encoded_keys,
		     struct compression **ret_compression);

/* NULL is ignored. */
void compression_close(struct compression *compression);

/* Before anything is stored: encode at any cost, because space may be too small otherwise. */
void compression_always_encode(struct compression *compression);

/* --- thread-safe --- */

/* Get a context for the calling thread, with scratch of that size. Returns 0 or -ENOMEM. */
int compression_acquire(struct compression *compression, size_t scratch_nbytes,
			struct codec_context **ret_context);

/* context: NULL is ignored. */
void compression_release(struct compression *compression, struct codec_context *context);

struct compression_plan {
	enum codec_id codec;
	enum codec_id probe_codec; /* encode some blocks with it to measure; CODEC_RAW: do not */
};

/* Decide how to store a window. compression: NULL means raw. */
struct compression_plan compression_plan_window(struct compression *compression);

/* The measurements of one window. */
struct compression_sample {
	uint64_t encoder_input_nbytes; /* of items that were encoded */
	uint64_t encoded_nbytes;       /* the size of these afterwards */
	uint64_t encode_ns;
	uint64_t items_nbytes;  /* size of the items of the window */
	uint64_t stored_nbytes; /* size of the stored blocks of the window */
	uint64_t write_ns;
	uint64_t n_encoded_blocks; /* not stored raw */
};

/* compression: NULL is ignored. */
void compression_record_sample(struct compression *compression,
			       const struct compression_sample *sample);

/* The sums of all windows. */
struct compression_totals {
	const char *codec; /* of the blocks that were encoded, or "raw" */
	uint64_t items_nbytes, stored_nbytes;
};

struct compression_totals compression_totals(struct compression *compression);
