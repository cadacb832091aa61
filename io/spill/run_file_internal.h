/*
 * run_file_internal - a run file, as the files of its implementation share it
 *
 *	run_file.c		opened and written; what is known of its blocks
 *	run_file_read.c		read, and given back
 */
#pragma once

#include <pthread.h>

#include "io/spill/block_writer.h"
#include "io/spill/run_file.h"

struct run_file {
	struct run_blocks_format format; /* set at creation */

	pthread_mutex_t lock;
	/* Under the lock until the run is finished, then constant but for the discarded flags. */
	struct run_block *blocks;
	size_t n_blocks;
	size_t capacity; /* of blocks */
	uint64_t n_items;
};
