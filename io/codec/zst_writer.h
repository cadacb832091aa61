/*
 * zst_writer - writes a .zst file: frames of 1 MiB, compressed by several threads, and an index
 *
 *	open -> append* -> finish -> close
 *
 *	append       free buffer -> filled with content -> queue
 *	each thread  queue -> compress -> wait until all earlier frames have an offset -> write
 *
 * Each frame has the checksum of its content and can be decompressed on its own. The index at the
 * end of the file (zst_index.h) lists the frames.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/zst_index.h"

struct zst_writer;

enum { ZST_WRITER_FRAME_NBYTES = 1 << 20 }; /* content of each frame but the last */

/* The destination of compressed bytes. */
struct zst_sink {
	void *context;
	bool in_order; /* calls of write() are sequential, at increasing offsets */
	/* Returns 0 or a negative errno (reported). */
	int (*write)(void *context, uint64_t offset, const void *data, size_t nbytes);
};

/* The memory of a writer with n_threads. */
size_t zst_writer_memory_nbytes(int level, unsigned n_threads);

/*
 * Open a writer. `name` is for messages and must outlive it. Returns 0 or a negative errno
 * (reported).
 */
int zst_writer_open(const char *name, const struct zst_sink *sink, int level, unsigned n_threads,
		    struct zst_writer **ret_writer);

/* Close a writer; unwritten content is dropped. NULL is ignored. */
void zst_writer_close(struct zst_writer *writer);

/*
 * Append nbytes of content, which are copied. One thread at a time. Returns 0, or the first error
 * of any write.
 */
int zst_writer_append(struct zst_writer *writer, const void *data, size_t nbytes);

/* Wait until all content and the index are written. Called once. Returns like append. */
int zst_writer_finish(struct zst_writer *writer);

/*
 * Instead of zst_writer_finish(), for a part of a file's content whose index the caller writes:
 * wait until the frames are written. may_be_empty: write no frame if there is no content. Called
 * once.
 */
int zst_writer_finish_frames(struct zst_writer *writer, bool may_be_empty);

/* The size of the compressed data, after finish. */
uint64_t zst_writer_stored_nbytes(const struct zst_writer *writer);

/* Detach the index, after finish; the caller frees it. */
struct zst_index zst_writer_detach_index(struct zst_writer *writer);
