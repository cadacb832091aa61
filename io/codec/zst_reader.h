/*
 * zst_reader - the content of a .zst file with an index, anywhere in it, by several threads
 *
 * Frames that are wanted as a whole are decoded to where they are wanted. Of one that is wanted in
 * parts, as happens at the edges of what readers claim, and always with those who read little at a
 * time, the content is kept until all of it has been given out, or room is needed for another.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/codec/codec_pool.h"
#include "io/codec/zst_index.h"
#include "io/file/file.h"

struct zst_reader;

/* Frames with more content are not for this: they would have to be kept. */
enum { ZST_READER_MAX_FRAME_NBYTES = 16 << 20 };

/*
 * Frames begin at `base` of the file. The index is the reader's from then on, also on failure; the
 * pool and the name, for messages, must outlive it. 0, or -ENOMEM after a message.
 */
int zst_reader_open(const char *name, struct zst_index index, uint64_t base,
		    struct codec_pool *codec_pool, struct zst_reader **ret_reader);
/* NULL is fine. */
void zst_reader_close(struct zst_reader *reader);

/* Nothing has been read yet: keep the content of so many frames at most, from 1 to 8. */
void zst_reader_set_frame_cache(struct zst_reader *reader, size_t n_frames);

/* The content of a frame; what the index takes; the most that is kept, without the index. */
size_t zst_reader_frame_nbytes(const struct zst_reader *reader);
size_t zst_reader_index_nbytes(const struct zst_reader *reader);
size_t zst_reader_memory_nbytes(const struct zst_reader *reader);

/* What each thread takes that reads. */
size_t zst_reader_thread_nbytes(const struct zst_reader *reader);

/*
 * Read nbytes of the content at `offset`, all before its end. Thread-safe. Returns 0, or after a
 * message -EBADMSG when a frame is damaged, -ENODATA when the file has become shorter, ...
 */
int zst_reader_read_at(struct zst_reader *reader, const struct file *file, uint64_t offset,
		       void *buffer, size_t nbytes);
