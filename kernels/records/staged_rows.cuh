/*
 * staged_rows - stage items from any address in shared memory
 *
 * An item is read once, whole, and then used several times: for its digest, its key, the comparison
 * with its neighbour, and the output. A block stages a tile of items, each in its own slot, as the
 * aligned units of 16 bytes that contain it:
 *
 *	memory	|....AAAA|AAAAAAAA|AA......|		units of 16 bytes
 *	slot	 ....AAAA AAAAAAAA AA......		A is at slot + skew, aligned as in memory
 *
 * So every copy has 16 bytes, whatever the alignment. Neighbouring threads copy neighbouring units,
 * and all copies of a tile are in flight at once, without registers. Slots are an odd number of
 * units apart to avoid bank conflicts.
 *
 * Items that are too long for this ("wide") are read in place, one warp per item.
 */
#pragma once

#include "kernels/records/items.cuh"
#include "kernels/stream_pass.cuh"

static constexpr unsigned UNIT = 16;

template <unsigned THREADS, unsigned SLOTS_NBYTES, unsigned BLOCKS> struct row_block {
	static constexpr unsigned n_threads = THREADS;
	static constexpr unsigned n_warps = THREADS / WARP;
	static constexpr unsigned n_rows = THREADS;  /* staged at most */
	static constexpr unsigned n_blocks = BLOCKS; /* per multiprocessor */
	static constexpr unsigned slots_nbytes = SLOTS_NBYTES;
	static constexpr unsigned wide_nbytes =
		SLOTS_NBYTES / 8; /* items with slots of this size or more are wide */

	static_assert(THREADS % WARP == 0 && THREADS <= stream_pass::n_threads, "for block_sum()");
	static_assert(SLOTS_NBYTES % UNIT == 0, "whole units");
	static_assert(SLOTS_NBYTES < 1u << 16, "offsets in slots have 16 bits");
};
typedef row_block<GSORT_ROWS> rows;

/* Enough blocks to keep any GPU busy; each processes many tiles. */
static constexpr unsigned ROW_BLOCKS = GSORT_MULTIPROCESSORS * rows::n_blocks;

static inline unsigned row_blocks(uint64_t n, uint64_t n_at_once)
{
	const uint64_t n_blocks = divide_up(n, n_at_once);

	return (unsigned)(n_blocks < ROW_BLOCKS ? n_blocks : ROW_BLOCKS);
}

/* Prefer shared memory to the L1 cache, which does not help here, so that more blocks fit. */
template <class Kernel> static int prefer_shared_memory(Kernel kernel)
{
	return (int)cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
					 100);
}

struct row_shape {
	uint32_t nbytes;      /* of an item */
	uint32_t slot_nbytes; /* of its slot */
	uint32_t n;           /* rows of a tile */
	uint32_t n_loaders;   /* lanes that load one row together */
	uint32_t n_loaded;    /* rows that a block loads at once */
	uint32_t n_hashers;   /* lanes that hash one row */
	uint32_t n_hashed;    /* rows that a block hashes at once */
	bool wide;            /* not staged at all */
};

/* Return the greatest power of two that is at most max_lanes and at most a warp. */
static inline uint32_t power_of_two_lanes(uint32_t max_lanes)
{
	uint32_t n = 1;

	while (n < WARP && 2 * n <= max_lanes)
		n *= 2;
	return n;
}

/* Return the greatest number of aligned units that an item occupies. */
static inline uint32_t row_units(const struct kernel_items *items)
{
	return (uint32_t)divide_up(items->item_nbytes + UNIT - items->alignment, UNIT);
}

static inline uint32_t slot_nbytes(uint32_t n_units)
{
	return (n_units | 1) * UNIT;
}

/* Return the lanes that load one row: one per unit, rounded up, at most a warp. */
static inline uint32_t row_loaders(uint32_t n_units)
{
	return power_of_two_lanes(2 * n_units - 1);
}

