/*
 * block_unpack - the blocks of spilled runs that a device unpacks together for a window
 *
 * They are collected run by run, with where they lie and where their elements go, unpacked by one
 * operation, and, once that is done, asked whether they could be. Used by one thread.
 */
#pragma once

#include "src/run/run.h"

/* Made by {0}. */
struct block_unpack {
	struct packed_block *blocks; /* n_blocks, with room for n_allocated; as the next */
	struct unpack_origin *origins;
	uint32_t n_blocks, n_allocated;
	uint32_t damaged_block; /* by the device: see unpack_op */
};

/* What was allocated. */
void block_unpack_free(struct block_unpack *unpack);

/* Those collected so far are done with. */
void block_unpack_reset(struct block_unpack *unpack);

/*
 * Add the blocks [first, first + n) of a run. They lie in device memory as run_read_packed()
 * has read them, and their elements, of element_nbytes, become neighbours. -ENOMEM after a message.
 */
int block_unpack_add(struct block_unpack *unpack, const struct run *run, uint64_t first, uint64_t n,
		     const char *packed, char *elements, uint32_t element_nbytes);

/* Queue the operation, if there are any blocks. 0, or a negative errno after a message. */
int block_unpack_queue(struct block_unpack *unpack, const struct job *job,
		       struct device_queue *queue);

/* After an event behind it: 0, or -EBADMSG after a message that names the first damaged block. */
int block_unpack_check(const struct block_unpack *unpack);
