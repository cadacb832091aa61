/*
 * run_file - a sorted run in the temporary space
 *
 *	open -> write* -> finish -> { read, discard }* -> close
 *
 * Several threads may write, in any order, and several may read and discard.
 *
 * Windows of the run are written as they come out of a merge; each carries its number in the run's
 * order, and finish() puts the blocks in that order. Reading verifies length and checksum of every
 * block: a block that is not what was written is an error that names it, never data.
 *
 * All functions that return an errno print their message.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/spill/compression_policy.h"
#include "io/spill/run_format.h"
#include "io/spill/spill.h"

struct run_file;

/*
 * The number of items in a block of about block_nbytes: such that blocks fill whole pages of the
 * spill if they are large enough for that, and at least 1.
 */
uint32_t run_file_block_n_items(uint64_t block_nbytes, uint32_t item_nbytes);

/*
 * A run of items of item_nbytes in blocks of block_n_items. compression says how they are stored;
 * NULL: raw. It and the spill must outlive the run.
 */
int run_file_open(struct spill *spill, struct compression *compression, uint32_t item_nbytes,
		  uint32_t block_n_items, struct run_file **ret_run);

/*
 * Add the blocks of a run that an earlier process has written and finished, as run_file_blocks()
 * had them. -ENOMEM after a message.
 */
int run_file_restore(struct run_file *run, const struct run_block *blocks, size_t n);

/* Discards what is left of it, unless the spill is kept. NULL is fine. */
void run_file_close(struct run_file *run);

/*
 * Store a window's n_items as blocks. `sequence` orders the windows and is different for each.
 * first_keys: of each block, ceil(n_items / block_n_items) of them. Thread-safe.
 */
int run_file_write(struct run_file *run, uint64_t sequence, const void *items, uint64_t n_items,
		   const encoded_key_t *first_keys);

/*
 * The same, of blocks that were packed on a device: block i is in packed_nbytes[i] bytes,
 * behind the one before it; in delta, or raw if it takes as many as its items. Items are codes.
 */
int run_file_write_packed(struct run_file *run, uint64_t sequence, const void *packed,
			  const uint32_t *packed_nbytes, uint64_t n_items,
			  const encoded_key_t *first_keys);

/* Everything is written: order the blocks. No writer may be left. */
int run_file_finish(struct run_file *run);

/* The rest is for finished runs. */

/* The index, in the order of the run; owned by it, and valid until it is closed. */
const struct run_block *run_file_blocks(const struct run_file *run);
uint64_t run_file_n_blocks(const struct run_file *run);
uint64_t run_file_n_items(const struct run_file *run);
uint32_t run_file_item_nbytes(const struct run_file *run);

/* Of a block that somebody else tells of: may it be one, of items of item_nbytes? */
bool run_block_is_valid(const struct run_block *block, uint64_t item_nbytes);

/*
 * Read the blocks [first, first + n) into `items`, one after the other. Thread-safe.
 * Returns 0, or a negative errno: -EBADMSG when a block is damaged or cut.
 */
int run_file_read(struct run_file *run, uint64_t first, uint64_t n, void *items);

/*
 * Read them, verified, for a device to unpack: blocks in delta stay as they are stored, others
 * become items. They take run_file_packed_nbytes(), one behind the other. As above.
 */
int run_file_read_packed(struct run_file *run, uint64_t first, uint64_t n, void *packed);

/* Of block i, as it is read so. */
uint32_t run_file_packed_nbytes(const struct run_file *run, uint64_t i);

/* Print that block i, whose checksum was right, cannot be decoded. -EBADMSG. */
int run_file_fail_packed(const struct run_file *run, uint64_t i);

/*
 * Give the space of the blocks [first, first + n) back; they cannot be read again. The one
 * before them must have been given back already, or not be read again.
 */
void run_file_discard(struct run_file *run, uint64_t first, uint64_t n);

/* The same of all blocks whose space has not been given back yet. */
void run_file_discard_remaining(struct run_file *run);

/* Memory that the index takes now. */
size_t run_file_memory_nbytes(const struct run_file *run);
