/*
 * cpu_sort.h - sort a chunk of elements in memory, with one thread
 */
#pragma once

#include "src/device/backend.h"
#include "src/record/key_encoding.h"

struct sort_elements_op {
	void *elements; /* sorted in place */
	uint64_t n;
	void *scratch; /* cpu_sort_scratch_nbytes(n) */
	uint32_t element_nbytes;
	const struct cancellation *cancellation; /* NULL: never */
};

/* Return the size in bytes of the scratch for n elements; 0 if the sort needs none. */
size_t cpu_sort_scratch_nbytes(uint64_t n, uint32_t element_nbytes);

/*
 * Sort op->n elements in place, ascending. Elements and scratch are aligned to the size of an
 * element. Elements in order, or in strictly descending order, take one pass. Once cancellation is
 * requested, the sort returns after some milliseconds and the elements are undefined. (Without
 * AVX-512 it may take longer: vqsort cannot be interrupted.) Allocates nothing. Reentrant.
 */
void cpu_sort(const struct sort_elements_op *op);

/* Sort by radix sort. The scratch has room for all elements. */
void radix_sort_4(const struct sort_elements_op *op);
void radix_sort_8(const struct sort_elements_op *op);
void radix_sort_16(const struct sort_elements_op *op);

/* --- quicksort with AVX-512 (x86/sort_avx512.c): only if avx512_is_supported() --- */

/* Return the size in elements of the scratch that sort_8_avx512() needs for n, at most 2^15. */
uint64_t sort_8_avx512_scratch_n(uint64_t n);

/* Sort elements of 8 bytes. */
void sort_8_avx512(const struct sort_elements_op *op);

/*
 * Sort with at most `depth` levels of quicksort before heapsort. sort_8_avx512() allows so many
 * that hardly any data needs heapsort.
 */
void sort_8_avx512_to_depth(const struct sort_elements_op *op, unsigned depth);

/*
 * Partition n elements of 16 bytes: move those not above the pivot to the front. Returns their
 * number.
 */
uint64_t partition_16_avx512(void *elements, uint64_t n, uint128_t pivot);
