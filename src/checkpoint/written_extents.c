/*
 * written_extents - which parts of the output are written, and what they are (see written_extents.h)
 */
#include "src/checkpoint/written_extents.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"

void written_parts_free(struct written_parts *written)
{
	free(written->parts);
	*written = (struct written_parts){ .begin = written->begin };
}

size_t written_parts_count(size_t nbytes)
{
	return nbytes / WRITTEN_PART_NBYTES + (nbytes % WRITTEN_PART_NBYTES != 0);
}

void written_parts_describe(uint64_t offset, const void *data, size_t nbytes,
			    struct output_part *ret_parts)
{
	const char *at = data;

	while (nbytes) {
		const size_t n = nbytes < WRITTEN_PART_NBYTES ? nbytes : WRITTEN_PART_NBYTES;

		*ret_parts++ = (struct output_part){ offset, n, checksum64(at, n) };
		offset += n;
		at += n;
		nbytes -= n;
	}
}

static int reserve(struct written_parts *written, size_t n)
{
	const size_t n_allocated = 2 * (written->n + n);
	struct output_part *parts;

	if (written->n + n <= written->n_allocated)
		return 0;
	parts = realloc(written->parts, n_allocated * sizeof *parts);
	if (!parts)
		return fail(-ENOMEM, "no memory for a list of %zu parts of the output",
			    n_allocated);
	written->parts = parts;
	written->n_allocated = n_allocated;
	return 0;
}

int written_parts_add(struct written_parts *written, const struct output_part *parts, size_t n)
{
	size_t at = written->n;
	int r;

	if (n == 0)
		return 0;
	r = reserve(written, n);
	if (r < 0)
		return r;
	/* It is mostly the last, or a few windows before it. */
	while (at > 0 && written->parts[at - 1].offset > parts[0].offset)
		at--;
	memmove(written->parts + at + n, written->parts + at,
		(written->n - at) * sizeof *written->parts);
	memcpy(written->parts + at, parts, n * sizeof *parts);
	written->n += n;
	while (written->n_contiguous < written->n &&
	       written->parts[written->n_contiguous].offset == written_parts_end(written))
		written->n_contiguous++;
	return 0;
}

uint64_t written_parts_end(const struct written_parts *written)
{
	return output_parts_end(written->begin, written->parts, written->n_contiguous);
}

size_t written_parts_before(const struct written_parts *written, uint64_t end)
{
	size_t n = written->n_contiguous;

	while (n > 0 && written->parts[n - 1].offset >= end)
		n--;
	return n;
}

int written_parts_check(const struct output_part *parts, size_t n, written_parts_read_fn *read_at,
			void *file, size_t *ret_bad)
{
	void *buffer = malloc(WRITTEN_PART_NBYTES);
	int r = buffer ? 0 : fail(-ENOMEM, "no memory to read again what of the output is written");

	for (size_t i = 0; i < n && r == 0; i++) {
		*ret_bad = i;
		if (parts[i].nbytes > WRITTEN_PART_NBYTES)
			r = -EBADMSG;
		if (r == 0)
			r = read_at(file, parts[i].offset, buffer, parts[i].nbytes);
		if (r == 0 && checksum64(buffer, parts[i].nbytes) != parts[i].checksum)
			r = -EBADMSG;
	}
	free(buffer);
	return r;
}

int written_parts_check_all(const struct checkpoint_state *state, written_parts_read_fn *read_at,
			    void *file, struct output_part *ret_bad)
{
	int r = 0;

	for (size_t i = 0; i < state->n_ranges && r == 0; i++) {
		const struct checkpoint_range *range = &state->ranges[i];
		size_t bad;

		r = written_parts_check(range->parts, range->n_parts, read_at, file, &bad);
		if (r == -EBADMSG)
			*ret_bad = range->parts[bad];
	}
	return r;
}

/* A checksum of the checksum before, and of what is from `begin` to `end`. */
static int sum(uint64_t begin, uint64_t end, written_parts_read_fn *read_at, void *file,
	       uint64_t *ret_sum)
{
	unsigned char buffer[4096];
	int r = 0;

	while (begin < end && r == 0) {
		const size_t room = sizeof buffer - sizeof *ret_sum;
		const size_t n = end - begin < room ? (size_t)(end - begin) : room;

		memcpy(buffer, ret_sum, sizeof *ret_sum);
		r = read_at(file, begin, buffer + sizeof *ret_sum, n);
		if (r == 0)
			*ret_sum = checksum64(buffer, sizeof *ret_sum + n);
		begin += n;
	}
	return r;
}

int written_parts_sum_around(uint64_t begin, uint64_t end, uint64_t nbytes,
			     written_parts_read_fn *read_at, void *file, uint64_t *ret_sum)
{
	uint64_t so_far = 0;
	int r = sum(0, begin, read_at, file, &so_far);

	if (r == 0)
		r = sum(end, nbytes, read_at, file, &so_far);
	if (r == 0)
		*ret_sum = so_far;
	return r;
}
