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

/* --- quicksort of u64 with AVX-512 (x86/sort_avx512.c): only if avx512_is_supported() --- */

/* Return the elements of scratch that sort_8_avx512() needs for n: at most 1 MiB of them. */
uint64_t sort_8_avx512_scratch_n(uint64_t n);

/* Sort n elements in place, ascending. Arrays are aligned to 8 bytes. */
void sort_8_avx512(uint64_t *elements, uint64_t n, uint64_t *scratch);

/*
 * Sort with `depth` levels of quicksort before heapsort. sort_8_avx512() allows so many that hardly
 * any data uses heapsort.
 */
void sort_8_avx512_to_depth(uint64_t *elements, uint64_t n, uint64_t *scratch, unsigned depth);
