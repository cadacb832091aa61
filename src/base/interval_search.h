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
static inline size_t begins_find(const void *things, size_t nbytes, size_t at, size_t n,
				 uint64_t place)
{
	size_t lo = 0, hi = n;

	while (hi - lo > 1) {
		const size_t i = lo + (hi - lo) / 2;
		uint64_t begin;

		memcpy(&begin, (const char *)things + i * nbytes + at, sizeof begin);
		if (begin <= place)
			lo = i;
		else
			hi = i;
	}
	return lo;
}
