/*
 * collective_zst - the frames of a file that several ranks compress together (see collective_zst.h)
 */
#include "src/exchange/collective_zst.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

/* Content of another rank, which comes in any order. */
struct taken {
	struct taken *next; /* further behind */
	uint64_t offset;
	size_t nbytes;
	char data[];
};

/* A frame, as it is told to the others. */
struct told_frame {
	uint32_t stored_nbytes, content_nbytes;
};

struct frames {
	struct ranks *ranks;
	struct spill *spill;
	struct spill_extent *extents; /* n, of frames, in their order */
	size_t n, n_allocated;
	struct taken *taken; /* content that follows the own */

	/* When all have met: */
	unsigned last;    /* the last rank that has any */
	uint64_t *places; /* by rank, where its frames begin; UINT64_MAX behind the last */
};

static int fail_memory(void)
{
	return fail(-ENOMEM, "no memory for an index of compressed frames");
}

int frames_open(struct ranks *ranks, struct spill *spill, struct frames **ret_frames)
{
	struct frames *frames = calloc(1, sizeof *frames);

	if (!frames)
		return fail_memory();
	frames->ranks = ranks;
	frames->spill = spill;
	*ret_frames = frames;
	return 0;
}

void frames_close(struct frames *frames)
{
	if (!frames)
		return;
	while (frames->taken) {
		struct taken *taken = frames->taken;

		frames->taken = taken->next;
		free(taken);
	}
	free(frames->extents);
	free(frames->places);
	free(frames);
}

/* --- content --- */

/* In their order. */
static int keep_frame(void *context, uint64_t offset, const void *data, size_t nbytes)
{
	struct frames *frames = context;
	int r;

	(void)offset;
	if (frames->n == frames->n_allocated) {
		const size_t n = frames->n ? 2 * frames->n : 64;
		struct spill_extent *extents = reallocarray(frames->extents, n, sizeof *extents);

		if (!extents)
			return fail_memory();
		frames->extents = extents;
		frames->n_allocated = n;
	}
	r = spill_write(frames->spill, data, nbytes, &frames->extents[frames->n]);
	frames->n += r == 0;
	return r;
}

struct zst_sink frames_sink(struct frames *frames)
{
	return (struct zst_sink){ .context = frames, .in_order = true, .write = keep_frame };
}

int frames_keep_content(struct frames *frames, uint64_t offset, const void *data, size_t nbytes)
{
	struct taken *taken = malloc(sizeof *taken + nbytes), **at = &frames->taken;

	if (!taken)
		return fail(-ENOMEM, "no memory for %zu bytes of another rank", nbytes);
	while (*at && (*at)->offset < offset)
		at = &(*at)->next;
	*taken = (struct taken){ .next = *at, .offset = offset, .nbytes = nbytes };
	memcpy(taken->data, data, nbytes);
	*at = taken;
	return 0;
}

/* An output that is compressed waits for what is missing, and would wait for ever. */
int frames_give_content(struct frames *frames, uint64_t end, struct output *output)
{
	int r = 0;

	while (frames->taken && r == 0) {
		struct taken *taken = frames->taken;

		r = taken->offset == end ?
			    output_write_at(output, end, taken->data, taken->nbytes) :
			    fail(-EPROTO,
				 "internal error: of other ranks content at %" PRIu64
				 " has come, and not at %" PRIu64 "; the output was not written",
				 taken->offset, end);
		end += taken->nbytes;
		frames->taken = taken->next;
		free(taken);
	}
	return r;
}

/* --- places --- */

static struct told_frame *tell_frames(const struct zst_index *index)
{
	struct told_frame *told = calloc(index->n + 1, sizeof *told);

	for (size_t i = 0; told && i < index->n; i++)
		told[i] = (struct told_frame){ (uint32_t)zst_index_stored_nbytes(index, i),
					       (uint32_t)zst_index_content_nbytes(index, i) };
	return told;
}

/* told: the frames of all ranks, sizes[] bytes of each. */
static int place_ranks(struct frames *frames, unsigned n_ranks, const struct told_frame *told,
		       const size_t *sizes, struct zst_index *index)
{
	int r = 0;

	for (unsigned i = 0; i < n_ranks && r == 0; i++) {
		const size_t n = sizes[i] / sizeof *told;

		frames->places[i] = index->n ? index->frames[index->n].stored : 0;
		frames->last = n ? i : frames->last;
		for (size_t k = 0; k < n && r == 0; k++, told++)
			r = zst_index_add(index, told->stored_nbytes, told->content_nbytes);
	}
	for (unsigned i = frames->last + 1; i < n_ranks; i++)
		frames->places[i] = UINT64_MAX;
	return r < 0 ? fail_memory() : 0;
}

