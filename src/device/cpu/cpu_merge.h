/*
 * cpu_merge.h - merge sorted slices into one, with one thread
 */
#pragma once

#include "src/device/backend.h"

struct merge_elements_op {
	const struct slice *slices; /* k; may be empty */
	uint32_t k;
	uint32_t element_nbytes;
	void *out;     /* the sum of n elements */
	void *scratch; /* cpu_merge_scratch_nbytes(k, n) */
};

/*
 * Return the size in bytes of the scratch for merging k slices of at most n elements in all. It is
 * about half the size of the elements, and little more than 1 MiB for up to some thousand slices.
 */
size_t cpu_merge_scratch_nbytes(uint32_t k, uint64_t n, uint32_t element_nbytes);

/*
 * Merge op->k sorted slices into op->out, which must not overlap them. All arrays are aligned to
 * the size of an element, the scratch to 16 bytes. Allocates nothing. Reentrant.
 */
void cpu_merge(const struct merge_elements_op *op);

/* --- two slices --- */

/*
 * Merge sorted a (n_a elements) and b (n_b elements) into out, which must not overlap them. Arrays
 * are aligned to the size of an element. The order of equal elements is not defined; they are
 * indistinguishable.
 */
typedef void merge2_fn(const void *a, uint64_t n_a, const void *b, uint64_t n_b, void *out);

/* Portable C. */
merge2_fn merge2_4, merge2_8, merge2_16;

/* Only for x86-64 with AVX-512F and AVX-512VL. */
merge2_fn merge2_avx512_4, merge2_avx512_8;

/* Return the fastest of these functions for elements of element_nbytes on this machine. */
merge2_fn *merge2_choose(uint32_t element_nbytes);
