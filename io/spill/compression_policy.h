/*
 * compression_policy - which codec the blocks of spilled runs get, and what it was good for
 *
 * One for all runs of a sort. It hands out the codecs' contexts, of which there are as many as
 * threads ever were at work, and counts.
 *
 *	none	raw
 *	delta	codes: delta. Records: zstd at level 1, since a record's bytes are no number
 *	zstd	zstd, at a level
 *	auto	delta or zstd:1, as above, or raw, whichever makes the whole faster
 *
 * auto. Storing a byte raw takes the time W. Encoding takes E for it and leaves a part s of the
 * byte to be stored. So it pays if
 *
 *	E + s W < 0.9 W
 *
 * where reading the run back is left out, since it is the same again on both sides: decoding takes
 * about half as long as encoding, and reading as writing. The tenth is for doubt.
 *
 * A device with memory of its own encodes delta itself, faster than it could send the codes as they
 * are; then auto is delta.
 *
 * E and s are measured on some blocks now and then while blocks are stored raw, and on all of them
 * else; W on every write, as the time that a writer spends in it. Once the page cache is full that
 * is the time of the disk, before that little more than of a copy. All decay, so that the choice,
 * which is made anew for each window, follows what the disk does.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec.h"

enum compression_mode { COMPRESS_AUTO, COMPRESS_NONE, COMPRESS_DELTA, COMPRESS_ZSTD };

/* What is asked for. */
struct compression_params {
	enum compression_mode mode;
	int zstd_level; /* of COMPRESS_ZSTD */
};

/* Parse "auto", "none", "delta", "zstd" or "zstd:LEVEL". -EINVAL without a message. */
int compression_parse(const char *text, struct compression_params *ret_params);
/* What zstd is without a LEVEL. */
enum { DEFAULT_ZSTD_LEVEL = 3 };

/* Only the LEVEL, from 1 to the highest that Zstandard has. */
int compression_parse_level(const char *text, int *ret_level);
int compression_max_level(void);

/* May blocks of codes be in delta? */
bool compression_allows_delta(const struct compression_params *params);

struct compression;

/* What a context takes for blocks of so many bytes, besides its scratch; are_encoded_keys as below.
 */
size_t compression_context_nbytes(const struct compression_params *params, bool are_encoded_keys,
				  size_t block_nbytes);

/* are_encoded_keys: items are sorted codes of 4, 8 or 16 bytes. -ENOMEM after a message. */
int compression_open(const struct compression_params *params, bool are_encoded_keys,
		     struct compression **ret_compression);
/* NULL is fine. */
void compression_close(struct compression *compression);

/* Before anything is stored: encode whatever it costs, there may be too little space otherwise. */
void compression_always_encode(struct compression *compression);

/* The rest is thread-safe, and where it says so takes NULL, as which everything is raw. */

/* A context for one thread, with a scratch of that size. -ENOMEM after a message. */
int compression_acquire(struct compression *compression, size_t scratch_nbytes,
			struct codec_context **ret_context);
/* context: NULL is fine. */
void compression_release(struct compression *compression, struct codec_context *context);

/* How to store a window. */
struct compression_plan {
	enum codec_id codec;
	enum codec_id probe_codec; /* encode a block with this, only to see; CODEC_RAW: do not */
};

/* compression: NULL is fine. */
struct compression_plan compression_plan_window(struct compression *compression);

/* What was seen while a window was stored. */
struct compression_sample {
	uint64_t encoder_input_nbytes; /* of items that were encoded, ... */
	uint64_t encoded_nbytes;       /* ... what became of them, ... */
	uint64_t encode_ns;            /* ... and how long it took */
	uint64_t items_nbytes;         /* of the window */
	uint64_t stored_nbytes;        /* what was written for it, ... */
	uint64_t write_ns;             /* ... and how long that took */
	uint64_t n_encoded_blocks;     /* that are not stored raw */
};

/* compression: NULL is fine. */
void compression_record_sample(struct compression *compression,
			       const struct compression_sample *sample);

/* All that was stored. */
struct compression_totals {
	const char *codec; /* of any block that shrank, or "raw" */
	uint64_t items_nbytes, stored_nbytes;
};

struct compression_totals compression_totals(struct compression *compression);
