/*
 * element - elements of the sort and the merge, and their keys
 *
 * An element is an unsigned integer of 4, 8 or 16 bytes that is its own key, or a pair of 16 bytes:
 * the upper 8 are the key, the lower 8 a payload. Equal integers are indistinguishable. Equal pairs
 * are not, and keep their order.
 *
 * Elements of items and lines are integers that hold a prefix of the key and, in the low bits, the
 * number of the item or line.
 */
#pragma once

#include "kernels/device.cuh"

struct pair_element {
	uint128_t bits; /* key << 64 | payload */

	__device__ bool operator<(const pair_element &other) const
	{
		return (uint64_t)(bits >> 64) < (uint64_t)(other.bits >> 64);
	}
};

template <class E> static constexpr bool is_pair = false;
template <> constexpr bool is_pair<pair_element> = true;

template <class E> __device__ __forceinline__ E key_of(E element)
{
	return element;
}

__device__ __forceinline__ uint64_t key_of(pair_element element)
{
	return (uint64_t)(element.bits >> 64);
}

template <class E> using key_type = decltype(key_of(E()));

/* The greatest value, with which tiles are padded. */
template <class V> struct max_sentinel {
	static constexpr V value = ~(V)0;
};

template <> struct max_sentinel<pair_element> {
	static constexpr pair_element value = { ~(uint128_t)0 };
};

/* Replace the payload of a pair by its position while it is sorted, and fetch it again later. */
__device__ __forceinline__ uint128_t with_position(pair_element element, uint32_t position)
{
	return element.bits >> 64 << 64 | position;
}

__device__ __forceinline__ uint32_t position_of(uint128_t key_and_position)
{
	return (uint32_t)key_and_position;
}

__device__ __forceinline__ uint128_t with_payload(uint128_t key_and_position, pair_element element)
{
	return key_and_position >> 64 << 64 | (uint64_t)element.bits;
}

static constexpr unsigned NUMBER_BITS = 32;

/* Return the number in an element of an item or a line. */
template <class E> __device__ __forceinline__ uint32_t number_of(E element)
{
	return (uint32_t)element;
}
