/*
 * partition_avx512 - the partition step of quicksort for u64 elements
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Reorder n elements: first those that are not above the pivot (strict: that are below it),
 * then the others. Returns how many came first. AVX-512 only.
 */
uint64_t partition_avx512(uint64_t *elements, uint64_t n, uint64_t pivot, bool strict);
