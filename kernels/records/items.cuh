/*
 * items - items in device memory, and their keys
 */
#pragma once

#include "kernels/device.cuh"
#include "kernels/kernels.h"
#include "kernels/sort/element.cuh"
#include "src/device/co_rank.h"
#include "src/record/load_bytes.h"

struct slice_starts {
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
	slice = co_rank_pivot<uint32_t>(slice_starts{ items.slices }, 0, items.k, number, true,
					less_than()) -
		1;
	return items.slices[slice].items + (number - items.slices[slice].first) * items.item_nbytes;
}

/* Return the number in element i, of 8 or 16 bytes. */
__device__ __forceinline__ uint32_t number_at(const void *elements, uint32_t element_nbytes,
					      uint64_t i)
{
	return *(const uint32_t *)(const void *)((const char *)elements + i * element_nbytes);
}

/*
 * Return bytes [at, at + 8) of an item's key, as key_word() does. Most keys have one field, which
 * is passed in the kernel's arguments.
 */
__device__ __forceinline__ uint64_t item_key_word(const kernel_items &items,
						  const unsigned char *item, uint32_t at)
{
	const uint32_t n_left = items.first_field.nbytes - at;

	if (at >= items.first_field.nbytes || (n_left < 8 && items.keys.n > 1))
		return key_word(&items.keys, item, at);
	if (n_left >= 8)
		return key_field_load(&items.first_field, item, at, 8);
	return key_field_load(&items.first_field, item, at, n_left) << (64 - 8 * n_left);
}

/* Make an element: as many of the first bytes of the item's key as fit, and the number. */
template <class E>
__device__ __forceinline__ E make_element(const kernel_items &items, const unsigned char *item,
					  uint32_t number)
{
	if constexpr (sizeof(E) == 8) {
		return item_key_word(items, item, 0) >> NUMBER_BITS << NUMBER_BITS | number;
	} else {
		const E low = item_key_word(items, item, 8) >> NUMBER_BITS << NUMBER_BITS | number;

		return (E)item_key_word(items, item, 0) << 64 | low;
	}
}

/* Compare two keys from byte `at` on. Returns a value below, equal to or above 0. */
__device__ __forceinline__ int compare_items(const kernel_items &items, const unsigned char *a,
					     const unsigned char *b, uint32_t at)
{
	for (; at < items.keys.key_nbytes; at += 8) {
		const uint64_t x = item_key_word(items, a, at), y = item_key_word(items, b, at);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}
