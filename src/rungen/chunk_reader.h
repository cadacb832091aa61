/*
 * chunk_reader - the input into chunks, by several reader threads
 *
 * Where the device has no memory of its own a reader takes a free chunk and reads straight into it.
 * Else the input goes part by part through slots, pinned buffers of plan.slot_nbytes that copies to
 * the device start from; the parts of a chunk are read by all readers at once.
 *
 *	input --read--> slot --copy (upload queue)--> chunk --sort when its last part is there-->
 */
#pragma once

#include "src/rungen/chunk_pool.h"

struct chunk_reader;

/* Start plan.n_readers readers. 0, or a negative errno after a message. */
int chunk_reader_start(const struct job *job, struct chunk_pool *pool,
		       struct chunk_reader **ret_reader);

/*
 * Wait for the readers to end, and close; NULL is fine. They end with the input, or when a ring of
 * the pool fails. Returns the first failure among them.
 */
int chunk_reader_finish(struct chunk_reader *reader);
