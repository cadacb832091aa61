/*
 * cpu_merge - merge sorted slices into one, with one thread
 */
#pragma once

#include "src/device/backend.h"

struct merge_elements_op {
	const struct slice *slices; /* k; earlier ones win ties; may be empty */
	uint32_t k;
	uint32_t element_nbytes;
	void *out;     /* the sum of n elements */
	void *scratch; /* cpu_merge_scratch_nbytes(k, n) */
};

/*
 * Bytes that merge_elements_op.scratch must have for k slices of n elements in all, or fewer: half
 * of what the elements take, and little more than 1 MiB up to some thousand slices.
 */
size_t cpu_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes);

/*
 * Merge op->k sorted slices, in place where they are, into op->out. out overlaps none of them.
 * Everything aligned to the elements' size; the scratch to 16 bytes. No allocation; any number
 * of calls at the same time.
 */
void cpu_merge(const struct merge_elements_op *op);
