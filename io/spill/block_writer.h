/*
 * block_writer - a window's items to the blocks that they are stored as
 *
 * Blocks whose stored bytes are neighbours in memory are written together, as one extent of the
 * spill. Such a group is bounded: its blocks are hashed and copied by the same core, and both go
 * faster while they are in its cache. Raw blocks are written from where they were merged; encoded
 * ones are collected in the scratch of a codec's context.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/spill/compression_policy.h"
#include "io/spill/run_format.h"
#include "io/spill/spill.h"

#define BLOCK_GROUP_NBYTES ((uint64_t)4 << 20)

/* What the blocks of a run have in common. */
struct run_blocks_format {
	struct spill *spill;
	struct compression *compression; /* NULL: all blocks are raw */
	uint32_t item_nbytes;
	uint32_t block_n_items; /* the most in a block */
};

/*
 * Write the items of n blocks whose n_items are set; the rest of what the index says of the stored
 * bytes is then set, too. Returns 0 or a negative errno after a message. Thread-safe.
 */
int block_writer_write(const struct run_blocks_format *format, struct run_block *blocks, size_t n,
		       const void *items);

/*
 * The same of blocks that were packed on a device: block i is in packed_nbytes[i] bytes,
 * one block behind the other; in delta, or raw if it takes as many as its items. They are one
 * group.
 */
int block_writer_write_packed(const struct run_blocks_format *format, struct run_block *blocks,
			      size_t n, const void *packed, const uint32_t *packed_nbytes);

/*
 * What a thread takes that encodes or decodes blocks of so many bytes, scratch and all; 0 if none
 * does. are_encoded_keys: see compression_policy.h.
 */
size_t block_writer_thread_nbytes(const struct compression_params *params, bool are_encoded_keys,
				  size_t block_nbytes);

/* The scratch that encoded blocks are collected in, and read to: a few blocks. */
size_t block_writer_scratch_nbytes(const struct run_blocks_format *format);
