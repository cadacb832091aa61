/*
 * network_avx512 - sorting networks in AVX-512 registers
 *
 * A register is a row of eight u64 elements. 64 elements are a matrix of 8 rows: sort the columns
 * (19 exchanges, no shuffles), transpose, then merge rows of 8 to 16, 32, 64 by bitonic networks
 * (Knuth, vol. 3, 5.3.4). On Intel min, max and all shuffles share one port, which limits all of
 * this: 1.2 ns per element for 64, 1.6 ns for 128.
 *
 * For u32 elements, sixteen per row, there are only the functions that merging needs (suffix _4);
 * the suffix _8 is u64. Everything is inlined into functions with the AVX512 attribute, with
 * constant numbers of rows.
 */
#pragma once

#include <immintrin.h>
#include <stdint.h>

#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,bmi2,popcnt")))
#define AVX512_INLINE AVX512 __attribute__((always_inline)) static inline

enum { N_LANES = 8 };

/* Return whether this machine has the instructions of the AVX512 attribute. */
static inline int avx512_is_supported(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("bmi2") &&
	       __builtin_cpu_supports("popcnt");
}

AVX512_INLINE void exchange_8(__m512i *a, __m512i *b)
{
	const __m512i min = _mm512_min_epu64(*a, *b);

	*b = _mm512_max_epu64(*a, *b);
	*a = min;
}

/* Sort every lane of rows[0..7]: the network of 19 exchanges (Knuth, vol. 3, 5.3.4). */
AVX512_INLINE void sort_columns(__m512i rows[8])
{
	static const unsigned char pairs[19][2] = {
		{ 0, 2 }, { 1, 3 }, { 4, 6 }, { 5, 7 }, { 0, 4 }, { 1, 5 }, { 2, 6 },
		{ 3, 7 }, { 0, 1 }, { 2, 3 }, { 4, 5 }, { 6, 7 }, { 2, 4 }, { 3, 5 },
		{ 1, 4 }, { 3, 6 }, { 1, 2 }, { 3, 4 }, { 5, 6 },
	};

#pragma GCC unroll 19
	for (unsigned i = 0; i < 19; i++)
		exchange_8(&rows[pairs[i][0]], &rows[pairs[i][1]]);
}

/* Transpose: element j of row i becomes element i of row j. */
AVX512_INLINE void transpose(__m512i rows[8])
{
	__m512i a[8], b[8];

#pragma GCC unroll 4
	for (unsigned i = 0; i < 8; i += 2) {
		a[i] = _mm512_unpacklo_epi64(rows[i], rows[i + 1]);
		a[i + 1] = _mm512_unpackhi_epi64(rows[i], rows[i + 1]);
	}
	/* a[i] has elements of two rows; b[i] has 128 bits of each of four rows. */
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		const unsigned j = i / 2 * 4 + i % 2;

		b[j] = _mm512_shuffle_i64x2(a[j], a[j + 2], 0x88);
		b[j + 2] = _mm512_shuffle_i64x2(a[j], a[j + 2], 0xdd);
	}
#pragma GCC unroll 4
	for (unsigned i = 0; i < 4; i++) {
		/* columns i and i + 4, or i + 2 and i + 6 */
		rows[i] = _mm512_shuffle_i64x2(b[i], b[i + 4], 0x88);
		rows[i + 4] = _mm512_shuffle_i64x2(b[i], b[i + 4], 0xdd);
	}
}

/*
 * Sort two bitonic vectors. The results are interleaved: a becomes a0 b0 a1 b1 a2 b2 a3 b3, and b
 * becomes a4 b4 a5 b5 a6 b6 a7 b7. Each round compares pairs of both vectors at once, so that no
 * lane is idle: two shuffles arrange lanes that are 4 (2, 1) apart in either vector.
 */
AVX512_INLINE void sort_bitonic_interleaved_8(__m512i *a, __m512i *b)
{
	const __m512i pair_lo = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
	const __m512i pair_hi = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
	__m512i x = _mm512_shuffle_i64x2(*a, *b, 0x44); /* a0..3 b0..3 */
	__m512i y = _mm512_shuffle_i64x2(*a, *b, 0xee); /* a4..7 b4..7 */
	__m512i u, v;

	exchange_8(&x, &y);
	u = _mm512_permutex2var_epi64(x, pair_lo, y);
	v = _mm512_permutex2var_epi64(x, pair_hi, y);
	exchange_8(&u, &v);
	*a = _mm512_unpacklo_epi64(u, v);
	*b = _mm512_unpackhi_epi64(u, v);
	exchange_8(a, b);
}

/* Extract the first (second) of two interleaved vectors, ascending (descending). */
AVX512_INLINE __m512i first_ascending_8(__m512i a, __m512i b)
{
	return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b);
}

AVX512_INLINE __m512i second_ascending_8(__m512i a, __m512i b)
{
	return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b);
}

AVX512_INLINE __m512i first_descending_8(__m512i a, __m512i b)
{
	return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(11, 3, 10, 2, 9, 1, 8, 0), b);
}

AVX512_INLINE __m512i second_descending_8(__m512i a, __m512i b)
{
	return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(15, 7, 14, 6, 13, 5, 12, 4), b);
}

AVX512_INLINE void sort_bitonic_rows(__m512i *a, __m512i *b)
{
	__m512i x = *a, y = *b;

	sort_bitonic_interleaved_8(&x, &y);
	*a = first_ascending_8(x, y);
	*b = second_ascending_8(x, y);
}

AVX512_INLINE __m512i reversed_8(__m512i v)
{
	return _mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), v);
}

