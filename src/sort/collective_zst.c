/*
 * collective_zst.c - a file whose frames several ranks compress (see file_set.h)
 *
 *	frames       |     0     |     1     |     2     |     3     | 4 |
 *	partitions   000000000000000000111111111111111111111222222222222222
 *	compressed   000000000000000000000000111111111111111111111111222222
 *	file         [0][1 ][2][ 3 ][4][ index ]
 *
 * Each rank compresses the frames that begin in its partition, so that the file is the same as that
 * of one process. The offsets of its frames are known when all ranks have compressed theirs; until
 * then the frames are spilled. Then all ranks learn the sizes of all frames, and each writes its
 * own. The last rank that has any also writes the index. Stripes of the compressed file have one
 * writer as well: the rank whose bytes begin the stripe.
 */
#include "src/sort/file_set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/spill.h"
#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"

/* --- frames --- */

/* Content of another rank; arrives in any order. */
struct buffered_content {
	struct buffered_content *next; /* at a higher offset */
	uint64_t offset;
	size_t nbytes;
	char data[];
};

/* A frame as it is sent to other ranks. */
struct frame_sizes {
	uint32_t stored_nbytes, content_nbytes;
};

struct collective_zst {
	struct file_set *set; /* its file i */
	uint32_t i;
	struct comm *comm;
	struct spill *spill;
	struct spill_extent *extents; /* n, of the own frames in order */
	size_t n, n_allocated;
	struct buffered_content *buffered; /* sorted content that follows the own */

	/* Set by collective_zst_merge_index(). */
	unsigned last_rank;     /* the last rank that has any frame */
	uint64_t *rank_offsets; /* offset of each rank's frames; UINT64_MAX after last_rank */
};

static int fail_memory(void)
{
	return fail(-ENOMEM, "no memory for an index of compressed frames");
}

int collective_zst_open(struct file_set *set, uint32_t i, struct spill *spill,
			struct collective_zst **ret_zst)
{
	struct collective_zst *zst = calloc(1, sizeof *zst);

	if (!zst)
		return fail_memory();
	zst->set = set;
	zst->i = i;
	zst->comm = set->comm;
	zst->spill = spill;
	*ret_zst = zst;
	return 0;
}

void collective_zst_close(struct collective_zst *zst)
{
	if (!zst)
		return;
	while (zst->buffered) {
		struct buffered_content *buffered = zst->buffered;

		zst->buffered = buffered->next;
		free(buffered);
	}
	free(zst->extents);
	free(zst->rank_offsets);
	free(zst);
}

/* --- content --- */

/* Frames arrive in order. */
static int spill_frame(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct collective_zst *zst = context;
	int r;

	(void)offset;
	if (!array_reserve(&zst->extents, &zst->n_allocated, zst->n + 1, sizeof *zst->extents))
		return fail_memory();
	r = spill_write(zst->spill, data, nbytes, &zst->extents[zst->n]);
	zst->n += r == 0;
	return r;
}

struct zst_sink collective_zst_sink(struct collective_zst *zst)
{
	return (struct zst_sink){ .context = zst, .in_order = true, .write = spill_frame };
}

int collective_zst_buffer_content(struct collective_zst *zst, uint64_t offset, const void *data,
				  size_t nbytes)
{
	struct buffered_content *buffered = malloc(sizeof *buffered + nbytes),
				**link = &zst->buffered;

	if (!buffered)
		return fail(-ENOMEM, "no memory for %zu bytes of another rank", nbytes);
	while (*link && (*link)->offset < offset)
		link = &(*link)->next;
	*buffered = (struct buffered_content){ .next = *link, .offset = offset, .nbytes = nbytes };
	memcpy(buffered->data, data, nbytes);
	*link = buffered;
	return 0;
}

/* Checks for gaps, because a compressed output would wait for missing content for ever. */
int collective_zst_flush_content(struct collective_zst *zst, uint64_t end, struct output *output)
{
	int r = 0;

	while (zst->buffered && r == 0) {
		struct buffered_content *buffered = zst->buffered;

		r = buffered->offset == end ?
			    output_write_at(output, end, buffered->data, buffered->nbytes) :
			    fail(-EPROTO,
				 "internal error: received content at offset %" PRIu64
				 " in place of %" PRIu64 "; the output was not written",
				 buffered->offset, end);
		end += buffered->nbytes;
		zst->buffered = buffered->next;
		free(buffered);
	}
	return r;
}

/* --- places --- */

static struct frame_sizes *collect_frame_sizes(const struct zst_index *index)
{
	struct frame_sizes *sizes = calloc(index->n + 1, sizeof *sizes);

	for (size_t i = 0; sizes && i < index->n; i++)
		sizes[i] = (struct frame_sizes){ (uint32_t)zst_index_stored_nbytes(index, i),
						 (uint32_t)zst_index_content_nbytes(index, i) };
	return sizes;
}

/* sizes: the frames of all ranks, sizes_nbytes[i] bytes of rank i. */
static int locate_rank_frames(struct collective_zst *zst, unsigned n_ranks,
			      const struct frame_sizes *sizes, const size_t *sizes_nbytes,
			      struct zst_index *index)
{
	int r = 0;

