/*
 * zst_reader - reads the content of a .zst file with an index at any offset, by several threads
 *
 * Frames that are read as a whole are decoded directly to the buffer of the caller. Frames of which
 * a part is read are kept in a cache until all of their content has been consumed, or the space is
 * needed for another frame. This happens at the edges of what readers claim, and for readers of
 * small pieces.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec.h"
#include "io/codec/zst_index.h"
#include "io/file/file.h"

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
