/*
 * radix_sort - a byte-wise radix sort for elements of 4, 8 and 16 bytes
 *
 * Least significant byte first: a counting sort for every byte, each stable, so that after the
 * most significant byte everything is in order (Knuth, vol. 3, 5.2.5). Bytes that are the same
 * in all elements cost nothing but the counting, which is done for all bytes in one sweep.
 *
 * That scatters into 256 places at once, which is fast only while they stay in the cache: beyond
 * PIECE_NBYTES a pass over the most significant byte that varies comes first, and the buckets, if
 * they fit, are then sorted one by one. Its writes go to 256 different pages, but it is one pass
 * instead of all of them.
 *
 * Takes the same time for any distribution but one that needs several such passes (the first
 * byte that varies is nearly always the same, like a geometric distribution); each takes a byte
 * off.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/*
 * Sort n elements in place, ascending. elements and scratch: n elements each, aligned to their
 * size; scratch is overwritten.
 */
void radix_sort_4(void *elements, uint64_t n, void *scratch);
void radix_sort_8(void *elements, uint64_t n, void *scratch);
void radix_sort_16(void *elements, uint64_t n, void *scratch);
