/*
 * verify.h - check the order of a file and compute its digest
 *
 * One pass over the records finds the first disorder, the records that equal the one before them,
 * and the digest of the multiset. This is what gsort -c, gsort --verify and gsort-check do.
 *
 * A file is read by several threads in blocks, which they claim from front to back. A block is read
 * together with the record before it, so that its first record is checked too, and nothing passes
 * between threads. Blocks are claimed in order and a claimed block is always finished. So the
 * lowest disorder found by any thread is the first of the file, even if later blocks are not looked
 * at any more. A pipe is read by one thread.
 *
 * A disorder is a result, not an error: the caller reports it.
 */
#pragma once

#include "io/input/input.h"
#include "src/base/cancellation.h"
#include "src/base/stats.h"
#include "src/record/layout.h"

struct verify_options {
	const struct layout *layout;
	bool strict;           /* equal neighbours are disorders, too (-u) */
	bool stop_at_disorder; /* the other results are then incomplete */
	unsigned n_threads;    /* at most; each uses VERIFY_THREAD_NBYTES of memory */
	struct stats *stats;   /* gets spans of STAGE_VERIFY; NULL: none */
	const struct cancellation *cancellation; /* NULL: cannot be cancelled */
	/* An additional hash to sum up; NULL: none. */
	uint32_t (*hash)(const void *record, uint64_t nbytes);
};

enum { VERIFY_THREAD_NBYTES = 512 << 10 };

struct verify_result {
	struct digest digest;
	uint64_t n_disorders;
	/* Number, from 1, of the first record that is out of order; 0: none. */
	uint64_t first_disorder;
	uint64_t n_duplicates; /* records with the same key as the one before */
	uint64_t counts_sum;   /* of an output: sum of the counts, if it has any */
	uint128_t hash_sum;    /* of all records, in any order; 0 without a hash */
};

/*
 * Check the rest of `input` and move to its end. Returns 0 and *ret_result, whether there are
 * disorders or not; or a negative errno (reported).
 */
int verify_input(struct input *input, const struct verify_options *options,
		 struct verify_result *ret_result);

/* Record numbers, from 0. */
struct verify_record_range {
	uint64_t begin, end;
};

/*
 * Check a range of an input of known size. Its first record is compared with the record before the
 * range. The position in the input stays the same. first_disorder is a number in the whole input.
 * Returns 0 or a negative errno (reported).
 */
int verify_input_range(struct input *input, struct verify_record_range range,
		       const struct verify_options *options, struct verify_result *ret_result);

/* Read exactly nbytes at `position` of an output. */
typedef int verify_read_fn(void *context, uint64_t position, void *buffer, size_t nbytes);

/*
 * Read back and check nbytes of an output, which has the layout's items. read_at() is called by
 * several threads; its error is returned.
 */
int verify_output(verify_read_fn *read_at, void *context, uint64_t nbytes,
		  const struct verify_options *options, struct verify_result *ret_result);

/* The last record of a sequence that is checked piece by piece. */
struct verify_edge {
	void *last; /* record_nbytes */
	bool has_last;
};

/* Begin a sequence. Returns 0 or -ENOMEM (reported). */
int verify_edge_open(const struct layout *layout, struct verify_edge *ret_edge);
void verify_edge_close(struct verify_edge *edge);

/*
 * Check n records, the first of them against the edge, which moves on to the last. Adds their
 * digest to *digest. Returns the index of the first record that is out of order, or n.
 */
uint64_t verify_records(const struct layout *layout, const void *records, uint64_t n,
			struct verify_edge *edge, struct digest *digest);
