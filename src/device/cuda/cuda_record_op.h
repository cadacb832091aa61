/*
 * cuda_record_op - an operation on records on its way: its scratch, and what it finds
 *
 * For cuda_records.c and its parts only. The scratch, for n items:
 *
 *	[ tables ][ items, if made here ][ elements ][ buffer 0 ][ buffer 1 ][ ties ][ firsts ] ...
 *
 * Buffer 0 is the scratch of the sort, or holds the elements of the slices, which are merged into
 * `elements` with buffer 1 as scratch. After that both are free, and refining takes turns with
 * them: the list of a round is made in one, and sorted with the other as scratch.
 */
#pragma once

#include "src/device/cuda/cuda_queue.h"

/* The parts of the scratch; those that are not needed are empty. */
struct room {
	void *tables, *intake_tables;
	void *items;
	void *elements;
	void *buffers[2];
	void *ties;
	uint32_t *places[2]; /* of the elements of a refinement's list, in turns */
	void *firsts;
	uint64_t *counts;
};

/* What kernels leave for the host; of a merge, the items at the edges follow. */
struct findings {
	struct tie_counts ties; /* first: the host looks at these in between */
	uint32_t reach;
	struct digest read;
	struct gather_findings gathered;
};

/* An operation on its way. */
struct work {
	struct operation operation;
	cudaStream_t stream;
	const struct layout *layout;
	uint64_t n;
	struct room room;
	struct kernel_items items;
	struct findings *found; /* on the device */
	bool as_pairs;          /* see cuda_fit_pairs() */
	uint32_t element_nbytes;
};

/* May records be sorted as pairs? */
bool cuda_fit_pairs(const struct layout *layout);

/* How the kernels see items; views of slices are made of it. */
struct kernel_items cuda_describe_items(const struct layout *layout);

/* What n items in k slices (0: a sort) need. */
size_t cuda_work_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);

/*
 * With layout, n and as_pairs set, and the rest zeroed: begin to queue an operation on k slices (0:
 * a sort), with edges_nbytes of results behind the findings. Always to be followed by
 * cuda_work_end(), also after a failure. 0, or a negative errno after a message.
 */
int cuda_work_begin(struct work *work, struct lane *lane, enum stage stage, uint32_t k,
		    void *scratch, size_t edges_nbytes);

/* All is queued, or, with r < 0, nothing else will be. Returns r, or what queueing came to. */
int cuda_work_end(struct work *work, int r, const char *what);
