/*
 * run_file.h - a sorted run in temporary space
 *
 *	open -> write* -> finish -> { read, discard }* -> close
 *
 *	window 0           window 1          ...	in the order in which they were written
 *	[ b0 b1 b2 b3 b4 ] [ b5 b6 b7 b8 b9 ]		one or more extents of the spill each
 *
 * A run is a sorted sequence of items (elements or records of item_nbytes). It is stored in blocks
 * of a fixed number of items, except that the last block of a window may be shorter. Windows are
 * written as they come out of a merge; each has a sequence number, and run_file_finish() sorts the
 * blocks by it.
 *
 * A block is encoded by itself (codec.h), and found, checked and ordered by its entry in the index,
 * which stays in memory. The stored bytes are only the blocks, without headers. So a raw block is
 * written directly from where it was merged, and read directly to where it is needed. Reading
 * verifies the length and checksum of every block: a damaged block is an error that names it, never
 * data.
 *
 * Several threads may write, and several may read and discard. All functions report their errors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/spill/compression_policy.h"
#include "io/spill/spill.h"
#include "src/record/layout.h"

/* The index entry of a block. */
struct run_block {
	encoded_key_t first_key; /* encoded key of its first item */
	uint64_t first_item;     /* its position in the run; set by run_file_finish() */
	uint64_t offset;         /* position of the stored bytes in `file` */
	uint64_t checksum;       /* checksum64() of the stored bytes */
	uint64_t sequence;       /* number of its window */
	uint32_t stored_nbytes;
	uint32_t n_items;
	uint32_t index_in_window;
	uint16_t file;     /* index among the files of the spill */
	uint8_t codec;     /* enum codec_id */
	uint8_t discarded; /* its space was released */
};

_Static_assert(sizeof(struct run_block) == 64, "the plan counts the memory of an index with this");

struct run_index {
	struct run_block *blocks; /* n_blocks, in the order of the run; for free() */
	uint64_t n_blocks, n_items;
	uint32_t item_nbytes;
};

/*
 * Check the blocks of an index, or a part of one, that was read from a file or received from
 * another process, and set n_items. The reader of a run relies on this check. Returns 0, or
 * -EBADMSG without a message.
 */
int run_index_check(struct run_index *index);

/* Return the block that holds an item. */
uint64_t run_index_find_block(const struct run_index *index, uint64_t item);

/* Return the number of items in the largest block, at least 1. */
uint32_t run_index_max_block_items(const struct run_index *index);

/* The maximum of stored bytes that are transferred together. */
#define BLOCK_GROUP_NBYTES ((uint64_t)4 << 20)

/*
 * Return the memory of a thread that encodes or decodes blocks of that size, including scratch; 0
 * if none is encoded. are_encoded_keys: see compression_open().
 */
size_t run_file_thread_nbytes(const struct compression_params *params, bool are_encoded_keys,
			      size_t block_nbytes);

struct run_file;

/*
 * Return the number of items of a block of about block_nbytes: at least 1, and such that large
 * blocks fill whole pages of the spill.
 */
uint32_t run_file_block_n_items(uint64_t block_nbytes, uint32_t item_nbytes);

/* Open a run. compression: NULL: store raw blocks. It and the spill must outlive the run. */
int run_file_open(struct spill *spill, struct compression *compression, uint32_t item_nbytes,
		  uint32_t block_n_items, struct run_file **ret_run);

/*
 * Open a run, or a part of one, that another process has finished. Takes the blocks out of the
 * index, which run_index_check() has accepted. Returns 0 or -ENOMEM.
 */
int run_file_open_finished(struct spill *spill, struct compression *compression,
			   struct run_index *index, struct run_file **ret_run);

/* Free the run. Discards its remaining blocks unless the spill is persistent. NULL is ignored. */
void run_file_close(struct run_file *run);

/*
 * Store the items of a window. first_keys: the first key of each of its ceil(n_items /
 * block_n_items) blocks. packed_nbytes: NULL, or a device has packed the items, which are encoded
 * keys: block i takes packed_nbytes[i] bytes, one block after the other. It is in delta encoding,
 * or raw if that is the size of its items. Thread-safe.
 */
int run_file_write(struct run_file *run, uint64_t sequence, const void *items,
		   const uint32_t *packed_nbytes, uint64_t n_items,
		   const encoded_key_t *first_keys);

/* After all writes: sort the blocks. */
void run_file_finish(struct run_file *run);

/* --- finished runs --- */

/* The index, owned by the run. */
const struct run_index *run_file_index(const struct run_file *run);

/* READ_PACKED: for a device to unpack: blocks in delta encoding as they are stored. */
enum read_format { READ_ITEMS, READ_PACKED };

/*
 * Read and verify blocks [first, first + n). Block i takes run_file_block_nbytes(). Thread-safe.
 * -EBADMSG: a block is damaged or cut off.
 */
int run_file_read(struct run_file *run, uint64_t first, uint64_t n, enum read_format format,
		  void *blocks);
uint32_t run_file_block_nbytes(const struct run_file *run, uint64_t i, enum read_format format);

/* Report that block i, whose checksum was right, cannot be decoded. Returns -EBADMSG. */
int run_file_fail_packed(const struct run_file *run, uint64_t i);

/*
 * Release the space of blocks [first, first + n), which are not read again. The block before them
 * must have been discarded already, or must not be read again.
 */
void run_file_discard(struct run_file *run, uint64_t first, uint64_t n);

/* Release the space of all blocks that were not discarded. */
void run_file_discard_remaining(struct run_file *run);
