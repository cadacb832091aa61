/*
 * zst_index - where the frames of a .zst file are: the seek table at its end
 *
 *	[ frame 0 ][ frame 1 ] ... [ frame n - 1 ][ seek table ]
 *
 * The table is a skippable frame, which every program that knows the format passes over, laid out
 * as the "Zstandard Seekable Format" (zstd's contrib/seekable_format) has it:
 *
 *	0x184d2a5e, size of what follows
 *	for each frame: stored size, size of its content [, checksum of that]
 *	n, flags, 0x8f92eab1
 *
 * all numbers little-endian, of 32 bits but for the 8 flags, of which the highest says that there
 * are checksums: the lower half of the XXH64 of a frame's content. The frames that gsort writes
 * have one of their own.
 *
 * A table is trusted for places only. That it ends where the file does, and that its frames fill
 * the file up to it, is checked when it is read; what has no content, and so would never be
 * decoded, is looked at then, too; everything else when a frame is decoded (zst_reader.h).
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

/* Where something begins. */
struct zst_frame_offsets {
	uint64_t stored, content;
};

struct zst_index {
	struct zst_frame_offsets *frames; /* n, and one more for the end of the last */
	size_t n, n_allocated;
	uint32_t *checksums; /* n, if the table had some; else NULL */
};

/* A zeroed index is empty. One more frame; -ENOMEM without a message. */
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

/* Of all frames. */
static inline uint64_t zst_index_total_nbytes(const struct zst_index *index)
{
	return index->n ? index->frames[index->n].content : 0;
}

/* The largest content of a frame; and of those with content, the largest stored one. */
size_t zst_index_max_content_nbytes(const struct zst_index *index);
size_t zst_index_max_stored_nbytes(const struct zst_index *index);

/* What the index takes. */
size_t zst_index_memory_nbytes(const struct zst_index *index);

/* The frame that the content's byte `offset`, before its end, is in. */
size_t zst_index_find(const struct zst_index *index, uint64_t offset);

/* The seek table, allocated. -ENOMEM without a message. */
int zst_index_format(const struct zst_index *index, unsigned char **ret_table, size_t *ret_nbytes);

/*
 * Read the table of a file whose frames begin at `base` and which ends nbytes behind that. Returns
 * 0 with an index to free; -ENODATA if there is none, or it is not of these nbytes, or says of a
 * frame that it is empty which is not; or what reading returned. Prints nothing.
 */
int zst_index_read(const struct file *file, uint64_t base, uint64_t nbytes,
		   struct zst_index *ret_index);
