/*
 * rows - items from anywhere in device memory, staged in shared memory
 *
 * An item is read once, whole, and then looked at several times: for its digest, its key, its
 * neighbour's comparison, and to be written. A block stages a tile of items, each in a slot of its
 * own, as the aligned units of 16 bytes that hold it:
 *
 *	memory	|....AAAA|AAAAAAAA|AA......|		units of 16 bytes
 *	slot	 ....AAAA AAAAAAAA AA......		A is at slot + skew, as it was in memory
 *
 * so that every copy is one of 16 bytes whatever the address, neighbouring threads copy
 * neighbouring units, and all of a tile is under way at once, without passing through registers.
 * Slots are an odd number of units apart, for the banks.
 *
 * Items too long for that ("wide") are left where they are: a warp goes along each.
 */
#pragma once

#include "kernels/items.cuh"
#include "kernels/stream.cuh"

static constexpr unsigned UNIT = 16;

static_assert(GSORT_ROWS_NBYTES % UNIT == 0, "whole units");

/* Rows that a block stages at most. */
static constexpr unsigned ROWS_MAX = streaming::n_threads;

struct row_shape {
	uint32_t nbytes;      /* of an item */
	uint32_t slot_nbytes; /* of its slot */
	uint32_t n;           /* rows of a tile */
	uint32_t n_loaders;   /* lanes that load one row together */
	uint32_t n_hashers;   /* and that hash it */
	bool wide;            /* not staged at all */
};

/* The greatest power of two, up to a warp, that is at most `most`. */
static inline uint32_t lanes_up_to(uint32_t most)
{
	uint32_t n = 1;

	while (n < WARP && 2 * n <= most)
		n *= 2;
	return n;
}

/* n_more: rows of the shared memory that are not of the tile. */
static inline struct row_shape shape_rows(const struct kernel_items *items, uint32_t n_more)
{
	const uint32_t most_skew = UNIT - items->alignment;
	struct row_shape shape = {};

	shape.nbytes = items->item_nbytes;
	shape.slot_nbytes = (uint32_t)round_up(shape.nbytes + most_skew, UNIT);
	shape.n_loaders = lanes_up_to(2 * (shape.slot_nbytes / UNIT) - 1);
	if (shape.slot_nbytes / UNIT % 2 == 0)
		shape.slot_nbytes += UNIT;
	shape.wide = shape.slot_nbytes > GSORT_ROWS_NBYTES / 8;
	if (shape.wide)
		return shape;
	shape.n = GSORT_ROWS_NBYTES / shape.slot_nbytes;
	if (shape.n > ROWS_MAX)
		shape.n = ROWS_MAX;
	shape.n -= n_more;
	shape.n_hashers = lanes_up_to(streaming::n_threads / shape.n);
	return shape;
}

/* All threads: load rows [begin, end), which are at from[], into their slots; then a barrier. */
__device__ __forceinline__ void load_rows(unsigned char *slots, const unsigned char *const *from,
					  const row_shape &shape, uint32_t begin, uint32_t end)
{
	const uint32_t first_byte = threadIdx.x % shape.n_loaders * UNIT;

	for (uint32_t row = begin + threadIdx.x / shape.n_loaders; row < end;
	     row += streaming::n_threads / shape.n_loaders) {
		const uint32_t skew = (uint32_t)((uintptr_t)from[row] % UNIT);
		const unsigned char *units = from[row] - skew;
		unsigned char *slot = slots + row * shape.slot_nbytes;

		for (uint32_t at = first_byte; at < skew + shape.nbytes;
		     at += shape.n_loaders * UNIT)
			copy_async(slot + at, units + at);
	}
	copies_wait();
	__syncthreads();
}

/* Where an item that is loaded into a slot is, in bytes from the first slot on. */
__device__ __forceinline__ uint16_t place_in_slots(const unsigned char *item,
						   const row_shape &shape, uint32_t row)
{
	return (uint16_t)(row * shape.slot_nbytes + (uint32_t)((uintptr_t)item % UNIT));
}

static_assert(GSORT_ROWS_NBYTES < 1u << 16, "places in slots are 16 bits");

/* Eight bytes; WORDS: at a multiple of 4. */
template <bool WORDS> __device__ __forceinline__ uint64_t load_8(const unsigned char *bytes)
{
	const uint32_t *words = (const uint32_t *)(const void *)bytes;

	return WORDS ? (uint64_t)words[1] << 32 | words[0] : bytes_load(bytes, 8);
}

/*
 * The hash of a body that n_lanes neighbouring lanes look at, of which this is one; all of them
 * get it. All lanes of the warp call this.
 */
template <bool WORDS>
__device__ __forceinline__ uint64_t hash_body(const unsigned char *body, uint32_t nbytes,
					      uint32_t lane, uint32_t n_lanes)
{
	const uint32_t n_pairs = nbytes / 16, tail = 16 * n_pairs;
	const uint64_t step = 32 * n_lanes; /* of 2 * at + 1, of which the masks are multiples */
	uint64_t mask_low = digest_mask_low(16 * lane), mask_high = digest_mask_high(16 * lane);
	uint64_t sum = 0;

	if (nbytes <= 8)
		return digest_word8(bytes_load(body, nbytes));
	if (nbytes <= 16)
		return digest_word16(load_8<WORDS>(body), bytes_load(body + 8, nbytes - 8));
	for (uint32_t i = lane; i < n_pairs; i += n_lanes) {
		sum += digest_fold(load_8<WORDS>(body + 16 * i) ^ mask_low,
				   load_8<WORDS>(body + 16 * i + 8) ^ mask_high);
		mask_low += step * DIGEST_SEED;
		mask_high += step * DIGEST_HIGH_SEED;
	}
	if (tail < nbytes && lane == n_pairs % n_lanes) {
		const uint32_t n = nbytes - tail;

		sum += digest_pair(bytes_load(body + tail, n < 8 ? n : 8),
				   n <= 8 ? 0 : bytes_load(body + tail + 8, n - 8), tail);
	}
	return digest_mix64(DIGEST_SEED + lanes_sum(sum, n_lanes));
}
