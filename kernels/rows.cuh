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
 * so that every load is one of 16 bytes whatever the address, neighbouring threads load
 * neighbouring units, and several loads of a thread are under way at once. Slots are an odd number
 * of units apart, for the banks.
 *
 * Items too long for that ("wide") are left where they are: a warp goes along each.
 */
#pragma once

#include "kernels/items.cuh"
#include "kernels/stream.cuh"

static constexpr unsigned UNIT = 16;

static_assert(GSORT_ROWS_NBYTES % UNIT == 0, "whole units");

struct row_shape {
	uint32_t nbytes;      /* of an item */
	uint32_t slot_nbytes; /* of its slot */
	uint32_t n;           /* rows of a tile */
	uint32_t n_lanes;     /* that hash one row together */
	bool wide;            /* not staged at all */
};

/* n_more: rows of the shared memory that are not of the tile. */
static inline struct row_shape shape_rows(const struct kernel_items *items, uint32_t n_more)
{
	const uint32_t most_skew = UNIT - items->alignment;
	struct row_shape shape = {};

	shape.nbytes = items->item_nbytes;
	shape.slot_nbytes = (uint32_t)round_up(shape.nbytes + most_skew, UNIT);
	if (shape.slot_nbytes / UNIT % 2 == 0)
		shape.slot_nbytes += UNIT;
	shape.wide = shape.slot_nbytes > GSORT_ROWS_NBYTES / 8;
	if (shape.wide)
		return shape;
	shape.n = GSORT_ROWS_NBYTES / shape.slot_nbytes - n_more;
	if (shape.n > streaming::n)
		shape.n = streaming::n;
	shape.n_lanes = 1;
	while (shape.n_lanes < WARP && shape.n * shape.n_lanes * 2 <= streaming::n_threads)
		shape.n_lanes *= 2;
	return shape;
}

/* Where row i is. */
__device__ __forceinline__ const unsigned char *row_at(const unsigned char *slots,
						       const unsigned char *const *from,
						       const row_shape &shape, uint32_t i)
{
	return slots + i * shape.slot_nbytes + (uintptr_t)from[i] % UNIT;
}

/* All threads: load rows [begin, end) into their slots. */
__device__ __forceinline__ void load_rows(unsigned char *slots, const unsigned char *const *from,
					  const row_shape &shape, uint32_t begin, uint32_t end)
{
	constexpr unsigned BATCH = 4;
	const uint32_t n_units = shape.slot_nbytes / UNIT, n = (end - begin) * n_units;
	uint32_t row = begin + threadIdx.x / n_units, unit = threadIdx.x % n_units;

	for (uint32_t first = 0; first < n; first += BATCH * streaming::n_threads) {
		uint128_t loaded[BATCH] = {};
		uint32_t at[BATCH];

#pragma unroll
		for (unsigned i = 0; i < BATCH; i++) {
			at[i] = UINT32_MAX;
			if (row < end) {
				const unsigned char *item = from[row];
				const uint32_t skew = (uint32_t)((uintptr_t)item % UNIT);

				if (unit * UNIT < skew + shape.nbytes) {
					at[i] = row * n_units + unit;
					loaded[i] = ((const uint128_t *)(const void *)(item -
										       skew))[unit];
				}
			}
			row += streaming::n_threads / n_units;
			unit += streaming::n_threads % n_units;
			if (unit >= n_units) {
				unit -= n_units;
				row++;
			}
		}
#pragma unroll
		for (unsigned i = 0; i < BATCH; i++)
			if (at[i] != UINT32_MAX)
				((uint128_t *)(void *)slots)[at[i]] = loaded[i];
	}
}

/*
 * The hash of a body that n_lanes neighbouring lanes look at, of which this is one; all of them
 * get it. All lanes of the warp call this.
 */
__device__ __forceinline__ uint64_t hash_body(const unsigned char *body, uint32_t nbytes,
					      uint32_t lane, uint32_t n_lanes)
{
	uint64_t sum = 0;

	if (nbytes <= 8)
		return digest_word8(load_bytes(body, nbytes));
	if (nbytes <= 16)
		return digest_word16(load_bytes(body, 8), load_bytes(body + 8, nbytes - 8));
	for (uint32_t at = 16 * lane; at < nbytes; at += 16 * n_lanes) {
		const uint32_t rest = nbytes - at;
		const uint64_t low = load_bytes(body + at, rest < 8 ? rest : 8);
		const uint64_t high =
			rest <= 8 ? 0 : load_bytes(body + at + 8, rest < 16 ? rest - 8 : 8);

		sum += digest_pair(low, high, at);
	}
	return digest_mix64(DIGEST_SEED + lanes_sum(sum, n_lanes));
}
