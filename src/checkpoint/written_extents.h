/*
 * written_extents - which parts of the output are written, and what they are
 *
 * Windows are written by several threads, in any order. What matters is how far the output is
 * written without a gap; the parts up to there, with their checksums, can be read again and
 * compared.
 *
 * One thread at a time.
 */
#pragma once

#include "src/checkpoint/manifest_records.h"

/* Parts are not longer than this. */
enum { WRITTEN_EXTENT_MAX_NBYTES = 4 << 20 };

/* Plain data, of a range of the output; zeroed but for its begin: nothing is written. */
struct written_extents {
	uint64_t begin;
	struct output_extent *extents; /* n, by offset */
	size_t n, n_allocated;
	size_t n_contiguous; /* without a gap from the beginning */
};

/* Nothing is written any more. */
void written_extents_free(struct written_extents *written);

/* The parts of nbytes of the output at `offset`: how many, and into an array of as many. */
size_t written_extents_count(size_t nbytes);
void written_extents_describe(uint64_t offset, const void *data, size_t nbytes,
			      struct output_extent *ret_extents);

/* Add n parts, neighbours. -ENOMEM after a message. */
int written_extents_add(struct written_extents *written, const struct output_extent *extents,
			size_t n);

/* How far the output is written without a gap. */
uint64_t written_extents_end(const struct written_extents *written);

/* How many of the parts without a gap lie before `end`. */
size_t written_extents_before(const struct written_extents *written, uint64_t end);

/* Reads a part of a file, or of its records. 0 or a negative errno. */
typedef int written_extents_read_fn(void *file, uint64_t offset, void *buffer, size_t nbytes);

/*
 * Read the n parts, with read_at(), and compare their checksums. Returns 0; -EBADMSG without a
 * message, and the first part that is different; or another negative errno, as read_at() returned
 * it or after a message.
 */
int written_extents_check(const struct output_extent *extents, size_t n,
			  written_extents_read_fn *read_at, void *file, size_t *ret_bad);

/* The same of all that is written in all ranges. */
int written_extents_check_all(const struct checkpoint_state *state,
			      written_extents_read_fn *read_at, void *file,
			      struct output_extent *ret_bad);

/*
 * Parts are of records; what is in front of them and behind, up to `begin` and from `end` on in a
 * file of nbytes, is read here: *ret_sum is a checksum of it. Returns 0, or a negative errno as
 * above.
 */
int written_extents_framing_checksum(uint64_t begin, uint64_t end, uint64_t nbytes,
				     written_extents_read_fn *read_at, void *file,
				     uint64_t *ret_checksum);
