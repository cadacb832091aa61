/*
 * co_rank - find where an output position cuts the inputs of a merge; host and device
 *
 *	a  [ . . . . | . . ]		co_rank(a, n_a, b, n_b, 6) = 4: of the first six outputs,
 *	b  [ . . | . . . . ]		four come from a and 6 - 4 = 2 from b.
 *
 * The stable merge of a and b (equal elements of a before those of b) is a path through the n_a x
 * n_b grid of comparisons. Output position `rank` is a diagonal of the grid, and the co-rank is
 * where the path crosses it. A binary search along the diagonal finds it in log2(min(n_a, n_b,
 * rank)) steps, so any part of a merge can be done independently (Siebert and Traff, "Perfectly
 * load-balanced, optimal, stable, parallel merge", 2013; Green, Odeh and Birk, "Merge Path", 2014).
 *
 * Invariant: a[i] for i < lo is among the first `rank` outputs, and a[i] for i >= hi is not.
 *
 * If b is a single element (a pivot) and the question is how many elements of a are before it, the
 * path crosses the grid at b[0], and the same search runs along one row: co_rank_pivot().
 *
 * The search is a macro over anything that can be indexed, so that C code (u32, u64, u128 arrays),
 * CUDA kernels (registers, shared or global memory, reversed) and tests share it. `less(x, y)`
 * compares two elements.
 */
#pragma once

#include "src/record/key_encoding.h"

/*
 * Set lo and hi to the first i in [lo, hi) for which `after` holds, or to hi if there is none. If
 * `after` holds for an i, it must hold for all greater ones.
 */
#define CO_RANK_NARROW(index, lo, hi, i, after)                                                    \
	while ((lo) < (hi)) {                                                                      \
		const index i = (lo) + ((hi) - (lo)) / 2;                                          \
                                                                                                   \
		if (after)                                                                         \
			(hi) = i;                                                                  \
		else                                                                               \
			(lo) = i + 1;                                                              \
	}

#define CO_RANK_BODY(index, a, n_a, b, n_b, rank, less)                                            \
	index lo = (rank) > (n_b) ? (rank) - (n_b) : 0;                                            \
	index hi = (rank) < (n_a) ? (rank) : (n_a);                                                \
                                                                                                   \
	CO_RANK_NARROW(index, lo, hi, i, less((b)[(rank)-1 - i], (a)[i]))                          \
	return lo;

/*
 * Defines: uint64_t name(const type *a, uint64_t n_a, const type *b, uint64_t n_b, uint64_t rank)
 */
#define CO_RANK_DEFINE(name, type, less)                                                           \
	static inline GSORT_HD uint64_t name(const type *a, uint64_t n_a, const type *b,           \
					     uint64_t n_b, uint64_t rank)                          \
	{                                                                                          \
		CO_RANK_BODY(uint64_t, a, n_a, b, n_b, rank, less)                                 \
	}

#define CO_RANK_LESS(x, y) ((x) < (y))

CO_RANK_DEFINE(co_rank_4, uint32_t, CO_RANK_LESS)
CO_RANK_DEFINE(co_rank_8, uint64_t, CO_RANK_LESS)
CO_RANK_DEFINE(co_rank_16, uint128_t, CO_RANK_LESS)

#ifdef __cplusplus
/* The same search for device code: A and B are pointers or views. */
template <class Index, class A, class B, class Less>
GSORT_HD inline Index co_rank(A a, Index n_a, B b, Index n_b, Index rank, Less less)
{
	CO_RANK_BODY(Index, a, n_a, b, n_b, rank, less)
}

/*
 * Return the number of elements of sorted a that are before `pivot`; it must be in [lo, hi].
 * a_first: elements equal to the pivot are before it, because a is the earlier list.
 */
template <class Index, class A, class Key, class Less>
GSORT_HD inline Index co_rank_pivot(A a, Index lo, Index hi, Key pivot, bool a_first, Less less)
{
	CO_RANK_NARROW(Index, lo, hi, i, a_first ? less(pivot, a[i]) : !less(a[i], pivot))
	return lo;
}
#endif
