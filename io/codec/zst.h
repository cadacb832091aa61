/*
 * zst.h - .zst files with an index of their frames: the index, a reader, and a writer
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec.h"
#include "io/file/file.h"

/*
 * --- the index: where the frames of a file are (zst_index.c) ---
 *
 *	[ frame 0 ][ frame 1 ] ... [ frame n - 1 ][ seek table ]
 *
 * The table is a skippable frame, which all decoders ignore, in the "Zstandard Seekable Format"
 * (contrib/seekable_format of zstd):
 *
 *	0x184d2a5e, size of what follows
 *	for each frame: stored size, content size [, checksum of the content]
 *	n, flags, 0x8f92eab1
 *
 * All numbers are little-endian, of 32 bits except for the 8 bits of flags. The highest flag says
 * that there are checksums: the lower half of XXH64. gsort writes none here, because its frames
 * have a checksum of their own.
 *
 * The table is trusted for offsets only. zst_index_read() checks that the frames and the table fill
 * the file, and that frames listed without content are empty, because they are never decoded.
 * The reader checks all other frames when it decodes them.
 */

/* Where a frame begins. */
struct zst_frame_offsets {
	uint64_t stored, content;
};

struct zst_index {
	struct zst_frame_offsets *frames; /* n, and the end of the last one */
	size_t n, n_allocated;
	uint32_t *checksums; /* n, or NULL if the table has none */
};

/* Add a frame. An index of zeros is empty. Returns 0 or -ENOMEM (not reported). */
int zst_index_add(struct zst_index *index, uint32_t stored_nbytes, uint32_t content_nbytes);
void zst_index_free(struct zst_index *index);

static inline size_t zst_index_stored_nbytes(const struct zst_index *index, size_t i)
{
	return (size_t)(index->frames[i + 1].stored - index->frames[i].stored);
}

static inline size_t zst_index_content_nbytes(const struct zst_index *index, size_t i)
{
	return (size_t)(index->frames[i + 1].content - index->frames[i].content);
}

/* Return the content of all frames. */
static inline uint64_t zst_index_total_nbytes(const struct zst_index *index)
{
	return index->n ? index->frames[index->n].content : 0;
}

/* Return the largest content of a frame; the largest stored size of a frame with content. */
size_t zst_index_max_content_nbytes(const struct zst_index *index);
size_t zst_index_max_stored_nbytes(const struct zst_index *index);

/* Return the memory of the index. */
size_t zst_index_memory_nbytes(const struct zst_index *index);

/* Find the frame that holds byte `offset` of the content. */
size_t zst_index_find(const struct zst_index *index, uint64_t offset);

/* Make the seek table; the caller frees it. Returns 0 or -ENOMEM (not reported). */
int zst_index_format(const struct zst_index *index, unsigned char **ret_table, size_t *ret_nbytes);

/*
 * Read the table of a file whose frames begin at `base` and which ends nbytes after it. Returns 0
 * and an index to free; -ENODATA if there is no table, or it contradicts the file; or the error of
 * a read. Nothing is reported.
 */
int zst_index_read(const struct file *file, uint64_t base, uint64_t nbytes,
		   struct zst_index *ret_index);

/*
 * --- read the content at any offset, by several threads (zst_reader.c) ---
 *
 * Frames that are read as a whole are decoded directly to the buffer of the caller. Frames of which
 * a part is read are kept in a cache until all of their content has been consumed, or the space is
 * needed for another frame. This happens at the edges of what readers claim, and for readers of
 * small pieces.
 */

struct zst_reader;

/* The maximum content of a frame, because frames are cached. */
enum { ZST_READER_MAX_FRAME_NBYTES = 16 << 20 };

/*
 * Open a reader of frames that begin at `base` of the file. The reader owns the index, also on
 * failure. The pool and the name, for messages, must outlive the reader. Returns 0 or -ENOMEM
 * (reported).
 */
int zst_reader_open(const char *name, struct zst_index index, uint64_t base,
		    struct codec_pool *codec_pool, struct zst_reader **ret_reader);
/* NULL is ignored. */
void zst_reader_close(struct zst_reader *reader);

/* Set the number of cached frames, 1 to 8. Only before the first read. */
void zst_reader_set_frame_cache(struct zst_reader *reader, size_t n_frames);

/* The memory of a reader, and what it consists of. */
struct zst_reader_memory {
	size_t frame_nbytes;  /* the largest content of a frame */
	size_t index_nbytes;  /* the index */
	size_t cache_nbytes;  /* all cached frames */
	size_t thread_nbytes; /* of each thread that reads */
};
struct zst_reader_memory zst_reader_memory(const struct zst_reader *reader);

/*
 * Read nbytes of the content at `offset`, all within it. Thread-safe. Returns 0, or (reported)
 * -EBADMSG if a frame is damaged, -ENODATA if the file has become shorter, or another negative
 * errno.
 */
int zst_reader_read_at(struct zst_reader *reader, const struct file *file, uint64_t offset,
		       void *buffer, size_t nbytes);

/*
 * --- write frames of 1 MiB, compressed by several threads, and an index (zst_writer.c) ---
 *
 *	open -> append* -> finish -> close
 *
 *	append       free buffer -> filled with content -> queue
 *	each thread  queue -> compress -> wait until all earlier frames have an offset -> write
 *
 * Each frame has the checksum of its content and can be decompressed on its own. The index at the
 * end of the file lists the frames.
 */

struct zst_writer;

enum { ZST_WRITER_FRAME_NBYTES = 1 << 20 }; /* content of each frame but the last */

/* The destination of compressed bytes. */
struct zst_sink {
	void *context;
	bool in_order; /* calls of write() are sequential, at increasing offsets */
	/* Returns 0 or a negative errno (reported). */
	int (*write)(void *context, uint64_t offset, const void *data, size_t nbytes);
};

/* Return the memory of a writer with n_threads. */
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
 * Like zst_writer_finish(), but for a part of a file's content, whose index the caller writes: wait
 * until all frames are written. may_be_empty: write no frame if there is no content. Called once.
 */
int zst_writer_finish_frames(struct zst_writer *writer, bool may_be_empty);

/* Return the size of the compressed data, after finish. */
uint64_t zst_writer_stored_nbytes(const struct zst_writer *writer);

/* Detach the index, after finish; the caller frees it. */
struct zst_index zst_writer_detach_index(struct zst_writer *writer);
