/*
 * radix_sort - radix sort for elements of 4, 8 and 16 bytes
 *
 * Least significant byte first: a stable counting sort for every byte (Knuth, vol. 3, 5.2.5). Bytes
 * that are equal in all elements only cost the counting, which one pass does for all bytes.
 *
 * This scatters to 256 places at once, which is fast only while they stay in the cache. So larger
 * arrays (beyond PIECE_NBYTES) are first distributed by the most significant byte that varies, and
 * buckets that fit are sorted one by one. The distribution writes to 256 different pages, but it is
 * one pass instead of all of them.
 *
 * The time does not depend on the distribution, except for data that needs several such passes (the
 * first byte that varies is nearly always the same, as in a geometric distribution). Each pass
 * handles one byte.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Sort n elements in place, ascending. Elements and scratch: n elements each, aligned to their
 * size.
 */
void radix_sort_4(void *elements, uint64_t n, void *scratch);
void radix_sort_8(void *elements, uint64_t n, void *scratch);
void radix_sort_16(void *elements, uint64_t n, void *scratch);
