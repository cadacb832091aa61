/*
 * tie_flags - flags of equal neighbours in a sorted list, and their counts
 *
 * A warp processes segments of 1024 elements, 32 rows of 32, with one ballot per row. Bit i is set
 * if element i equals the previous one. Lane r then holds the word of row r, and all counts are
 * popcounts of words.
 *
 *	list    a a b c c c d		equal   0 1 0 0 1 1 0
 *	tied    1 1 0 1 1 1 0		(equal, or the next one is)
 *	heads   1 0 1 1 0 0 1
 *
 * One block adds up the counts of all segments, one per 1024 elements.
 */
#pragma once

#include "kernels/stream_pass.cuh"

static constexpr unsigned SEGMENT = WARP * WARP;

static inline GSORT_HD uint64_t n_segments_for(uint64_t n)
{
	return divide_up(n, SEGMENT);
}

/* Return the number of this warp's first segment. */
__device__ __forceinline__ uint64_t first_segment()
{
	return (uint64_t)blockIdx.x * stream_pass::n_warps + threadIdx.x / WARP;
}

/* Return the distance from a segment of this warp to its next one. */
__device__ __forceinline__ uint64_t segment_step()
{
	return (uint64_t)gridDim.x * stream_pass::n_warps;
}

/*
 * Return the word of this lane's row: bit j of row r is is_equal(element r * 32 + j of the
 * segment).
 */
template <class IsEqual>
__device__ __forceinline__ uint32_t ballot_rows(uint64_t base, uint64_t n, IsEqual is_equal)
{
	const unsigned lane = threadIdx.x % WARP;
	uint32_t word = 0;

	for (unsigned row = 0; row < WARP; row++) {
		const uint64_t i = base + row * WARP + lane;
		const unsigned votes = __ballot_sync(ALL_LANES, i < n && is_equal(i));

		word = lane == row ? votes : word;
	}
	return word;
}

/* Return a mask of the elements of a word that equal the previous or the next one. */
__device__ __forceinline__ uint32_t tied_mask(uint32_t word, bool first_of_next)
{
	const unsigned lane = threadIdx.x % WARP;
	const uint32_t next = lane_broadcast(word, (lane + 1) % WARP, WARP);
	const uint32_t after = lane == WARP - 1 ? first_of_next : next & 1;

	return word | word >> 1 | after << 31;
}

/* Return the mask of the elements [base, base + 32) that exist, of n. */
__device__ __forceinline__ uint32_t valid_mask(uint64_t base, uint64_t n)
{
	return base >= n ? 0 : n - base >= WARP ? ~0u : (1u << (n - base)) - 1;
}

struct scan_memory {
	uint64_t sums[stream_pass::n_warps];
};

/* Replace every sum by the total of the sums before it, in one block. *total: of all sums. */
static __global__ void __launch_bounds__(stream_pass::n_threads)
	scan_sums(uint64_t *sums, uint64_t n, uint64_t *total)
{
	scan_memory &memory = *shared_memory<scan_memory>();
	constexpr unsigned ITEMS = 8;
	const unsigned warp = threadIdx.x / WARP;
	uint64_t before = 0;

	for (uint64_t base = 0; base < n; base += ITEMS * stream_pass::n_threads) {
		const uint64_t first = base + ITEMS * threadIdx.x;
		uint64_t value[ITEMS], mine = 0, warp_before = 0, total_sum = 0;

		for (unsigned i = 0; i < ITEMS; i++) {
			value[i] = first + i < n ? sums[first + i] : 0;
			mine += value[i];
		}
		const uint64_t lanes_before = lanes_exclusive_sum(mine, WARP);

		__syncthreads();
		if (threadIdx.x % WARP == WARP - 1)
			memory.sums[warp] = lanes_before + mine;
		__syncthreads();
		for (unsigned i = 0; i < stream_pass::n_warps; i++) {
			warp_before += i < warp ? memory.sums[i] : 0;
			total_sum += memory.sums[i];
		}
		mine = before + warp_before + lanes_before;
		for (unsigned i = 0; i < ITEMS; i++) {
			if (first + i < n)
				sums[first + i] = mine;
			mine += value[i];
		}
		before += total_sum;
	}
	if (threadIdx.x == 0)
		*total = before;
}

static inline int launch_scan(uint64_t *sums, uint64_t n, uint64_t *total, CUstream_st *stream)
{
	LAUNCH(scan_sums, 1, stream_pass::n_threads, sizeof(scan_memory), stream, sums, n, total);
	return (int)cudaGetLastError();
}
