/*
 * tile_kernel - what the tile sort and the merge pass share
 *
 * The geometry of tiles for each element size, and their shared memory. Elements of 4 bytes are
 * sorted directly; wider ones by tags (abbreviated_keys.cuh), and directly only if tags cannot
 * order them.
 */
#pragma once

#include "kernels/sort/abbreviated_keys.cuh"
#include "kernels/tuning.h"

template <unsigned THREADS, unsigned THREAD_ITEMS, unsigned BLOCKS> struct tile_shape {
	static constexpr unsigned n_threads = THREADS;
	static constexpr unsigned items = THREAD_ITEMS;
	static constexpr unsigned n_blocks = BLOCKS; /* per multiprocessor */
	static constexpr unsigned n = THREADS * THREAD_ITEMS;

	static_assert(THREADS % WARP == 0 && (THREADS & (THREADS - 1)) == 0,
		      "whole warps, 2^n threads");
	static_assert(n < 1u << 16, "cuts are 16 bits");
};

template <unsigned NBYTES, shared_limit> struct tile_in;
template <shared_limit ANY> struct tile_in<4, ANY> : tile_shape<GSORT_TILE_4> {
};
template <shared_limit ANY> struct tile_in<8, ANY> : tile_shape<GSORT_TILE_8> {
};
template <> struct tile_in<16, SHARED_LIMIT_99K> : tile_shape<GSORT_TILE_16> {
};
template <> struct tile_in<16, SHARED_LIMIT_64K> : tile_shape<GSORT_TILE_16_IN_64K> {
};

/*
 * The tile of a merge pass in the code that is being compiled. The host passes the limit of the
 * code that it launches.
 */
template <class E, shared_limit IN = SHARED_LIMIT> using tile_of = tile_in<sizeof(E), IN>;

/* The tile of the tile sort, which for some elements is longer than that of the merge pass. */
template <unsigned NBYTES, shared_limit IN> struct sort_tile_in : tile_in<NBYTES, IN> {
};
template <> struct sort_tile_in<4, SHARED_LIMIT_99K> : tile_shape<GSORT_SORT_TILE_4> {
};
template <class E, shared_limit IN = SHARED_LIMIT>
using sort_tile_of = sort_tile_in<sizeof(E), IN>;

/* Whether merge rounds move tags instead of elements of type E. */
template <class E> static constexpr bool is_tagged = sizeof(E) > 4;

template <class E, class SHAPE> struct tile_memory {
	typedef SHAPE shape;

	E elements[shape::n];
	uint32_t tags[is_tagged<E> ? shape::n : 1];
	uint16_t cuts[shape::n_threads];
};

/* Write the n sorted elements of a tile with all threads, in coalesced order. */
template <class E, class SHAPE>
__device__ __forceinline__ void write_elements(const tile_memory<E, SHAPE> &memory, E *to,
					       uint32_t n)
{
#pragma unroll
	for (unsigned i = 0; i < SHAPE::items; i++) {
		const uint32_t at = i * SHAPE::n_threads + threadIdx.x;

		if (at < n)
			to[at] = memory.elements[at];
	}
}

/* Write the n elements of a tile in the order of their tags. */
template <class E, class SHAPE>
__device__ __forceinline__ void write_by_tags(const tile_memory<E, SHAPE> &memory, E *to,
					      uint32_t n)
{
	constexpr uint32_t position_mask = tag_format<key_type<E>, SHAPE::n>::position_mask;

#pragma unroll
	for (unsigned i = 0; i < SHAPE::items; i++) {
		const uint32_t at = i * SHAPE::n_threads + threadIdx.x;

		if (at < n)
			to[at] = memory.elements[memory.tags[at] & position_mask];
	}
}
