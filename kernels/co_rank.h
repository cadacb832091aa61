/*
 * co_rank - where an output position cuts the inputs of a merge; host and device
 *
 *	a  [ . . . . | . . ]		co_rank(a, n_a, b, n_b, 6) = 4: of the first six outputs,
 *	b  [ . . | . . . . ]		four come from a and 6 - 4 = 2 from b.
 *
 * The stable merge of a and b (equal elements of a before those of b) is a path through the n_a x
 * n_b grid of comparisons; output position `rank` is a diagonal of the grid, and the co-rank is
 * where the path crosses it. A binary search along the diagonal finds it in log2(min(n_a, n_b,
 * rank)) steps without looking at anything else, so any part of a merge can be cut out and done
 * alone (Siebert and Traff, "Perfectly load-balanced, optimal, stable, parallel merge", 2013;
 * Green, Odeh and Birk, "Merge Path", 2014).
 *
 * The invariant: a[i] for i < lo is among the first `rank` outputs, and a[i] for i >= hi is not.
 *
 * This is gsort's one search. It is made by a macro, from anything that can be indexed, so that C
 * code (u32, u64, u128 arrays), CUDA kernels (registers, shared or global memory, strided) and the
 * tests all run the same text. `less(x, y)` compares two elements.
 */
#pragma once

#include "src/code.h"

/*
 * Defines: uint64_t name(const type *a, uint64_t n_a, const type *b, uint64_t n_b, uint64_t rank)
 */
#define CO_RANK_DEFINE(name, type, less)                                                           \
	static inline GSORT_HD uint64_t name(const type *a, uint64_t n_a, const type *b,           \
					     uint64_t n_b, uint64_t rank)                          \
	{                                                                                          \
		uint64_t lo = rank > n_b ? rank - n_b : 0;                                         \
		uint64_t hi = rank < n_a ? rank : n_a;                                             \
                                                                                                   \
		while (lo < hi) {                                                                  \
			const uint64_t i = lo + (hi - lo) / 2;                                     \
                                                                                                   \
			if (less(b[rank - 1 - i], a[i]))                                           \
				hi = i;                                                            \
			else                                                                       \
				lo = i + 1;                                                        \
		}                                                                                  \
		return lo;                                                                         \
	}

#define CO_RANK_LESS(x, y) ((x) < (y))

CO_RANK_DEFINE(co_rank_4, uint32_t, CO_RANK_LESS)
CO_RANK_DEFINE(co_rank_8, uint64_t, CO_RANK_LESS)
CO_RANK_DEFINE(co_rank_16, uint128_t, CO_RANK_LESS)
