/*
 * zst_writer - bytes to a .zst file: frames of 1 MiB, made by several threads, with an index
 *
 *	open -> append* -> finish -> close
 *
 *	append       free buffer -> filled with content -> queue
 *	each thread  queue -> compress -> wait until all frames before have a place -> write there
 *
 * Every frame has the checksum of its content and can be decompressed on its own; the index at the
 * end (zst_index.h) says where it is.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/zst_index.h"

struct zst_writer;

enum { ZST_WRITER_FRAME_NBYTES = 1 << 20 }; /* content of a frame, but for the last one's */

/* Where the compressed bytes go. */
struct zst_sink {
	void *context;
	bool in_order; /* write is called for one range after the other, not by several threads */
	/* 0 or a negative errno after a message. */
	int (*write)(void *context, uint64_t offset, const void *data, size_t nbytes);
};

/* What a writer with so many threads takes. */
size_t zst_writer_memory_nbytes(int level, unsigned n_threads);

/*
 * name: for messages; must outlive the writer. Returns 0 or a negative errno after a message.
 */
int zst_writer_open(const char *name, const struct zst_sink *sink, int level, unsigned n_threads,
		    struct zst_writer **ret_writer);

/* Drops what is not written yet. NULL is fine. */
void zst_writer_close(struct zst_writer *writer);

/*
 * The next nbytes of the content; copied. By one thread at a time. Returns 0, or the first failure
 * of any write.
 */
int zst_writer_append(struct zst_writer *writer, const void *data, size_t nbytes);

/* There is no more: wait until everything, the index too, is written. Once. As append. */
int zst_writer_finish(struct zst_writer *writer);

/*
 * In the place of that, of content that is only a part of a file's: wait until the frames are
 * written; the index is somebody else's. may_be_none: of no content there is no frame. Once.
 */
int zst_writer_finish_frames(struct zst_writer *writer, bool may_be_empty);

/* After finish: all compressed bytes. */
uint64_t zst_writer_stored_nbytes(const struct zst_writer *writer);

/* After finish: the index, which is the caller's to free from then on. */
struct zst_index zst_writer_detach_index(struct zst_writer *writer);
