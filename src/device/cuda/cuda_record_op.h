/*
 * cuda_record_op - the state of an operation on records: scratch and results
 *
 * Internal to cuda_records.c and its parts. The scratch, for n items:
 *
 *	[ tables ][ items, if made here ][ elements ][ buffer 0 ][ buffer 1 ][ ties ][ heads ] ...
 *
 * Buffer 0 is the scratch of the sort, or holds the elements of the slices, which are merged into
 * `elements` with buffer 1 as scratch. Then both are free, and tie breaking alternates between
 * them: one holds the list of a round, the other is the scratch of its sort.
 */
#pragma once

#include "src/device/cuda/cuda_queue.h"

/* The parts of the scratch; unused ones are empty. */
struct record_op_scratch {
	void *tables, *projection_tables;
	void *items;
	void *elements;
	void *buffers[2];
	void *ties;
	uint32_t *positions[2]; /* of the tied elements, for alternate rounds */
	void *head_flags;
	uint64_t *counts;
};

/* Results of the kernels for the host; a merge appends its first and last item. */
struct record_op_result {
	struct tie_counts ties; /* first, because the host reads it between rounds */
	uint32_t common_nbytes;
	struct digest input_digest;
	struct kernel_gather_result gathered;
};

/* The state of an operation. */
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

/* Return whether records can be sorted as pairs. */
bool cuda_can_use_pairs(const struct layout *layout);

/* Describe items to the kernels; views of slices are derived from it. */
struct kernel_items cuda_describe_items(const struct layout *layout);

/* Return the scratch for n items in k slices (0: a sort). */
size_t cuda_record_op_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n);

/*
 * Begin to queue an operation on k slices (0: a sort), with edges_nbytes after the other results.
 * Requires layout, n and use_pairs to be set, and the rest zeroed. cuda_record_op_end() must
 * follow, also after a failure. Returns 0, or a negative errno after a message.
 */
int cuda_record_op_begin(struct cuda_record_op *record_op, struct device_queue *queue,
			 enum stage stage, uint32_t k, void *scratch, size_t edges_nbytes);

/* End it: all kernels are queued, or r < 0. Returns r, or the error of the queued kernels. */
int cuda_record_op_end(struct cuda_record_op *record_op, int r, const char *what);
