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
struct record_op_scratch {
	void *tables, *projection_tables;
	void *items;
	void *elements;
	void *buffers[2];
	void *ties;
	uint32_t *positions[2]; /* of the elements of a refinement's list, in turns */
	void *head_flags;
	uint64_t *counts;
};

/* What kernels leave for the host; of a merge, the items at the edges follow. */
struct record_op_result {
	struct tie_counts ties; /* first: the host looks at these in between */
	uint32_t common_nbytes;
	struct digest input_digest;
	struct kernel_gather_result gathered;
};

/* An operation on its way. */
struct cuda_record_op {
	struct cuda_operation operation;
	cudaStream_t stream;
	const struct layout *layout;
	uint64_t n;
	struct record_op_scratch areas;
	struct kernel_items items;
	struct record_op_result *result; /* on the device */
	bool use_pairs;                  /* see cuda_can_use_pairs() */
	uint32_t element_nbytes;
};

/* May records be sorted as pairs? */
bool cuda_can_use_pairs(const struct layout *layout);

/* How the kernels see items; views of slices are made of it. */
struct kernel_items cuda_describe_items(const struct layout *layout);

/* What n items in k slices (0: a sort) need. */
size_t cuda_record_op_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);

/*
 * With layout, n and use_pairs set, and the rest zeroed: begin to queue an operation on k slices
 * (0: a sort), with edges_nbytes of results behind the findings. Always to be followed by
 * cuda_record_op_end(), also after a failure. 0, or a negative errno after a message.
 */
int cuda_record_op_begin(struct cuda_record_op *record_op, struct device_queue *queue,
			 enum stage stage, uint32_t k, void *scratch, size_t edges_nbytes);

/* All is queued, or, with r < 0, nothing else will be. Returns r, or what queueing came to. */
int cuda_record_op_end(struct cuda_record_op *record_op, int r, const char *what);
