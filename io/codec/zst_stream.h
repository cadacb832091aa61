/*
 * zst_stream - the content of a .zst file or pipe, from its beginning to its end
 *
 * Any frames, one after the other, skippable ones included, but not these alone: numbers may begin
 * as they do (zst_frame.h). A frame's checksum, if it has one, is verified.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

struct zst_stream;

enum { ZST_STREAM_MAX_HEAD_NBYTES = 64 << 10 };

/*
 * name: for messages; must outlive the stream. read_nbytes: what has already been read from the
 * file, at most ZST_STREAM_MAX_HEAD_NBYTES. max_window_nbytes: frames with larger windows are
 * refused. 0, or -ENOMEM after a message.
 */
int zst_stream_open(const char *name, const void *head, size_t head_nbytes,
		    uint64_t max_window_nbytes, struct zst_stream **ret_stream);
/* What a stream takes whose frames have windows of so many bytes. */
size_t zst_stream_memory_nbytes(uint64_t window_nbytes);

/* Most that zstd makes has windows of 8 MiB at most; all that it can (--long=31), of 2 GiB. */
#define ZST_DEFAULT_WINDOW_NBYTES (UINT64_C(8) << 20)
#define ZST_MAX_WINDOW_NBYTES (UINT64_C(2) << 30)

/*
 * Of a pipe that is not looked at before, frames may have windows of this part of the memory: then
 * it is little, whatever comes.
 */
enum { ZST_UNPROBED_WINDOW_DIVISOR = 16 };

/* The window of the frame that begins with these bytes; 0 if they do not say. */
enum { ZST_HEADER_NBYTES = 18 };
uint64_t zst_window_nbytes(const void *header, size_t nbytes);

/* NULL is fine. */
void zst_stream_close(struct zst_stream *stream);

/*
 * The next nbytes of the content, fewer only at its end. cancel_fd: as file_read_next(). Returns 0;
 * -ECANCELED without a message; after a message -EBADMSG if it is damaged or ends within a frame,
 * or what reading returned.
 */
int zst_stream_read(struct zst_stream *stream, const struct file *file, int cancel_fd, void *buffer,
		    size_t nbytes, size_t *ret_nbytes);
