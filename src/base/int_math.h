/*
 * int_math.h - limit and round integers, and find an integer in intervals
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t u64_max(uint64_t value, uint64_t min)
{
	return value < min ? min : value;
}

static inline uint64_t u64_min(uint64_t value, uint64_t max)
{
	return value > max ? max : value;
}

static inline uint64_t u64_clamp(uint64_t value, uint64_t min, uint64_t max)
{
	return value < min ? min : u64_min(value, max);
}

/* Return the quotient rounded up. divisor > 0 */
static inline uint64_t divide_up(uint64_t value, uint64_t divisor)
{
	return value / divisor + (value % divisor != 0);
}

/* Round up to a multiple of `multiple`. The result must fit; multiple > 0. */
static inline uint64_t round_up(uint64_t value, uint64_t multiple)
{
	return divide_up(value, multiple) * multiple;
}

/* Return where share i, from 0, of n_shares equal shares of n begins; with i = n_shares: n. */
static inline uint64_t equal_share_begin(uint64_t n, uint64_t i, uint64_t n_shares)
{
	return (uint64_t)((unsigned __int128)n * i / n_shares);
}

/*
 * Return the index of the interval that contains `position`: the last of n ascending intervals that
 * begins at or before it, or 0 if none does. So empty intervals contain nothing:
 *
 *	index      0       1   2       3
 *	begin      0       4   4       9
 *	contains   0 .. 3  -   4 .. 8  9 ..
 *
 * Each interval is a struct of nbytes bytes whose begin is a uint64_t at begin_offset.
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