/* Compute the shape of a tile. n_more: rows in shared memory in addition to those of the tile. */
static inline struct row_shape shape_rows(const struct kernel_items *items, uint32_t n_more)
{
	const uint32_t n_units = row_units(items);
	struct row_shape shape = {};

	shape.nbytes = items->item_nbytes;
	shape.slot_nbytes = slot_nbytes(n_units);
	shape.n_loaders = row_loaders(n_units);
	shape.n_loaded = rows::n_threads / shape.n_loaders;
	shape.wide = shape.slot_nbytes > rows::wide_nbytes;
	if (shape.wide)
		return shape;
	shape.n = rows::slots_nbytes / shape.slot_nbytes;
	if (shape.n > rows::n_rows)
		shape.n = rows::n_rows;
	shape.n -= n_more;
	shape.n_hashers = power_of_two_lanes(rows::n_threads / shape.n);
	shape.n_hashed = rows::n_threads / shape.n_hashers;
	return shape;
}

/* Load rows [begin, end) at from[] into their slots, with all threads. Ends with a barrier. */
__device__ __forceinline__ void load_rows(unsigned char *slots, const unsigned char *const *from,
					  const row_shape &shape, uint32_t begin, uint32_t end)
{
	const uint32_t first_byte = threadIdx.x % shape.n_loaders * UNIT;
	uint32_t row = begin + threadIdx.x / shape.n_loaders;
	unsigned char *slot = slots + row * shape.slot_nbytes;

	for (; row < end; row += shape.n_loaded) {
		const unsigned char *item = from[row];
		const uint32_t skew = (uint32_t)((uintptr_t)item % UNIT);

		for (uint32_t at = first_byte; at < skew + shape.nbytes;
		     at += shape.n_loaders * UNIT)
			copy_async(slot + at, item - skew + at);
		slot += shape.n_loaded * shape.slot_nbytes;
	}
	copies_wait();
	__syncthreads();
}

/* Return the offset of a loaded item from the first slot, in bytes. */
__device__ __forceinline__ uint16_t slot_offset(const unsigned char *item, const row_shape &shape,
						uint32_t row)
{
	return (uint16_t)(row * shape.slot_nbytes + (uint32_t)((uintptr_t)item % UNIT));
}

/* Load eight bytes; WORDS: aligned to 4. */
template <bool WORDS> __device__ __forceinline__ uint64_t load_8(const unsigned char *bytes)
{
	const uint32_t *words = (const uint32_t *)(const void *)bytes;

	return WORDS ? (uint64_t)words[1] << 32 | words[0] : load_bytes(bytes, 8);
}

/*
 * Hashes bodies like digest_record(). n_lanes neighbouring lanes hash a body together, each every
 * n_lanes-th pair of words, whose masks grow in equal steps. All lanes of the warp must call
 * hash(), and all n_lanes get the result.
 */
template <bool WORDS> struct body_hash {
	uint32_t nbytes, lane, n_lanes;
	uint64_t mask_low, mask_high, step_low, step_high;

	__device__ body_hash(uint32_t body_nbytes, uint32_t n)
	    : nbytes(body_nbytes), lane(threadIdx.x % n), n_lanes(n),
	      mask_low(digest_mask_low(16 * lane)), mask_high(digest_mask_high(16 * lane)),
	      step_low(digest_mask_low(16 * n) - digest_mask_low(0)),
	      step_high(digest_mask_high(16 * n) - digest_mask_high(0))
	{
	}

	__device__ uint64_t hash(const unsigned char *body) const
	{
		const uint32_t tail = nbytes / 16 * 16;
		uint64_t low = mask_low, high = mask_high, sum = 0;

		if (nbytes <= 8)
			return digest_word8(load_bytes(body, nbytes));
		if (nbytes <= 16)
			return digest_word16(load_8<WORDS>(body), load_bytes(body + 8, nbytes - 8));
		for (uint32_t at = 16 * lane; at < tail; at += 16 * n_lanes) {
			sum += digest_fold(load_8<WORDS>(body + at) ^ low,
					   load_8<WORDS>(body + at + 8) ^ high);
			low += step_low;
			high += step_high;
		}
		if (tail < nbytes && lane == tail / 16 % n_lanes) {
			const uint32_t n = nbytes - tail;

			sum += digest_fold(load_bytes(body + tail, n < 8 ? n : 8) ^ low,
					   (n <= 8 ? 0 : load_bytes(body + tail + 8, n - 8)) ^
						   high);
		}
		return digest_mix64(DIGEST_SEED + lanes_sum(sum, n_lanes));
	}
};
