/*
 * interval_search - which of several things that lie one behind the other holds a place
 *
 *	begin at   0       4   4       9
 *	hold       0 .. 3  -   4 .. 8  9 ..
 *
 * The last that begins at or before it: what is empty holds nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Things of nbytes each, n of them, in order, with a uint64_t at `at` that says where each begins.
 * 0 if none begins at or before the place.
 */
static inline size_t find_interval(const void *intervals, size_t nbytes, size_t begin_offset,
				   size_t n, uint64_t position)
{
	size_t lo = 0, hi = n;

	while (hi - lo > 1) {
		const size_t i = lo + (hi - lo) / 2;
		uint64_t begin;

		memcpy(&begin, (const char *)intervals + i * nbytes + begin_offset, sizeof begin);
		if (begin <= position)
			lo = i;
		else
			hi = i;
	}
	return lo;
}
