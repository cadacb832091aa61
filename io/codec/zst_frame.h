/*
 * zst_frame - how what is compressed by Zstandard begins
 *
 *	0xfd2fb528, header, blocks		a frame with content
 *	0x184d2a50 to 0x184d2a5f, size, data	a skippable frame, which decoders pass over
 *
 * Four bytes say the first, and so few numbers begin with them that nobody has to be asked. The
 * second are sixteen numbers, of which a file of small numbers may well begin with one: so what
 * follows is looked at, until a frame with content comes.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum zst_frame_kind {
	ZST_FRAME_NONE,
	ZST_FRAME_CONTENT,
	ZST_FRAME_SKIPPABLE,
};

enum { ZST_FRAME_PREFIX_NBYTES = 8 };

/*
 * What begins with these n bytes, ZST_FRAME_PREFIX_NBYTES or all that there are? *ret_nbytes: of a
 * skippable frame, its size.
 */
enum zst_frame_kind zst_frame_detect(const unsigned char *bytes, size_t n, uint64_t *ret_nbytes);

/* A part of a stored block and of frames' headers: with so many bytes some content can be had. */
enum { ZST_FRAME_PREVIEW_NBYTES = 132 << 10 };

/*
 * Decompress the beginning of the first frames, of which n bytes are stored here, to at most `room`
 * bytes at `content`. Returns how many these are: fewer where the frames end, the bytes do not
 * suffice, they are damaged, or for want of memory.
 */
size_t zst_frame_preview(const void *stored, size_t n, void *content, size_t capacity);
