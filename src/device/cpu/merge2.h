/*
 * merge2 - the two-way merge that everything is made of
 */
#pragma once

#include <stdint.h>

/*
 * Merge sorted a (n_a elements) and b (n_b) into out (n_a + n_b), which overlaps neither;
 * aligned to the elements' size. Equal elements of a come first, as far as that can be seen:
 * elements are codes.
 */
typedef void merge2_fn(const void *a, uint64_t n_a, const void *b, uint64_t n_b, void *out);

/* Plain C. */
merge2_fn merge2_4, merge2_8, merge2_16;

/* x86-64 with AVX-512F and AVX-512VL only. */
merge2_fn merge2_avx512_4, merge2_avx512_8;

/* The fastest of these for elements of element_nbytes on this machine. */
merge2_fn *merge2_choose(uint32_t element_nbytes);