/*
 * Merge rows[0..n/2) and rows[n/2..n), both ascending row by row. The first exchange is with the
 * mirror image, so that both halves are bitonic afterwards. The upper half is mirrored, which does
 * not matter for a bitonic sequence.
 */
AVX512_INLINE void merge_rows(__m512i *rows, unsigned n)
{
	__m512i mirrored[8];

#pragma GCC unroll 8
	for (unsigned i = 0; i < n / 2; i++)
		mirrored[i] = reversed_8(rows[n - 1 - i]);
#pragma GCC unroll 8
	for (unsigned i = 0; i < n / 2; i++) {
		rows[n / 2 + i] = _mm512_max_epu64(rows[i], mirrored[i]);
		rows[i] = _mm512_min_epu64(rows[i], mirrored[i]);
	}
#pragma GCC unroll 4
	for (unsigned distance = n / 4; distance > 0; distance /= 2)
#pragma GCC unroll 16
		for (unsigned i = 0; i < n; i++)
			if (!(i & distance))
				exchange_8(&rows[i], &rows[i + distance]);
#pragma GCC unroll 8
	for (unsigned i = 0; i < n; i += 2)
		sort_bitonic_rows(&rows[i], &rows[i + 1]);
}

AVX512_INLINE void sort_64(__m512i rows[8])
{
	sort_columns(rows);
	transpose(rows);
	merge_rows(rows, 2);
	merge_rows(rows + 2, 2);
	merge_rows(rows + 4, 2);
	merge_rows(rows + 6, 2);
	merge_rows(rows, 4);
	merge_rows(rows + 4, 4);
	merge_rows(rows, 8);
}

/* Return the lanes of `row` that hold some of n elements. */
AVX512_INLINE __mmask8 lanes_of(uint64_t n, unsigned row)
{
	const uint64_t before = (uint64_t)row * N_LANES;

	return n >= before + N_LANES ? (__mmask8)0xff :
	       n <= before           ? (__mmask8)0 :
				       (__mmask8)((1u << (n - before)) - 1);
}

/* Load n elements, padded with the largest value. */
AVX512_INLINE void load_rows(__m512i rows[8], const uint64_t *elements, uint64_t n)
{
#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		rows[i] = _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), lanes_of(n, i),
						  elements + i * N_LANES);
}

AVX512_INLINE void store_rows(uint64_t *elements, uint64_t n, const __m512i rows[8])
{
#pragma GCC unroll 8
	for (unsigned i = 0; i < 8; i++)
		_mm512_mask_storeu_epi64(elements + i * N_LANES, lanes_of(n, i), rows[i]);
}

/* ---- u32 ---- */

AVX512_INLINE void exchange_4(__m512i *a, __m512i *b)
{
	const __m512i min = _mm512_min_epu32(*a, *b);

	*b = _mm512_max_epu32(*a, *b);
	*a = min;
}

AVX512_INLINE __m512i reversed_4(__m512i v)
{
	return _mm512_permutexvar_epi32(
		_mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), v);
}

/*
 * Sort two bitonic vectors like sort_bitonic_interleaved_8(), in rounds for lanes that are 8, 4, 2
 * and 1 apart. The results are interleaved in another order, which the functions below undo.
 */
AVX512_INLINE void sort_bitonic_interleaved_4(__m512i *a, __m512i *b)
{
	const __m512i four_lo = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
	const __m512i four_hi = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
	__m512i x = _mm512_shuffle_i64x2(*a, *b, 0x44);
	__m512i y = _mm512_shuffle_i64x2(*a, *b, 0xee);
	__m512i u, v;

	exchange_4(&x, &y);
	u = _mm512_permutex2var_epi64(x, four_lo, y);
	v = _mm512_permutex2var_epi64(x, four_hi, y);
	exchange_4(&u, &v);
	x = _mm512_unpacklo_epi64(u, v);
	y = _mm512_unpackhi_epi64(u, v);
	exchange_4(&x, &y);
	u = _mm512_castps_si512(
		_mm512_shuffle_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), 0x88));
	v = _mm512_castps_si512(
		_mm512_shuffle_ps(_mm512_castsi512_ps(x), _mm512_castsi512_ps(y), 0xdd));
	exchange_4(&u, &v);
	*a = u;
	*b = v;
}

AVX512_INLINE __m512i first_ascending_4(__m512i a, __m512i b)
{
	const __m512i lanes =
		_mm512_setr_epi32(0, 16, 2, 18, 1, 17, 3, 19, 4, 20, 6, 22, 5, 21, 7, 23);

	return _mm512_permutex2var_epi32(a, lanes, b);
}

AVX512_INLINE __m512i second_ascending_4(__m512i a, __m512i b)
{
	const __m512i lanes =
		_mm512_setr_epi32(8, 24, 10, 26, 9, 25, 11, 27, 12, 28, 14, 30, 13, 29, 15, 31);

	return _mm512_permutex2var_epi32(a, lanes, b);
}

AVX512_INLINE __m512i first_descending_4(__m512i a, __m512i b)
{
	const __m512i lanes =
		_mm512_setr_epi32(23, 7, 21, 5, 22, 6, 20, 4, 19, 3, 17, 1, 18, 2, 16, 0);

	return _mm512_permutex2var_epi32(a, lanes, b);
}

AVX512_INLINE __m512i second_descending_4(__m512i a, __m512i b)
{
	const __m512i lanes =
		_mm512_setr_epi32(31, 15, 29, 13, 30, 14, 28, 12, 27, 11, 25, 9, 26, 10, 24, 8);

	return _mm512_permutex2var_epi32(a, lanes, b);
}
