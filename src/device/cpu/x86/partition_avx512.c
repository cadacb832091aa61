/*
 * partition_avx512 - partition step of quicksort for u64 elements
 *
 * Eight elements at a time: comparing them with the pivot gives eight bits. A table maps these to
 * the permutation that moves the small elements to the front. The permuted vector is written to
 * both ends, each of which keeps its part (Blacher, Giesen, Sanders and Wassenberg, "Vectorized and
 * performance-portable quicksort", 2022). 0.3 ns per element and level, in memory as in the cache.
 */
#include "src/device/cpu/x86/partition_avx512.h"

#include <string.h>

#include "src/device/cpu/x86/network_avx512.h"

enum {
	BATCH_N = 8 * N_LANES, /* read before any of them is written; four are 0.1 ns slower */
	PARTITION_PREFETCH_N =
		8 * BATCH_N, /* prefetched; otherwise a level outside the cache takes 0.8 ns */
	SMALL_N = 1024,      /* partitioned through a buffer on the stack */
};

/*
 * partitions[bits] is the permutation, in nibbles, that moves the lanes whose bit is set to the
 * front and keeps both groups in order.
 */
#define BIT(bits, lane) ((bits) >> (lane)&1u)
#define N_BELOW(bits, lane)                                                                        \
	((0 < (lane)) * BIT(bits, 0) + (1 < (lane)) * BIT(bits, 1) + (2 < (lane)) * BIT(bits, 2) + \
	 (3 < (lane)) * BIT(bits, 3) + (4 < (lane)) * BIT(bits, 4) + (5 < (lane)) * BIT(bits, 5) + \
	 (6 < (lane)) * BIT(bits, 6) + (7 < (lane)) * BIT(bits, 7))
#define PLACE(bits, lane)                                                                          \
	(BIT(bits, lane) ? N_BELOW(bits, lane) : N_BELOW(bits, 8) + (lane)-N_BELOW(bits, lane))
#define NIBBLE(bits, lane) ((uint64_t)(lane) << 4 * (PLACE(bits, lane)))
#define PARTITION(bits)                                                                            \
	(NIBBLE(bits, 0u) | NIBBLE(bits, 1u) | NIBBLE(bits, 2u) | NIBBLE(bits, 3u) |               \
	 NIBBLE(bits, 4u) | NIBBLE(bits, 5u) | NIBBLE(bits, 6u) | NIBBLE(bits, 7u))
#define PARTITIONS_4(bits)                                                                         \
	PARTITION(bits), PARTITION((bits) + 1u), PARTITION((bits) + 2u), PARTITION((bits) + 3u)
#define PARTITIONS_16(bits)                                                                        \
	PARTITIONS_4(bits), PARTITIONS_4((bits) + 4u), PARTITIONS_4((bits) + 8u),                  \
		PARTITIONS_4((bits) + 12u)
#define PARTITIONS_64(bits)                                                                        \
	PARTITIONS_16(bits), PARTITIONS_16((bits) + 16u), PARTITIONS_16((bits) + 32u),             \
		PARTITIONS_16((bits) + 48u)

static const uint64_t partitions[256] = {
	PARTITIONS_64(0u),
	PARTITIONS_64(64u),
	PARTITIONS_64(128u),
	PARTITIONS_64(192u),
};

/* Return the lanes that go left: elements not above the pivot, or (strict) below it. */
AVX512_INLINE __mmask8 left_lanes(__m512i v, __m512i pivot, bool strict)
{
	return strict ? _mm512_cmplt_epu64_mask(v, pivot) : _mm512_cmple_epu64_mask(v, pivot);
}

/* Partition n <= SMALL_N elements; return how many went left. */
AVX512_INLINE uint64_t partition_small(uint64_t *elements, uint64_t n, __m512i pivot, bool strict)
{
	uint64_t rights[SMALL_N + N_LANES];
	uint64_t n_left = 0, n_right = 0;

	for (uint64_t i = 0; i < n; i += N_LANES) {
		const __mmask8 valid = lanes_of(n - i, 0);
		const __m512i v = _mm512_maskz_loadu_epi64(valid, elements + i);
		const __mmask8 left = left_lanes(v, pivot, strict) & valid;
		const __mmask8 right = (__mmask8)~left & valid;

		/* This never writes past the loaded elements, because n_left <= i. */
		_mm512_mask_storeu_epi64(elements + n_left, valid,
					 _mm512_maskz_compress_epi64(left, v));
		_mm512_storeu_si512(rights + n_right, _mm512_maskz_compress_epi64(right, v));
		n_left += (uint64_t)__builtin_popcount(left);
		n_right += (uint64_t)__builtin_popcount(right);
	}
	memcpy(elements + n_left, rights, n_right * sizeof *elements);
	return n_left;
}

