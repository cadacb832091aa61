/*
 * sort_avx512.c - sort u64 elements with AVX-512
 *
 * Three steps, each where it is cheapest:
 *
 *	quicksort    until a piece and its scratch fit the cache; 0.3 ns per element and level
 *	buckets      of 50 elements on average, by value: one counting and one scattering pass
 *	networks     for 64 or 128 elements in registers
 *
 * Buckets replace ten levels of quicksort, but depend on the data. A piece whose elements are not
 * spread evenly between its minimum and maximum continues with quicksort; after one or two levels
 * its parts, each with its own minimum and maximum, try buckets again. Networks are the advantage
 * over Debian's vqsort, which takes 4.0 ns per element for 128 elements; a network takes 1.6 ns.
 *
 * A median of 64 samples makes bad pivots improbable, and equal elements are separated (see
 * quicksort()). If the depth still grows too large, heapsort finishes in O(n log n).
 */
#include "src/device/cpu/cpu_sort.h"

#include <stdbool.h>
#include <string.h>

#include "src/base/cancellation.h"
#include "src/device/cpu/x86/network_avx512.h"

/*
 * --- partition ---
 *
 * Eight elements at a time: comparing them with the pivot gives eight bits. A table maps these to
 * the permutation that moves the small elements to the front. The permuted vector is written to
 * both ends, each of which keeps its part (Blacher, Giesen, Sanders and Wassenberg, "Vectorized and
 * performance-portable quicksort", 2022). A level takes 0.3 ns per element, in memory and in the
 * cache.
 */

enum {
	/* Elements read before any is written. Four vectors instead of eight cost 0.1 ns more. */
	BATCH_N = 8 * N_LANES,
	/* Prefetch distance. Without prefetching, a level outside the cache takes 0.8 ns. */
	PARTITION_PREFETCH_N = 8 * BATCH_N,
	SMALL_N = 1024, /* up to this many are partitioned through a buffer on the stack */
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

/* Which elements go left: those not above the pivot, or below it, or not above it (16 bytes). */
enum partition_rule { NOT_ABOVE, BELOW, NOT_ABOVE_16 };

/*
 * Return the lanes that go left. An element of 16 bytes has two lanes, the low half first. Its high
 * half decides, unless that equals the pivot's.
 */
AVX512_INLINE __mmask8 left_lanes(__m512i v, __m512i pivot, enum partition_rule rule)
{
	const unsigned below = _mm512_cmplt_epu64_mask(v, pivot);
	const unsigned not_above = _mm512_cmple_epu64_mask(v, pivot);
	const unsigned high = (below | (not_above & not_above << 1)) & 0xaa;

	return (__mmask8)(rule == BELOW ? below : rule == NOT_ABOVE ? not_above : high | high >> 1);
}

/* Partition n <= SMALL_N elements; return how many went left. */
AVX512_INLINE uint64_t partition_small(uint64_t *elements, uint64_t n, __m512i pivot,
				       enum partition_rule rule)
{
	uint64_t rights[SMALL_N + N_LANES];
	uint64_t n_left = 0, n_right = 0;

	for (uint64_t i = 0; i < n; i += N_LANES) {
		const __mmask8 valid = lanes_of(n - i, 0);
		const __m512i v = _mm512_maskz_loadu_epi64(valid, elements + i);
		const __mmask8 left = left_lanes(v, pivot, rule) & valid;
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

/* The part of the array that is not read yet, and where elements are written at either end. */
struct partition_state {
	uint64_t *write_left, *read_left, *read_right, *write_right;
};

/* Write a vector to both ends. Each end keeps its part; the rest falls into free space. */
AVX512_INLINE void write_partitioned(struct partition_state *state, __m512i v, __m512i pivot,
				     enum partition_rule rule)
{
	const __m512i shifts = _mm512_setr_epi64(0, 4, 8, 12, 16, 20, 24, 28);
	const __mmask8 left = left_lanes(v, pivot, rule);
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
AVX512_INLINE uint64_t partition_large(uint64_t *elements, uint64_t n, __m512i pivot,
				       enum partition_rule rule)
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
			write_partitioned(&state, batch[i], pivot, rule);
	}
	n_unread = (uint64_t)(state.read_right - state.read_left);
	memcpy(saved + 2 * BATCH_N, state.read_left, n_unread * sizeof *saved);
	memcpy(state.write_left, saved, (2 * BATCH_N + n_unread) * sizeof *saved);
	return (uint64_t)(state.write_left - elements) +
	       partition_small(state.write_left, 2 * BATCH_N + n_unread, pivot, rule);
}

/* Move the elements of the left part to the front of n elements. Returns their number. */
AVX512 static uint64_t partition_8(uint64_t *elements, uint64_t n, uint64_t pivot,
				   enum partition_rule rule)
{
	const __m512i pivots = _mm512_set1_epi64((long long)pivot);

