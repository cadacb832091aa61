/*
 * output_internal - what the files of an output's implementation share
 *
 *	output.c	its life: opened, given its name, or dropped
 *	output_shared.c	that of one that several processes have
 *	output_space.c	is there space for it?
 *	output_io_mode.c	which way its bytes go
 *	output_io.c	what is written, and read back
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "io/codec/codec_pool.h"
#include "io/codec/zst_reader.h"
#include "io/codec/zst_writer.h"
#include "io/output/truncate_on_abort.h"
#include "io/output/prefault.h"
#include "io/output/output.h"
#include "io/output/preallocate.h"
#include "io/output/target.h"

/* Of an output, so many bytes are remembered. */
enum { OUTPUT_FIRST_NBYTES = 4096 };

struct output {
	/* Set at creation. */
	struct target target;
	bool is_complete;                   /* its bytes, in the end; by output_complete() */
	struct preallocation preallocation; /* of what it will be */
	struct truncate_entry
		*truncate_entry; /* if it is in place, and is cut when it fails; or NULL */
	struct truncate_entry own_truncate_entry; /* what that is where nobody has lent a table */

	struct file_writer writer; /* of the target's file */
	struct prefault *prefault; /* of it, and perhaps of others; NULL: none */

	atomic_int error; /* the first failure, or 0; set under the lock */

	unsigned char
		first_bytes[OUTPUT_FIRST_NBYTES]; /* of what is written; each by who writes it */
	bool first_bytes_unknown;                 /* they were the content of a segment */

	struct zst_writer *zst_writer;    /* NULL: not compressed */
	struct zst_reader *zst_reader;    /* of what was; made under the lock */
	struct codec_pool codec_contexts; /* of the reader */

	pthread_mutex_t lock;
	pthread_cond_t turn; /* ordered: written_nbytes has changed, or r */
	/* Under the lock. */
	uint64_t written_nbytes;
	uint64_t written_end; /* of the last byte written */
};

/*
 * One that is to be opened, all zeros where there is nothing; output_abort() is due if that fails,
 * and output_free() when the target is closed. NULL after a message.
 */
struct output *output_alloc(const struct syscalls *calls, const char *name);
void output_free(struct output *output);

/*
 * Wait for all that was written; content that is compressed is complete then, and can be read. 0,
 * or the first failure, which stays.
 */
int output_finish_writes(struct output *output);
