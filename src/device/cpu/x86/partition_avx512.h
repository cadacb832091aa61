/*
 * partition_avx512 - partition step of quicksort for u64 elements
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Reorder n elements: first those not above the pivot (strict: below it), then the others. Returns
 * the number of the first. Needs AVX-512.
 */
uint64_t partition_avx512(uint64_t *elements, uint64_t n, uint64_t pivot, bool strict);
