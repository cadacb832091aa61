/*
 * merge2 - two-way merge, the basis of all merges
 */
#pragma once

#include <stdint.h>

/*
 * Merge sorted a (n_a elements) and b (n_b elements) into out, which does not overlap them. Arrays
 * are aligned to the size of an element. Equal elements of a come first, as far as they can be
 * distinguished.
 */
typedef void merge2_fn(const void *a, uint64_t n_a, const void *b, uint64_t n_b, void *out);

/* Portable C. */
merge2_fn merge2_4, merge2_8, merge2_16;

/* Only for x86-64 with AVX-512F and AVX-512VL. */
merge2_fn merge2_avx512_4, merge2_avx512_8;

/* Return the fastest of these functions for elements of element_nbytes on this machine. */
merge2_fn *merge2_choose(uint32_t element_nbytes);