static int check_content(const struct zst_index *index, uint64_t nbytes)
{
	const uint64_t found = zst_index_total_nbytes(index);

	return found == nbytes ? 0 :
				 fail(-EIO,
				      "internal error: frames of %" PRIu64 " bytes hold %" PRIu64
				      "; the output was not written",
				      nbytes, found);
}

int frames_meet(struct frames *frames, const struct zst_index *own, uint64_t content_nbytes,
		struct zst_index *ret_index)
{
	const unsigned n_ranks = ranks_size(frames->ranks);
	struct told_frame *told = tell_frames(own);
	size_t *sizes = calloc(n_ranks, sizeof *sizes);
	void *all = NULL;
	int r;

	frames->places = calloc(n_ranks, sizeof *frames->places);
	r = told && sizes && frames->places ? 0 : fail_memory();
	if (r == 0)
		r = ranks_gather_all_varying(frames->ranks, told, own->n * sizeof *told, &all,
					     sizes);
	if (r == 0)
		r = place_ranks(frames, n_ranks, all, sizes, ret_index);
	free(all);
	free(sizes);
	free(told);
	return r < 0 ? r : check_content(ret_index, content_nbytes);
}

/* --- stored --- */

/* Whose bytes a stripe of the file begins with. */
static unsigned owner_of(const struct frames *frames, uint64_t begin)
{
	unsigned low = 0, high = frames->last + 1;

	while (high - low > 1) {
		const unsigned middle = low + (high - low) / 2;

		*(frames->places[middle] <= begin ? &low : &high) = middle;
	}
	return low;
}

/* Stripe by stripe, to whose they are. */
static int write_stored(struct frames *frames, const struct frames_sink *sink, uint64_t offset,
			const void *data, size_t nbytes)
{
	const char *from = data;
	int r = 0;

	while (nbytes > 0 && r == 0) {
		const uint64_t begin = offset - offset % sink->stripe_nbytes;
		const uint64_t left = begin + sink->stripe_nbytes - offset;
		const size_t n = left < nbytes ? (size_t)left : nbytes;

		r = sink->write(sink->context, owner_of(frames, begin), offset, from, n);
		offset += n;
		from += n;
		nbytes -= n;
	}
	return r;
}

static int write_frame(struct frames *frames, const struct frames_sink *sink,
		       struct spill_extent extent, uint64_t offset, void *buffer)
{
	int r = spill_read(frames->spill, extent, buffer);

	if (r < 0)
		return fail(r, "%s: a compressed frame of %" PRIu64 " bytes cannot be read: %m",
			    spill_directory(frames->spill, extent.file), extent.nbytes);
	r = write_stored(frames, sink, offset, buffer, extent.nbytes);
	spill_discard(frames->spill, extent);
	return r;
}

static int write_own(struct frames *frames, const struct frames_sink *sink)
{
	uint64_t offset = frames->places[ranks_rank(frames->ranks)], most = 0;
	void *buffer;
	int r = 0;

	for (size_t i = 0; i < frames->n; i++)
		most = frames->extents[i].nbytes > most ? frames->extents[i].nbytes : most;
	buffer = malloc(most + 1);
	if (!buffer)
		return fail_memory();
	for (size_t i = 0; i < frames->n && r == 0; i++) {
		r = write_frame(frames, sink, frames->extents[i], offset, buffer);
		offset += frames->extents[i].nbytes;
	}
	free(buffer);
	return r;
}

int frames_write(struct frames *frames, const struct zst_index *index,
		 const struct frames_sink *sink, uint64_t *ret_nbytes)
{
	const uint64_t frames_nbytes = index->frames[index->n].stored;
	unsigned char *table;
	size_t nbytes;
	int r = zst_index_format(index, &table, &nbytes);

	if (r < 0)
		return fail_memory();
	r = write_own(frames, sink);
	if (r == 0 && ranks_rank(frames->ranks) == frames->last)
		r = write_stored(frames, sink, frames_nbytes, table, nbytes);
	free(table);
	*ret_nbytes = frames_nbytes + nbytes;
	return r;
}