/* The unread part of the array, and where the next elements of either side are written. */
struct partition_state {
	uint64_t *write_left, *read_left, *read_right, *write_right;
};

/* Write a vector to both ends. Each end keeps its part; the rest falls into free space. */
AVX512_INLINE void write_partitioned(struct partition_state *state, __m512i v, __m512i pivot,
				     bool strict)
{
	const __m512i shifts = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
	const __mmask8 left = left_lanes(v, pivot, strict);
	const __m512i nibbles = _mm512_set1_epi64((long long)partitions[left]);
	const __m512i parted = _mm512_permutexvar_epi64(_mm512_srlv_epi64(nibbles, shifts), v);
	const unsigned n_left = (unsigned)__builtin_popcount(left);

	_mm512_storeu_si512(state->write_left, parted);
	_mm512_storeu_si512(state->write_right - N_LANES, parted);
	state->write_left += n_left;
	state->write_right -= N_LANES - n_left;
}

/*
 * Partition n >= 2 * BATCH_N elements. The first and the last batch are saved, so that both ends
 * have free space, 2 * BATCH_N together:
 *
 *	lefts  |  free  |  not read yet  |  free  |  rights
 *	  write_left  read_left    read_right  write_right
 *
 * A batch is read from the side with less free space. After that both sides have at least BATCH_N,
 * because the other side had the larger part. This suffices even if the whole batch goes to one
 * side: vectors are written one after the other, and their excess is overwritten. The remaining
 * elements and the saved batches go into the gap, where they are partitioned separately.
 */
AVX512_INLINE uint64_t partition_large(uint64_t *elements, uint64_t n, __m512i pivot, bool strict)
{
	uint64_t saved[3 * BATCH_N];
	struct partition_state state = { elements, elements + BATCH_N, elements + n - BATCH_N,
					 elements + n };
	uint64_t n_unread;

	memcpy(saved, elements, BATCH_N * sizeof *saved);
	memcpy(saved + BATCH_N, elements + n - BATCH_N, BATCH_N * sizeof *saved);
	while (state.read_right - state.read_left >= BATCH_N) {
		const bool from_left = state.read_left - state.write_left <=
				       state.write_right - state.read_right;
		const uintptr_t mask = -(uintptr_t)from_left;
		const uintptr_t left = (uintptr_t)state.read_left;
		const uintptr_t right = (uintptr_t)(state.read_right - BATCH_N);
		const uint64_t *from = (const uint64_t *)(right ^ ((left ^ right) & mask));
		const int64_t ahead = from_left ? PARTITION_PREFETCH_N : -PARTITION_PREFETCH_N;
		__m512i batch[BATCH_N / N_LANES];

#pragma GCC unroll 8
		for (unsigned i = 0; i < BATCH_N / N_LANES; i++)
			batch[i] = _mm512_loadu_si512(from + i * N_LANES);
#pragma GCC unroll 8
		for (unsigned i = 0; i < BATCH_N / N_LANES; i++)
			__builtin_prefetch(from + i * N_LANES + ahead);
		state.read_left += BATCH_N & mask;
		state.read_right -= BATCH_N & ~mask;
#pragma GCC unroll 8
		for (unsigned i = 0; i < BATCH_N / N_LANES; i++)
			write_partitioned(&state, batch[i], pivot, strict);
	}
	n_unread = (uint64_t)(state.read_right - state.read_left);
	memcpy(saved + 2 * BATCH_N, state.read_left, n_unread * sizeof *saved);
	memcpy(state.write_left, saved, (2 * BATCH_N + n_unread) * sizeof *saved);
	return (uint64_t)(state.write_left - elements) +
	       partition_small(state.write_left, 2 * BATCH_N + n_unread, pivot, strict);
}

AVX512 uint64_t partition_avx512(uint64_t *elements, uint64_t n, uint64_t pivot, bool strict)
{
	const __m512i pivots = _mm512_set1_epi64((long long)pivot);

	if (strict)
		return n <= SMALL_N ? partition_small(elements, n, pivots, true) :
				      partition_large(elements, n, pivots, true);
	return n <= SMALL_N ? partition_small(elements, n, pivots, false) :
			      partition_large(elements, n, pivots, false);
}
