/*
 * abbreviated_keys - sort 32-bit tags instead of wide keys
 *
 * Keys of 8 or 16 bytes stay in shared memory while the tile is sorted by 4-byte tags:
 *
 *	tag = | (key - minimum key of the tile) >> shift | position in the tile |
 *	        32 - POSITION_BITS bits                    POSITION_BITS bits
 *
 * `shift` is the smallest value with which the differences fit. All merge rounds then move and
 * compare 32-bit integers, whatever the key. At the end each key is fetched once, by the position
 * in its tag. The position also makes tags distinct, and keeps equal keys in their order.
 *
 * Tags do not order keys that differ only in the bits that `shift` drops. So at the end, neighbours
 * whose tags agree in the upper part ("tied" tags) are ordered by their keys. If keys are spread
 * evenly over their range, ties are rare: n * n / 2^(33 - POSITION_BITS) pairs, 60 in a tile of
 * 8000. If many keys are close together (a tile with one huge key and many small ones), there are
 * too many ties, and the tile is sorted again by its keys. If all keys are close together (all
 * equal, few distinct), the shift is 0, and tied keys are equal.
 */
#pragma once

#include "kernels/sort/tile_merge.cuh"

static constexpr GSORT_HD unsigned bits_for(unsigned n)
{
	unsigned bits = 0;

	while (n >> bits)
		bits++;
	return bits;
}

/* The maximum length of a group of tied tags, which one thread sorts by insertion. */
static constexpr uint32_t MAX_TIED_TAGS = 12;

/* POSITIONS: number of positions in a tile. The tag of all ones is greater than all others. */
template <class K, unsigned POSITIONS> struct tag_format {
	static constexpr unsigned position_bits = bits_for(POSITIONS);
	static constexpr uint32_t position_mask = (1u << position_bits) - 1;

	K min_key;
	unsigned shift;

	__device__ tag_format(K lowest_key, K highest_key) : min_key(lowest_key), shift(0)
	{
		const unsigned bits = bit_length(highest_key - lowest_key);

		if (bits > 32 - position_bits)
			shift = bits - (32 - position_bits);
	}

	__device__ uint32_t tag(K key, uint32_t position) const
	{
		return (uint32_t)((key - min_key) >> shift) << position_bits | position;
	}
};

/* The sorted tags of a tile, and their elements. */
template <class E, unsigned POSITIONS> struct tied_tags {
	static constexpr uint32_t position_mask = tag_format<key_type<E>, POSITIONS>::position_mask;

	const E *elements;
	uint32_t *tags;
	uint32_t n; /* tags that stand for keys */

	static __device__ bool tags_tie(uint32_t x, uint32_t y)
	{
		return (x ^ y) <= position_mask;
	}

	__device__ key_type<E> key(uint32_t tag) const
	{
		return key_of(elements[tag & position_mask]);
	}

	__device__ void sort_by_key(uint32_t first, uint32_t end) const
	{
		for (uint32_t i = first + 1; i < end; i++) {
			const uint32_t moving = tags[i];
			uint32_t to = i;

			for (; to > first && key(moving) < key(tags[to - 1]); to--)
				tags[to] = tags[to - 1];
			tags[to] = moving;
		}
	}
};

/*
 * Find tied neighbours i and i + 1, counted from this thread's first tag: bit i is set for a tie.
 */
template <class E, unsigned POSITIONS, unsigned ITEMS>
__device__ __forceinline__ uint64_t find_tied_tags(const tied_tags<E, POSITIONS> &tile,
						   const uint32_t (&v)[ITEMS])
{
	const uint32_t next = (threadIdx.x + 1) * ITEMS;
	uint64_t tie_bits = 0;

#pragma unroll
	for (unsigned i = 0; i + 1 < ITEMS; i++)
		tie_bits |= tile.tags_tie(v[i], v[i + 1]) ? (uint64_t)1 << i : 0;
	if (next < tile.n && tile.tags_tie(v[ITEMS - 1], tile.tags[next]))
		tie_bits |= (uint64_t)1 << (ITEMS - 1);
	if (next > tile.n) {
		const uint32_t n_mine = tile.n > next - ITEMS ? tile.n - (next - ITEMS) : 0;

		tie_bits &= n_mine ? ((uint64_t)1 << (n_mine - 1)) - 1 : 0;
	}
	return tie_bits;
}

__device__ __forceinline__ unsigned count_low_ones(uint64_t bits)
{
	return (unsigned)__ffsll((long long)~bits) - 1;
}

/*
 * Order tied tags by their keys. v: this thread's tags, as in shared memory. n_leading: in shared
 * memory, one per thread. Returns to all threads whether the tags now order the keys; false: there
 * are too many ties.
 */
template <class E, unsigned POSITIONS, unsigned ITEMS>
__device__ __forceinline__ bool sort_tied_tags(const tied_tags<E, POSITIONS> &tile,
					       uint16_t *n_leading, const uint32_t (&v)[ITEMS])
{
	const uint32_t begin = threadIdx.x * ITEMS;
	const uint64_t tie_bits = find_tied_tags(tile, v);
	const bool continues_group = begin > 0 && begin < tile.n &&
				     tile.tags_tie(tile.tags[begin - 1], v[0]);
	bool has_too_many = false, disorder = false;

	n_leading[threadIdx.x] = (uint16_t)count_low_ones(tie_bits);
	__syncthreads();

	/* The thread where a group of ties begins orders it; no other thread touches it. */
	for (uint64_t group_starts = tie_bits & ~(tie_bits << 1 | continues_group); group_starts;
	     group_starts &= group_starts - 1) {
		const unsigned first = (unsigned)__ffsll((long long)group_starts) - 1;
		unsigned end = first + 1 + count_low_ones(tie_bits >> first);

		if (end == ITEMS + 1)
			end += n_leading[threadIdx.x + 1];
		if (end - first > MAX_TIED_TAGS || end > 2 * ITEMS)
			has_too_many = true;
		else
			tile.sort_by_key(begin + first, begin + end);
	}
	if (!__syncthreads_or(has_too_many))
		return true;

	/* A large group is allowed if it is already in order, for example all equal. */
	for (uint64_t bits = tie_bits; bits; bits &= bits - 1) {
		const uint32_t i = begin + (unsigned)__ffsll((long long)bits) - 1;

		disorder |= tile.key(tile.tags[i + 1]) < tile.key(tile.tags[i]);
	}
	return !__syncthreads_or(disorder);
}
