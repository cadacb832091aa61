/*
 * tile_merge - merge sorted segments in shared memory into one sorted tile
 *
 * The core of the sort, of each merge pass and of the k-way merge; only the sources of the segments
 * differ. A tile is N_THREADS * ITEMS values. Segments are merged in pairs, round after round:
 *
 *	[ a ascends -> | <- b descends ][ c ascends -> | <- d descends ]	before a round
 *	[ merge of a and b ascends  ->  |  <- merge of c and d descends ]	after it
 *
 * The second segment of each pair is stored in reverse. So the input of thread t, which makes
 * outputs [t * ITEMS, (t + 1) * ITEMS) of the round, is one ascending and one descending sequence
 * of ITEMS values in total: a bitonic sequence, which a network merges in registers. Unlike a
 * serial merge this has no chain of dependent loads, and for 32-bit values fewer instructions. The
 * sequences begin at the thread's co-rank and end at the co-rank of the next thread.
 *
 * Pairs begin at whole threads. Where the lengths do not fit, the gap between the two segments is
 * filled with max_sentinel, which is not below any value and moves to the end of the tile.
 *
 * A round reads and writes each value once. It is limited by shared memory banks (the lanes of a
 * warp read from data-dependent addresses), less by instructions; see docs/performance-log.md.
 */
#pragma once

#include "kernels/sort/element.cuh"
#include "kernels/sort/sorting_network.cuh"
#include "src/device/co_rank.h"

/* Positions [begin, begin + n) of a tile: n_a values that ascend, then a segment that descends. */
struct segment_pair {
	uint32_t begin, n_a, n;
	bool ascending; /* direction of the result */
};

/*
 * Return the co-rank of `rank` in a pair. b[rank - 1 - i], stored in reverse, is at n - rank + i,
 * so the search compares two sequences at the same index.
 */
template <class V>
__device__ __forceinline__ uint32_t pair_co_rank(const V *region, uint32_t n_a, uint32_t n,
						 uint32_t rank)
{
	const V *const mirrored = region + (n - rank);
	const uint32_t n_b = n - n_a;
	uint32_t lo = rank > n_b ? rank - n_b : 0;
	uint32_t hi = rank < n_a ? rank : n_a;

	CO_RANK_NARROW(uint32_t, lo, hi, i, mirrored[i] < region[i])
	return lo;
}

template <class V, unsigned ITEMS>
__device__ __forceinline__ void store_items(V *tile, uint32_t first, bool ascending,
					    const V (&v)[ITEMS])
{
	if (ascending) {
#pragma unroll
		for (unsigned i = 0; i < ITEMS; i++)
			tile[first + i] = v[i];
	} else {
#pragma unroll
		for (unsigned i = 0; i < ITEMS; i++)
			tile[first + ITEMS - 1 - i] = v[i];
	}
}

/*
 * Merge the pair that this thread's outputs belong to. All threads of the block call this. Also
 * leaves the thread's outputs in v. cuts: shared, one per thread.
 */
template <class V, unsigned ITEMS>
__device__ __forceinline__ void merge_pair(V *tile, uint16_t *cuts, segment_pair pair,
					   V (&v)[ITEMS])
{
	const uint32_t rank = threadIdx.x * ITEMS - pair.begin;
	const V *region = tile + pair.begin;
	const uint32_t cut = pair_co_rank(region, pair.n_a, pair.n, rank);
	uint32_t n_first, second;

	cuts[threadIdx.x] = (uint16_t)cut;
	__syncthreads();
	n_first = (rank + ITEMS == pair.n ? pair.n_a : cuts[threadIdx.x + 1]) - cut;
	second = pair.n - rank - ITEMS + cut;
#pragma unroll
	for (unsigned i = 0; i < ITEMS; i++)
		v[i] = region[(i < n_first ? cut : second) + i];
	network_merge(v);
	__syncthreads();
	store_items(tile, pair.begin + (pair.ascending ? rank : pair.n - rank - ITEMS),
		    pair.ascending, v);
	__syncthreads();
}

/*
 * Merge n_segments (a power of two), alternately ascending and descending, until one is left.
 * bounds[i]: the thread where segment i begins; bounds[n_segments]: the number of threads.
 * own_segment: the segment of this thread's outputs. Also leaves the thread's outputs in v.
 */
template <class V, unsigned ITEMS, class Bounds>
__device__ __forceinline__ void merge_segments(V *tile, uint16_t *cuts, Bounds bounds,
					       unsigned n_segments, unsigned own_segment,
					       V (&v)[ITEMS])
{
#pragma unroll 1
	for (unsigned level = 0; 1u << level < n_segments; level++) {
		const unsigned pair = own_segment >> (level + 1);
		const unsigned first = pair << (level + 1), second = first + (1u << level);
		const uint32_t begin = bounds[first] * ITEMS;
		const uint32_t end = bounds[second + (1u << level)] * ITEMS;

		merge_pair(tile, cuts,
			   segment_pair{ begin, bounds[second] * ITEMS - begin, end - begin,
					 pair % 2 == 0 },
			   v);
	}
}

/* Segments of one thread each. */
struct thread_bounds {
	__device__ uint32_t operator[](unsigned i) const
	{
		return i;
	}
};

/*
 * Sort a tile of which each thread holds any ITEMS values in v. On return v has the thread's
 * outputs.
 */
template <unsigned N_THREADS, class V, unsigned ITEMS>
__device__ __forceinline__ void sort_tile(V *tile, uint16_t *cuts, V (&v)[ITEMS])
{
	network_sort(v);
	store_items(tile, threadIdx.x * ITEMS, threadIdx.x % 2 == 0, v);
	__syncthreads();
	merge_segments(tile, cuts, thread_bounds(), N_THREADS, threadIdx.x, v);
}