	if (rule == BELOW)
		return n <= SMALL_N ? partition_small(elements, n, pivots, BELOW) :
				      partition_large(elements, n, pivots, BELOW);
	return n <= SMALL_N ? partition_small(elements, n, pivots, NOT_ABOVE) :
			      partition_large(elements, n, pivots, NOT_ABOVE);
}

AVX512 uint64_t partition_16_avx512(void *elements, uint64_t n, uint128_t pivot)
{
	const long long high = (long long)(pivot >> 64), low = (long long)pivot;
	const __m512i pivots = _mm512_setr_epi64(low, high, low, high, low, high, low, high);

	return (2 * n <= SMALL_N ? partition_small(elements, 2 * n, pivots, NOT_ABOVE_16) :
				   partition_large(elements, 2 * n, pivots, NOT_ABOVE_16)) /
	       2;
}

/* --- sort --- */

enum {
	NETWORK_N = 128,   /* up to this many are sorted in registers */
	BUCKET_N = 50,     /* average; few buckets then have more than 64 */
	PIECE_N = 1 << 15, /* 256 KiB, 655 buckets: the first-level cache has about as many lines */
	MIN_PIECE_N = 1024,  /* smaller pieces use quicksort */
	GOOD_PIVOT_N = 4096, /* from here on, a pivot from 64 samples pays */
};

/* Sort n <= NETWORK_N elements from `from` to `to`, which may be equal. */
AVX512 static void sort_network(const uint64_t *from, uint64_t n, uint64_t *to)
{
	__m512i rows[16];

	load_rows(rows, from, n);
	sort_64(rows);
	if (n > 64) {
		load_rows(rows + 8, from + 64, n - 64);
		sort_64(rows + 8);
		merge_rows(rows, 16);
		store_rows(to + 64, n - 64, rows + 8);
	}
	store_rows(to, n, rows);
}

static uint64_t median_of_3(uint64_t a, uint64_t b, uint64_t c)
{
	const uint64_t min = a < b ? a : b;
	const uint64_t max = a < b ? b : a;

	return c < min ? min : c > max ? max : c;
}

/*
 * Return an element near the median of n > NETWORK_N: the median of 64 samples, or, if that would
 * cost more than it saves, a median of three medians of eight.
 */
AVX512 static uint64_t choose_pivot(const uint64_t *elements, uint64_t n)
{
	const uint64_t step = (n - N_LANES) / 7;
	uint64_t medians[N_LANES];
	__m512i rows[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		rows[i] = _mm512_loadu_si512(elements + i * step);
	if (n >= GOOD_PIVOT_N) {
		sort_64(rows);
		_mm512_storeu_si512(medians, rows[4]);
		return medians[0];
	}
	sort_columns(rows);
	_mm512_storeu_si512(medians, rows[4]);
	return median_of_3(medians[0], medians[3], medians[6]);
}

static void sift_down(uint64_t *elements, uint64_t n, uint64_t at)
{
	const uint64_t element = elements[at];

	for (uint64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
		if (child + 1 < n && elements[child + 1] > elements[child])
			child++;
		if (elements[child] <= element)
			break;
		elements[at] = elements[child];
		at = child;
	}
	elements[at] = element;
}

static void heapsort(uint64_t *elements, uint64_t n)
{
	for (uint64_t i = n / 2; i-- > 0;)
		sift_down(elements, n, i);
	for (uint64_t i = n; i-- > 1;) {
		const uint64_t largest = elements[0];

		elements[0] = elements[i];
		elements[i] = largest;
		sift_down(elements, i, 0);
	}
}

/*
 * A monotonous map of elements to buckets. It multiplies instead of shifting, to allow any number
 * of buckets.
 */
struct bucket_map {
	uint64_t min;
	uint64_t scale;
	uint64_t n;
};

static inline uint64_t bucket_of(const struct bucket_map *buckets, uint64_t element)
{
	return (uint64_t)((uint128_t)(element - buckets->min) * buckets->scale >> 64);
}

AVX512 static struct bucket_map choose_buckets(const uint64_t *elements, uint64_t n)
{
	uint64_t min = elements[0], max = elements[0];
	struct bucket_map buckets = { .n = n / BUCKET_N };

	for (uint64_t i = 1; i < n; i++) {
		min = elements[i] < min ? elements[i] : min;
		max = elements[i] > max ? elements[i] : max;
	}
	buckets.min = min;
	/*
	 * The maximum maps to the last bucket. If there are fewer values than buckets, each value
	 * has its own.
	 */
	if (max - min < buckets.n)
		buckets.scale = UINT64_MAX;
	else
		buckets.scale =
			(uint64_t)(((uint128_t)buckets.n << 64) / ((uint128_t)(max - min) + 1));
	return buckets;
}

/*
 * Distribute n elements, at most PIECE_N, to buckets in the scratch, and sort each by a network
 * back into place. Returns false and changes nothing if a bucket would be far too large.
 */
AVX512 static bool sort_by_buckets(uint64_t *elements, uint64_t n, uint64_t *scratch)
{
	uint32_t ends[PIECE_N / BUCKET_N] = { 0 };
	const struct bucket_map buckets = choose_buckets(elements, n);
	uint64_t start = 0;

	for (uint64_t i = 0; i < n; i++)
		ends[bucket_of(&buckets, elements[i])]++;
	for (uint64_t i = 0; i < buckets.n; i++) {
		const uint32_t count = ends[i];

		if (count > NETWORK_N)
			return false;
		ends[i] = (uint32_t)start;
		start += count;
	}
	for (uint64_t i = 0; i < n; i++)
		scratch[ends[bucket_of(&buckets, elements[i])]++] = elements[i];
	start = 0;
	for (uint64_t i = 0; i < buckets.n; i++) {
		sort_network(scratch + start, ends[i] - start, elements + start);
		start = ends[i];
	}
	return true;
}

/* What may still be tried for a range; the values decrease with each level. */
struct sort_limits {
	unsigned depth;   /* levels of quicksort, before heapsort */
	unsigned n_tries; /* attempts to sort by buckets */
};

/*
 * Sort n elements. If no element is above the pivot, the pivot is the maximum: elements equal to it
 * are moved to the end, where they are in order. So a value that fills half of the range is done
 * after two levels.
 */
static void quicksort(const struct sort_elements_op *op, uint64_t *elements, uint64_t n,
		      struct sort_limits limits)
{
	while (n > NETWORK_N) {
		uint64_t pivot, n_left;

		if (n > PIECE_N && cancellation_is_requested(op->cancellation))
			return;
		if (n <= PIECE_N && n >= MIN_PIECE_N && limits.n_tries > 0) {
			if (sort_by_buckets(elements, n, op->scratch))
				return;
			limits.n_tries--;
		}
		pivot = choose_pivot(elements, n);
		n_left = partition_8(elements, n, pivot, NOT_ABOVE);
		if (n_left == n) {
			n = partition_8(elements, n, pivot, BELOW);
			continue;
		}
		if (limits.depth-- == 0) {
			heapsort(elements, n);
			return;
		}
		quicksort(op, elements + n_left, n - n_left, limits);
		n = n_left;
	}
	sort_network(elements, n, elements);
}

uint64_t sort_8_avx512_scratch_n(uint64_t n)
{
	return n < PIECE_N ? n : PIECE_N;
}

void sort_8_avx512_to_depth(const struct sort_elements_op *op, unsigned depth)
{
	quicksort(op, op->elements, op->n, (struct sort_limits){ .depth = depth, .n_tries = 3 });
}

void sort_8_avx512(const struct sort_elements_op *op)
{
	unsigned depth = 8;

	for (uint64_t left = op->n; left > 0; left /= 2)
		depth += 2;
	sort_8_avx512_to_depth(op, depth);
}
