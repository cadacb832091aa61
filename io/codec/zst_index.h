/*
 * zst_index - where the frames of a .zst file are: the seek table at its end
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
 * zst_reader.h checks all other frames when it decodes them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "io/file/file.h"

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

/* The content of all frames. */
static inline uint64_t zst_index_total_nbytes(const struct zst_index *index)
{
	return index->n ? index->frames[index->n].content : 0;
}

/* The largest content of a frame; the largest stored size of a frame with content. */
size_t zst_index_max_content_nbytes(const struct zst_index *index);
size_t zst_index_max_stored_nbytes(const struct zst_index *index);

/* The memory of the index. */
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
