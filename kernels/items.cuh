/*
 * items - items in device memory, their keys, and bytes at any address
 *
 * Bytes that lie anywhere are loaded as the aligned words that hold them, and shifted: a load of 8
 * bytes is two or three loads of 4, not eight of 1. No word is touched that holds none of the
 * bytes.
 */
#pragma once

#include "kernels/co_rank.h"
#include "kernels/device.cuh"
#include "kernels/kernels.h"

static constexpr unsigned NUMBER_BITS = 32;

/* n <= 8 bytes at any address, the first one lowest. */
__device__ __forceinline__ uint64_t load_bytes(const unsigned char *bytes, uint32_t n)
{
	const unsigned skew = (unsigned)((uintptr_t)bytes % 4), end = skew + n;
	const uint32_t *words = (const uint32_t *)(const void *)(bytes - skew);
	uint64_t low = 0, high = 0, value;

	if (n == 0)
		return 0;
	low = words[0];
	if (end > 4)
		low |= (uint64_t)words[1] << 32;
	if (end > 8)
		high = words[2];
	value = skew ? low >> 8 * skew | high << (64 - 8 * skew) : low;
	return n < 8 ? value & (((uint64_t)1 << 8 * n) - 1) : value;
}

struct slice_firsts {
	const item_slice *slices;

	__device__ uint64_t operator[](uint32_t i) const
	{
		return slices[i].first;
	}
};

__device__ __forceinline__ const unsigned char *item_at(const kernel_items &items, uint64_t number)
{
	uint32_t slice;

	if (items.k == 1)
		return items.items + number * items.item_nbytes;
	slice = co_rank_pivot<uint32_t>(slice_firsts{ items.slices }, 0, items.k, number, true,
					less_than()) -
		1;
	return items.slices[slice].items + (number - items.slices[slice].first) * items.item_nbytes;
}

/* The number in an element. */
template <class E> __device__ __forceinline__ uint32_t number_of(E element)
{
	return (uint32_t)element;
}

/* The number in element i, of 8 or 16 bytes. */
__device__ __forceinline__ uint32_t number_at(const void *elements, uint32_t element_nbytes,
					      uint64_t i)
{
	return *(const uint32_t *)(const void *)((const char *)elements + i * element_nbytes);
}

/* The first bytes of an item's key, as many as an element has room for, over its number. */
template <class E>
__device__ __forceinline__ E make_element(const kernel_items &items, const unsigned char *item,
					  uint32_t number)
{
	if constexpr (sizeof(E) == 8) {
		return key_word(&items.keys, item, 0) >> NUMBER_BITS << NUMBER_BITS | number;
	} else {
		const E low = key_word(&items.keys, item, 8) >> NUMBER_BITS << NUMBER_BITS | number;

		return (E)key_word(&items.keys, item, 0) << 64 | low;
	}
}

/* Less than, equal to or greater than 0, as the key of a is to that of b, from byte `at` on. */
__device__ __forceinline__ int compare_items(const kernel_items &items, const unsigned char *a,
					     const unsigned char *b, uint32_t at)
{
	for (; at < items.keys.key_nbytes; at += 8) {
		const uint64_t x = key_word(&items.keys, a, at), y = key_word(&items.keys, b, at);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}
