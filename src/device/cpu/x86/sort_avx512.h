/*
 * sort_avx512 - quicksort of u64 elements with AVX-512
 *
 * Only on x86-64, if avx512_is_supported().
 */
#pragma once

#include <stdint.h>

/* Return the elements of scratch that sort_8_avx512() needs for n: at most 1 MiB of them. */
uint64_t sort_8_avx512_scratch_n(uint64_t n);

/* Sort n elements in place, ascending. Arrays are aligned to 8 bytes. */
void sort_8_avx512(uint64_t *elements, uint64_t n, uint64_t *scratch);

/*
 * Sort with `depth` levels of quicksort before heapsort. sort_8_avx512() allows so many that hardly
 * any data uses heapsort.
 */
void sort_8_avx512_to_depth(uint64_t *elements, uint64_t n, uint64_t *scratch, unsigned depth);
