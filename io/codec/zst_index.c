/*
 * zst_index - where the frames of a .zst file are (see zst.h)
 */
#include "io/codec/zst.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "src/base/array.h"
#include "src/base/int_math.h"
#include "src/record/load_upto16.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are copied as they are");

enum { FRAME_HEADER_NBYTES = 8, FOOTER_NBYTES = 9, HAS_CHECKSUMS = 0x80, RESERVED_FLAGS = 0x7c };

/* A table with more or larger frames without content is ignored. */
enum { MAX_EMPTY_FRAMES = 16, MAX_EMPTY_FRAME_NBYTES = 64 };

static const uint32_t table_magic = 0x184d2a5e, footer_magic = 0x8f92eab1;

/*
 * A larger table, of more than 10 MiB of memory, is ignored. For what gsort writes the limit is
 * half a TiB of content.
 */
static const uint32_t max_index_frames = UINT32_C(1) << 19;

static unsigned char *store32(unsigned char *to, uint32_t value)
{
	memcpy(to, &value, sizeof value);
	return to + sizeof value;
}

int zst_index_add(struct zst_index *index, uint32_t stored_nbytes, uint32_t content_nbytes)
{
	struct zst_frame_offsets *last;

	if (!array_reserve(&index->frames, &index->n_allocated, index->n + 2, sizeof *last))
		return -ENOMEM;
	if (index->n == 0)
		index->frames[0] = (struct zst_frame_offsets){ 0 };
	last = &index->frames[index->n++];
	last[1].stored = last->stored + stored_nbytes;
	last[1].content = last->content + content_nbytes;
	return 0;
}

void zst_index_free(struct zst_index *index)
{
	free(index->frames);
	free(index->checksums);
	*index = (struct zst_index){ 0 };
}

size_t zst_index_max_content_nbytes(const struct zst_index *index)
{
	size_t max_nbytes = 0;

	for (size_t i = 0; i < index->n; i++)
		if (max_nbytes < zst_index_content_nbytes(index, i))
			max_nbytes = zst_index_content_nbytes(index, i);
	return max_nbytes;
}

size_t zst_index_max_stored_nbytes(const struct zst_index *index)
{
	size_t max_nbytes = 0;

	for (size_t i = 0; i < index->n; i++)
		if (zst_index_content_nbytes(index, i) &&
		    max_nbytes < zst_index_stored_nbytes(index, i))
			max_nbytes = zst_index_stored_nbytes(index, i);
	return max_nbytes;
}

size_t zst_index_memory_nbytes(const struct zst_index *index)
{
	return index->n_allocated * sizeof *index->frames +
	       (index->checksums ? index->n * sizeof *index->checksums : 0);
}

size_t zst_index_find(const struct zst_index *index, uint64_t offset)
{
	return find_interval(index->frames, sizeof *index->frames,
			     offsetof(struct zst_frame_offsets, content), index->n, offset);
}

int zst_index_format(const struct zst_index *index, unsigned char **ret_table, size_t *ret_nbytes)
{
	const size_t nbytes = FRAME_HEADER_NBYTES + 8 * index->n + FOOTER_NBYTES;
	unsigned char *table = malloc(nbytes), *to = table;

	if (!table)
		return -ENOMEM;
	to = store32(to, table_magic);
	to = store32(to, (uint32_t)(nbytes - FRAME_HEADER_NBYTES));
	for (size_t i = 0; i < index->n; i++) {
		to = store32(to, (uint32_t)zst_index_stored_nbytes(index, i));
		to = store32(to, (uint32_t)zst_index_content_nbytes(index, i));
	}
	to = store32(to, (uint32_t)index->n);
	*to++ = 0;
	store32(to, footer_magic);
	*ret_table = table;
	*ret_nbytes = nbytes;
	return 0;
}

/* Read the entries of a table of n frames, which begins at `offset` and ends with the file. */
static int read_entries(const struct file *file, uint64_t offset, size_t n, size_t entry_nbytes,
			struct zst_index *index)
{
	const size_t nbytes = FRAME_HEADER_NBYTES + n * entry_nbytes;
	unsigned char *table = malloc(nbytes);
	int r = table ? file_read_at(file, offset, table, nbytes) : -ENOMEM;

	if (r == 0 &&
	    (load_4(table) != table_magic || load_4(table + 4) != n * entry_nbytes + FOOTER_NBYTES))
		r = -ENODATA;
	if (r == 0 && entry_nbytes > 8) {
		index->checksums = malloc(n * sizeof *index->checksums);
		r = index->checksums ? 0 : -ENOMEM;
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		const unsigned char *entry = table + FRAME_HEADER_NBYTES + i * entry_nbytes;

		if (index->checksums)
			index->checksums[i] = load_4(entry + 8);
		r = zst_index_add(index, load_4(entry), load_4(entry + 4));
	}
	free(table);
	return r;
}

/*
 * Check that frame i has no content, as the table says. Returns 0, -ENODATA, or the error of a
 * read.
 */
static int check_empty_frame(const struct file *file, uint64_t base, const struct zst_index *index,
			     size_t i)
{
	const size_t nbytes = zst_index_stored_nbytes(index, i);
	unsigned char frame[MAX_EMPTY_FRAME_NBYTES];
	int r;

	if (nbytes > sizeof frame)
		return -ENODATA;
	r = file_read_at(file, base + index->frames[i].stored, frame, nbytes);
	if (r < 0)
		return r;
	return ZSTD_findFrameCompressedSize(frame, nbytes) == nbytes &&
			       ZSTD_getFrameContentSize(frame, nbytes) == 0 ?
		       0 :
		       -ENODATA;
}

/* Check all frames without content: they are never decoded, so damage would not be detected. */
static int check_empty_frames(const struct file *file, uint64_t base, const struct zst_index *index)
{
	size_t n_empty = 0;
	int r = 0;

	for (size_t i = 0; i < index->n && r == 0; i++) {
		if (zst_index_content_nbytes(index, i) > 0)
			continue;
		n_empty++;
		r = n_empty > MAX_EMPTY_FRAMES ? -ENODATA : check_empty_frame(file, base, index, i);
	}
	return r;
}

int zst_index_read(const struct file *file, uint64_t base, uint64_t nbytes,
		   struct zst_index *ret_index)
{
	struct zst_index index = { 0 };
	unsigned char footer[FOOTER_NBYTES];
	uint64_t table_nbytes;
	size_t n, entry_nbytes;
	int r;

	if (nbytes < FRAME_HEADER_NBYTES + FOOTER_NBYTES)
		return -ENODATA;
	r = file_read_at(file, base + nbytes - sizeof footer, footer, sizeof footer);
	if (r < 0)
		return r;
	n = load_4(footer);
	entry_nbytes = footer[4] & HAS_CHECKSUMS ? 12 : 8;
	table_nbytes = FRAME_HEADER_NBYTES + n * entry_nbytes + FOOTER_NBYTES;
	if (load_4(footer + 5) != footer_magic || footer[4] & RESERVED_FLAGS || n == 0 ||
	    n > max_index_frames || table_nbytes > nbytes)
		return -ENODATA;
	r = read_entries(file, base + nbytes - table_nbytes, n, entry_nbytes, &index);
	if (r == 0 && index.frames[n].stored != nbytes - table_nbytes)
		r = -ENODATA;
	if (r == 0)
		r = check_empty_frames(file, base, &index);
	if (r < 0)
		zst_index_free(&index);
	else
		*ret_index = index;
	return r;
}