	for (unsigned i = 0; i < n_ranks && r == 0; i++) {
		const size_t n = sizes_nbytes[i] / sizeof *sizes;

		zst->rank_offsets[i] = index->n ? index->frames[index->n].stored : 0;
		zst->last_rank = n ? i : zst->last_rank;
		for (size_t k = 0; k < n && r == 0; k++, sizes++)
			r = zst_index_add(index, sizes->stored_nbytes, sizes->content_nbytes);
	}
	for (unsigned i = zst->last_rank + 1; i < n_ranks; i++)
		zst->rank_offsets[i] = UINT64_MAX;
	return r < 0 ? fail_memory() : 0;
}

static int check_content_size(const struct zst_index *index, uint64_t expected_nbytes)
{
	const uint64_t content_nbytes = zst_index_total_nbytes(index);

	return content_nbytes == expected_nbytes ?
		       0 :
		       fail(-EIO,
			    "internal error: expected frames of %" PRIu64 " bytes, got %" PRIu64
			    "; the output was not written",
			    expected_nbytes, content_nbytes);
}

int collective_zst_merge_index(struct collective_zst *zst, const struct zst_index *own_index,
			       uint64_t content_nbytes, struct zst_index *ret_index)
{
	const unsigned n_ranks = comm_size(zst->comm);
	struct frame_sizes *own_sizes = collect_frame_sizes(own_index);
	size_t *sizes_nbytes = calloc(n_ranks, sizeof *sizes_nbytes);
	void *all_sizes = NULL;
	int r;

	zst->rank_offsets = calloc(n_ranks, sizeof *zst->rank_offsets);
	r = own_sizes && sizes_nbytes && zst->rank_offsets ? 0 : fail_memory();
	if (r == 0)
		r = comm_allgatherv(zst->comm, own_sizes, own_index->n * sizeof *own_sizes,
				    &all_sizes, sizes_nbytes);
	if (r == 0)
		r = locate_rank_frames(zst, n_ranks, all_sizes, sizes_nbytes, ret_index);
	free(all_sizes);
	free(sizes_nbytes);
	free(own_sizes);
	return r < 0 ? r : check_content_size(ret_index, content_nbytes);
}

/* --- stored --- */

/* Pass each stripe to its writer, the rank whose bytes begin the stripe. */
static int write_stripes(struct collective_zst *zst, uint64_t offset, const void *data,
			 size_t nbytes)
{
	const char *from = data;
	int r = 0;

	while (nbytes > 0 && r == 0) {
		const uint64_t stripe_nbytes = zst->set->stored_stripe_nbytes;
		const uint64_t begin = offset - offset % stripe_nbytes;
		const uint64_t remaining = begin + stripe_nbytes - offset;
		const size_t n = remaining < nbytes ? (size_t)remaining : nbytes;
		const size_t owner = find_interval(zst->rank_offsets, sizeof *zst->rank_offsets, 0,
						   zst->last_rank + 1, begin);

		r = file_set_write_stored(zst->set, zst->i, (unsigned)owner, offset, from, n);
		offset += n;
		from += n;
		nbytes -= n;
	}
	return r;
}

static int write_spilled_frame(struct collective_zst *zst, struct spill_extent extent,
			       uint64_t offset, void *buffer)
{
	int r = spill_read(zst->spill, extent, buffer);

	if (r < 0)
		return fail(r, "%s: cannot read a compressed frame of %" PRIu64 " bytes: %m",
			    spill_directory(zst->spill, extent.file), extent.nbytes);
	r = write_stripes(zst, offset, buffer, extent.nbytes);
	spill_discard(zst->spill, extent);
	return r;
}

static int write_own_frames(struct collective_zst *zst)
{
	uint64_t offset = zst->rank_offsets[comm_rank(zst->comm)], max_nbytes = 0;
	void *buffer;
	int r = 0;

	for (size_t i = 0; i < zst->n; i++)
		max_nbytes = zst->extents[i].nbytes > max_nbytes ? zst->extents[i].nbytes :
								   max_nbytes;
	buffer = malloc(max_nbytes + 1);
	if (!buffer)
		return fail_memory();
	for (size_t i = 0; i < zst->n && r == 0; i++) {
		r = write_spilled_frame(zst, zst->extents[i], offset, buffer);
		offset += zst->extents[i].nbytes;
	}
	free(buffer);
	return r;
}

int collective_zst_write(struct collective_zst *zst, uint64_t *ret_nbytes)
{
	const struct zst_index *index = &zst->set->files[zst->i].index;
	const uint64_t frames_nbytes = index->frames[index->n].stored;
	unsigned char *table;
	size_t nbytes;
	int r = zst_index_format(index, &table, &nbytes);

	if (r < 0)
		return fail_memory();
	r = write_own_frames(zst);
	if (r == 0 && comm_rank(zst->comm) == zst->last_rank)
		r = write_stripes(zst, frames_nbytes, table, nbytes);
	free(table);
	*ret_nbytes = frames_nbytes + nbytes;
	return r;
}
