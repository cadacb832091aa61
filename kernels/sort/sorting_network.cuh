/*
 * sorting_network - sort and merge the elements that one thread holds in registers
 *
 * Registers cannot be indexed by a variable, so a thread must do the same operations on its
 * elements for all data: a network of compare-exchange steps that is laid out at compile time. For
 * 32-bit values a step is one minimum and one maximum.
 *
 * The sort is Batcher's odd-even merge sort (Knuth vol. 3, 5.3.4) for any number of elements. Wires
 * past the end would carry infinity, and steps that touch them are omitted. 31 elements take 186
 * steps.
 *
 * The merge is a bitonic merge of elements that first ascend and then descend. If their number is
 * no power of two, virtual smaller elements precede the ascending part. These would not move, so
 * steps that touch them are omitted. 31 elements take 75 steps.
 */
#pragma once

#include "kernels/device.cuh"

__device__ __forceinline__ void compare_exchange(uint32_t &a, uint32_t &b)
{
	const uint32_t low = min(a, b);

	b = max(a, b);
	a = low;
}

template <class V> __device__ __forceinline__ void compare_exchange(V &a, V &b)
{
	const bool swap = b < a;
	const V low = swap ? b : a;

	b = swap ? a : b;
	a = low;
}

/* Steps of the odd-even merge sort between wires DISTANCE apart, within blocks of 2 * BLOCK. */
template <unsigned N, unsigned BLOCK, unsigned DISTANCE, class V>
__device__ __forceinline__ void odd_even_steps(V (&v)[N])
{
#pragma unroll
	for (unsigned i = 0; i + DISTANCE < N; i++) {
		/* At even multiples of the distance; below the full distance at odd ones. */
		const bool starts = i / DISTANCE % 2 == (DISTANCE < BLOCK);

		if (starts && i / (2 * BLOCK) == (i + DISTANCE) / (2 * BLOCK))
			compare_exchange(v[i], v[i + DISTANCE]);
	}
	if constexpr (DISTANCE > 1)
		odd_even_steps<N, BLOCK, DISTANCE / 2>(v);
}

template <unsigned N, unsigned BLOCK = 1, class V>
__device__ __forceinline__ void network_sort(V (&v)[N])
{
	if constexpr (BLOCK < N) {
		odd_even_steps<N, BLOCK, BLOCK>(v);
		network_sort<N, BLOCK * 2>(v);
	}
}

static constexpr GSORT_HD unsigned power_of_two_from(unsigned n)
{
	unsigned power = 1;

	while (power < n)
		power *= 2;
	return power;
}

template <unsigned N, unsigned DISTANCE, class V>
__device__ __forceinline__ void bitonic_steps(V (&v)[N])
{
	constexpr unsigned n_virtual = power_of_two_from(N) - N;

	if constexpr (DISTANCE > 0) {
#pragma unroll
		for (unsigned i = 0; i + DISTANCE < N; i++)
			if (((i + n_virtual) & DISTANCE) == 0)
				compare_exchange(v[i], v[i + DISTANCE]);
		bitonic_steps<N, DISTANCE / 2>(v);
	}
}

/* Sort v, which first ascends and then descends (either part may be empty). */
template <unsigned N, class V> __device__ __forceinline__ void network_merge(V (&v)[N])
{
	bitonic_steps<N, power_of_two_from(N) / 2>(v);
}
