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
 * Return the scratch of a merge of k slices of n elements in all, or fewer: half the size of the
 * elements, and little more than 1 MiB for up to some thousand slices.
 */
size_t cpu_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes);

/*
 * Merge op->k sorted slices into op->out, which does not overlap them. All arrays are aligned to
 * the size of an element, the scratch to 16 bytes. Allocates nothing. Reentrant.
 */
void cpu_merge(const struct merge_elements_op *op);
