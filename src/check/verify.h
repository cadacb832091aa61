/*
 * verify - is this file in order, and what does it hold?
 *
 * One pass over the records finds the first disorder, the records that equal the one before, and
 * the digest of the multiset. gsort -c, gsort --verify and gsort-check are this function.
 *
 * A file is read by several threads, in pieces that they claim from the front to the back. A piece
 * is read together with the record before it, so its first neighbours are compared like all others
 * and nothing passes between threads. As pieces are claimed in order and a claimed piece is always
 * finished, the smallest disorder that any thread has seen is the first of the file, also when the
 * later pieces are not looked at any more. A pipe has no "before" to read again: one thread does
 * it.
 *
 * A disorder is a finding, not a failure: it is returned, and the caller says it.
 */
#pragma once

#include "io/input/input.h"
#include "src/base/cancellation.h"
#include "src/base/stats.h"
#include "src/record/layout.h"

struct verify_options {
	const struct layout *layout;
	bool strict;           /* equal neighbours are disorder too (-u) */
	bool stop_at_disorder; /* the other results are then of a part only */
	unsigned n_threads;    /* at most; each takes VERIFY_THREAD_NBYTES of memory */
	struct stats *stats;   /* NULL: none; spans of STAGE_VERIFY */
	const struct cancellation *cancellation; /* by who may end it; NULL: nobody */
	/* A hash of a record that is to be summed up besides the digest's; NULL: none. */
	uint32_t (*hash)(const void *record, uint64_t nbytes);
};

enum { VERIFY_THREAD_NBYTES = 512 << 10 };

struct verify_result {
	struct digest digest;
	uint64_t n_disorders;
	/* Number, from 1, of the first record not in order with the one before it; 0: none. */
	uint64_t first_disorder;
	uint64_t n_duplicates; /* records with the key of the one before */
	uint64_t counts_sum;   /* of an output: the sum of its counts, if it has any */
	uint128_t hash_sum;    /* of all records, in any order; 0 without a hash */
};

/*
 * Check what is left of `input`, from its beginning if nothing has been read, and pass it. Returns
 * 0 and *ret_result, disorder or not; or a negative errno after a message.
 */
int verify_input(struct input *input, const struct verify_options *options,
		 struct verify_result *ret_result);

/* Of an input of known size, records of those numbers, from 0. */
struct verify_record_range {
	uint64_t begin, end;
};

/*
 * Check these alone, the first of them against the one before the part. As verify_input(), but that
 * nothing is passed; first_disorder is a number in the whole input.
 */
int verify_input_range(struct input *input, struct verify_record_range range,
		       const struct verify_options *options, struct verify_result *ret_result);

/* Read exactly nbytes at `position` of what was written. */
typedef int verify_read_fn(void *context, uint64_t position, void *buffer, size_t nbytes);

/*
 * Read back and check nbytes that were written: the layout's items. By several threads. Returns
 * what read_at() does, if that fails.
 */
int verify_output(verify_read_fn *read_at, void *context, uint64_t nbytes,
		  const struct verify_options *options, struct verify_result *ret_result);

/* The last record of a sequence that is checked part by part. */
struct verify_edge {
	void *last; /* of record_nbytes */
	bool has_last;
};

/* An edge of nothing yet. Returns 0, or -ENOMEM after a message. */
int verify_edge_open(const struct layout *layout, struct verify_edge *ret_edge);
/* A zeroed edge is fine. */
void verify_edge_close(struct verify_edge *edge);

/*
 * Check the n records at `records`, and the first of them against the edge, which moves on to the
 * last. Returns the index of the first record that is out of order, or n. Their digest is added to
 * *digest.
 */
uint64_t verify_records(const struct layout *layout, const void *records, uint64_t n,
			struct verify_edge *edge, struct digest *digest);
