/*
 * written_extents - which parts of the output are written, and what they are (see
 * written_extents.h)
 */
#include "src/checkpoint/written_extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"

void written_extents_free(struct written_extents *written)
{
	free(written->extents);
	*written = (struct written_extents){ .begin = written->begin };
}

size_t written_extents_count(size_t nbytes)
{
	return nbytes / WRITTEN_EXTENT_MAX_NBYTES + (nbytes % WRITTEN_EXTENT_MAX_NBYTES != 0);
}

void written_extents_describe(uint64_t offset, const void *data, size_t nbytes,
			      struct output_extent *ret_extents)
{
	const char *bytes = data;

	while (nbytes) {
		const size_t n = nbytes < WRITTEN_EXTENT_MAX_NBYTES ? nbytes :
								      WRITTEN_EXTENT_MAX_NBYTES;

		*ret_extents++ = (struct output_extent){ offset, n, checksum64(bytes, n) };
		offset += n;
		bytes += n;
		nbytes -= n;
	}
}

static int grow_extents(struct written_extents *written, size_t n)
{
	const size_t n_allocated = 2 * (written->n + n);
	struct output_extent *extents;

	if (written->n + n <= written->n_allocated)
		return 0;
	extents = realloc(written->extents, n_allocated * sizeof *extents);
	if (!extents)
		return fail(-ENOMEM, "no memory for a list of %zu parts of the output",
			    n_allocated);
	written->extents = extents;
	written->n_allocated = n_allocated;
	return 0;
}

int written_extents_add(struct written_extents *written, const struct output_extent *extents,
			size_t n)
{
	size_t index = written->n;
	int r;

	if (n == 0)
		return 0;
	r = grow_extents(written, n);
	if (r < 0)
		return r;
	/* It is mostly the last, or a few windows before it. */
	while (index > 0 && written->extents[index - 1].offset > extents[0].offset)
		index--;
	memmove(written->extents + index + n, written->extents + index,
		(written->n - index) * sizeof *written->extents);
	memcpy(written->extents + index, extents, n * sizeof *extents);
	written->n += n;
	while (written->n_contiguous < written->n &&
	       written->extents[written->n_contiguous].offset == written_extents_end(written))
		written->n_contiguous++;
	return 0;
}

uint64_t written_extents_end(const struct written_extents *written)
{
	return output_extents_end(written->begin, written->extents, written->n_contiguous);
}

size_t written_extents_before(const struct written_extents *written, uint64_t end)
{
	size_t n = written->n_contiguous;

	while (n > 0 && written->extents[n - 1].offset >= end)
		n--;
	return n;
}

int written_extents_check(const struct output_extent *extents, size_t n,
			  written_extents_read_fn *read_at, void *file, size_t *ret_bad)
{
	void *buffer = malloc(WRITTEN_EXTENT_MAX_NBYTES);
	int r = buffer ? 0 : fail(-ENOMEM, "no memory to read again what of the output is written");

	for (size_t i = 0; i < n && r == 0; i++) {
		*ret_bad = i;
		if (extents[i].nbytes > WRITTEN_EXTENT_MAX_NBYTES)
			r = -EBADMSG;
		if (r == 0)
			r = read_at(file, extents[i].offset, buffer, extents[i].nbytes);
		if (r == 0 && checksum64(buffer, extents[i].nbytes) != extents[i].checksum)
			r = -EBADMSG;
	}
	free(buffer);
	return r;
}

int written_extents_check_all(const struct checkpoint_state *state,
			      written_extents_read_fn *read_at, void *file,
			      struct output_extent *ret_bad)
{
	int r = 0;

	for (size_t i = 0; i < state->n_partitions && r == 0; i++) {
		const struct checkpoint_partition *partition = &state->partitions[i];
		size_t bad_index;

		r = written_extents_check(partition->extents, partition->n_extents, read_at, file,
					  &bad_index);
		if (r == -EBADMSG)
			*ret_bad = partition->extents[bad_index];
	}
	return r;
}

/* A checksum of the checksum before, and of what is from `begin` to `end`. */
static int extend_checksum(uint64_t begin, uint64_t end, written_extents_read_fn *read_at,
			   void *file, uint64_t *ret_checksum)
{
	unsigned char buffer[4096];
	int r = 0;

	while (begin < end && r == 0) {
		const size_t capacity = sizeof buffer - sizeof *ret_checksum;
		const size_t n = end - begin < capacity ? (size_t)(end - begin) : capacity;

		memcpy(buffer, ret_checksum, sizeof *ret_checksum);
		r = read_at(file, begin, buffer + sizeof *ret_checksum, n);
		if (r == 0)
			*ret_checksum = checksum64(buffer, sizeof *ret_checksum + n);
		begin += n;
	}
	return r;
}

int written_extents_framing_checksum(uint64_t begin, uint64_t end, uint64_t nbytes,
				     written_extents_read_fn *read_at, void *file,
				     uint64_t *ret_checksum)
{
	uint64_t checksum = 0;
	int r = extend_checksum(0, begin, read_at, file, &checksum);

	if (r == 0)
		r = extend_checksum(end, nbytes, read_at, file, &checksum);
	if (r == 0)
		*ret_checksum = checksum;
	return r;
}
