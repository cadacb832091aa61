/*
 * zst_stream - the content of a .zst file or pipe, from its beginning to its end
 *
 * Any frames, one after the other, skippable ones included, but not these alone: numbers may begin
 * as they do (zst_frame.h). A frame's checksum, if it has one, is verified.
 */
#pragma once

#include <stddef.h>

#include "io/file/file.h"

struct zst_stream;

enum { ZST_STREAM_MOST_READ_NBYTES = 64 << 10 };

/*
 * name: for messages; must outlive the stream. read_nbytes: what has already been read from the
 * file, at most ZST_STREAM_MOST_READ_NBYTES. 0, or -ENOMEM after a message.
 */
int zst_stream_open(const char *name, const void *read, size_t read_nbytes,
		    struct zst_stream **ret_stream);
/* What a stream takes whose frames have windows of 8 MiB, the most that zstd makes unless asked. */
size_t zst_stream_memory_nbytes(void);

/* NULL is fine. */
void zst_stream_close(struct zst_stream *stream);

/*
 * The next nbytes of the content, fewer only at its end. cancel_fd: as file_read_next(). Returns 0;
 * -ECANCELED without a message; after a message -EBADMSG if it is damaged or ends within a frame,
 * or what reading returned.
 */
int zst_stream_read(struct zst_stream *stream, const struct file *file, int cancel_fd, void *buffer,
		    size_t nbytes, size_t *ret_nbytes);
