/*
 * cpu_sort.h - sort a chunk of elements in memory, with one thread
 */
#pragma once

#include "src/device/backend.h"

struct sort_elements_op {
	void *elements; /* sorted in place, stably where equal elements can be distinguished */
	uint64_t n;
	void *scratch; /* cpu_sort_scratch_nbytes(n) */
	uint32_t element_nbytes;
};

/* Return the scratch for n elements; 0 if the sort works in place. */
size_t cpu_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes);

/*
 * Sort op->n elements in place, ascending. Elements and scratch are aligned to the size of an
 * element. Elements in order, or in strictly descending order, take one pass. Allocates nothing.
 * Reentrant.
 */
void cpu_sort(const struct sort_elements_op *op);

/*
 * Sort n elements in place by radix sort, ascending. Elements and scratch: n elements each, aligned
 * to their size.
 */
void radix_sort_4(void *elements, uint64_t n, void *scratch);
void radix_sort_8(void *elements, uint64_t n, void *scratch);
void radix_sort_16(void *elements, uint64_t n, void *scratch);
