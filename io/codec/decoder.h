/*
 * decoder - the content of a compressed file or pipe, read from its beginning to its end
 *
 * Zstandard: any sequence of frames. Skippable frames are skipped, but a stream of nothing else is
 * refused: plain numbers may begin like a skippable frame. gzip: any sequence of members; zeros
 * after the last one are ignored, other bytes are not. Checksums are verified.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

enum decoder_format { DECODER_NONE, DECODER_ZSTD, DECODER_GZIP };

struct decoder;

enum { DECODER_MAX_HEAD_NBYTES = 64 << 10 };

/*
 * Open a decoder. `name` is for messages and must outlive it. `head` is what has already been read
 * from the file, at most DECODER_MAX_HEAD_NBYTES. Frames with a window of more than
 * max_window_nbytes are refused. Returns 0, or -ENOMEM (reported).
 */
int decoder_open(enum decoder_format format, const char *name, const void *head, size_t head_nbytes,
		 uint64_t max_window_nbytes, struct decoder **ret_decoder);
/* NULL is ignored. */
void decoder_close(struct decoder *decoder);

/* Change the limit for frames that have not begun yet. */
void decoder_set_max_window(struct decoder *decoder, uint64_t nbytes);

/* Return the largest window of all frames that have begun; 0: none has. */
uint64_t decoder_window_nbytes(const struct decoder *decoder);

/* Return the memory of a decoder for windows of at most window_nbytes, whatever the format. */
size_t decoder_memory_nbytes(uint64_t window_nbytes);

/*
 * Read the next nbytes of the content; *ret_nbytes is smaller only at its end. cancel_fd is that of
 * file_read_next(). Returns 0; -ECANCELED (not reported); -EBADMSG (reported) if the data is
 * damaged or truncated; -E2BIG (reported) if a window is too large; or another negative errno
 * (reported).
 */
int decoder_read(struct decoder *decoder, const struct file *file, int cancel_fd, void *buffer,
		 size_t nbytes, size_t *ret_nbytes);

/*
 * Windows: zstd uses at most 8 MiB by default, and up to 2 GiB with --long=31. The window of gzip
 * is fixed.
 */
#define ZSTD_DEFAULT_WINDOW_NBYTES (UINT64_C(8) << 20)
#define ZSTD_MAX_WINDOW_NBYTES (UINT64_C(2) << 30)
#define GZIP_WINDOW_NBYTES (UINT64_C(32) << 10)

/* The part of the memory limit that may be a window which was not known when memory was planned. */
enum { DECODER_UNPLANNED_WINDOW_DIVISOR = 16 };

/* The window of the Zstandard frame that begins with these bytes; 0: unknown. */
enum { ZSTD_FRAME_HEADER_NBYTES = 18 };
uint64_t zstd_window_nbytes(const void *header, size_t nbytes);

/* --- how Zstandard data begins --- */

/*
 *	0xfd2fb528, header, blocks		a frame with content
 *	0x184d2a50 to 0x184d2a5f, size, data	a skippable frame, ignored by decoders
 *
 * The first number is rare enough to decide. The second ones are sixteen, which files of small
 * numbers may begin with. So they are followed until a frame with content is found.
 */
enum zstd_frame_kind { ZSTD_FRAME_NONE, ZSTD_FRAME_CONTENT, ZSTD_FRAME_SKIPPABLE };

enum { ZSTD_FRAME_PREFIX_NBYTES = 8 };

/*
 * Return what begins with these n bytes: ZSTD_FRAME_PREFIX_NBYTES, or all that remain.
 * *ret_nbytes is the size of a skippable frame.
 */
enum zstd_frame_kind zstd_frame_detect(const unsigned char *bytes, size_t n, uint64_t *ret_nbytes);

/* Stored bytes that suffice to preview some content: part of a block, and headers. */
enum { ZSTD_PREVIEW_NBYTES = 132 << 10 };

/*
 * Decompress the beginning of the frames of which n bytes are stored here, to at most `capacity`
 * bytes. Returns the number of bytes: fewer at the end of the frames or of the stored bytes, where
 * they are damaged, and without memory.
 */
size_t zstd_preview(const void *stored, size_t n, void *content, size_t capacity);
