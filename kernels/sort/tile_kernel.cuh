/*
 * tile_kernel - what the tile sort and the merge pass share
 *
 * The geometry of a tile for each element size, and its shared memory. Elements of 4 bytes are
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
 * The tile of the code that is being compiled; the host passes the limit of the code it launches.
 */
template <class E, shared_limit IN = SHARED_LIMIT> using tile_of = tile_in<sizeof(E), IN>;

/* Whether merge rounds move tags instead of elements of type E. */
template <class E> static constexpr bool is_tagged = sizeof(E) > 4;

template <class E, shared_limit IN = SHARED_LIMIT> struct tile_memory {
	typedef tile_of<E, IN> shape;

	E elements[shape::n];
	uint32_t tags[is_tagged<E> ? shape::n : 1];
	uint16_t cuts[shape::n_threads];
};

/* Write the n sorted elements of a tile with all threads, in coalesced order. */
template <class E>
__device__ __forceinline__ void write_elements(const tile_memory<E> &memory, E *to, uint32_t n)
{
#pragma unroll
	for (unsigned i = 0; i < tile_of<E>::items; i++) {
		const uint32_t at = i * tile_of<E>::n_threads + threadIdx.x;

		if (at < n)
			to[at] = memory.elements[at];
	}
}

/* Write the n elements of a tile in the order of their tags. */
template <class E>
__device__ __forceinline__ void write_by_tags(const tile_memory<E> &memory, E *to, uint32_t n)
{
	constexpr uint32_t position_mask = tag_format<key_type<E>, tile_of<E>::n>::position_mask;

#pragma unroll
	for (unsigned i = 0; i < tile_of<E>::items; i++) {
		const uint32_t at = i * tile_of<E>::n_threads + threadIdx.x;

		if (at < n)
			to[at] = memory.elements[memory.tags[at] & position_mask];
	}
}
