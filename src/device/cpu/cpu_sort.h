/*
 * cpu_sort - sort a chunk of elements in memory, with one thread
 */
#pragma once

#include "src/device/backend.h"

struct sort_elements_op {
	void *elements; /* sorted in place, stable where it can be told */
	uint64_t n;
	void *scratch; /* cpu_sort_scratch_nbytes(n) */
	uint32_t element_nbytes;
};

/* Bytes that sort_elements_op.scratch must have for n elements; 0 where the sort works in place. */
size_t cpu_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes);

/*
 * Sort op->n elements in place, ascending. elements and scratch: aligned to the elements' size.
 * Elements already in order, and elements in strictly descending order, take one sweep. No
 * allocation; any number of calls at the same time.
 */
void cpu_sort(const struct sort_elements_op *op);
