/*
 * merge2_avx512 - the two-way merge of u64 elements, eight at a time
 *
 * Keep a sorted vector v of the eight largest elements seen so far that are not yet out. Load
 * the next eight of the list whose next element is smaller: whatever is not loaded by now is no
 * smaller than the largest of these... than the head that lost, so the eight smallest of the
 * sixteen in hand are final. A bitonic network parts them: v reversed against the new vector
 * gives the lower and the upper eight, three more rounds sort both (Inoue, Moriyama, Komatsu
 * and Nakatani, "AA-sort", 2007; Chhugani et al., 2008). Elements are codes, so it is no loss
 * that the network is not stable.
 *
 * A round is a min, a max, and two shuffles that line up the next pairs from *both* halves, so
 * that no lane idles. All of these use one port on Intel: sixteen per step is what bounds the
 * merge, 0.5 ns per element, if two independent parts of the merge (cut by co-rank) overlap;
 * one alone waits for its own results, 0.9 ns. A third part gains nothing.
 *
 * Ends: past its end a list is read as the largest value. Such padding may come out before a
 * real element of that value, but then one cannot be told from the other: n outputs are
 * written, and they are right. Reads past the end are masked, not made.
 */
#include "src/cpu/merge2.h"

#include <immintrin.h>
#include <string.h>

#include "kernels/co_rank.h"

#define AVX512 __attribute__((target("avx512f,avx512vl")))
#define AVX512_INLINE AVX512 __attribute__((always_inline)) static inline

enum { N_LANES = 8 };

/* What is left of one part of the merge. */
struct part {
	const uint64_t *a, *a_end;
	const uint64_t *b, *b_end;
	uint64_t *out, *out_end;
	__m512i held; /* the eight that are in hand, descending */
};

/*
 * The sixteen elements of `held` (descending) and `next` (ascending): the lower eight,
 * ascending, are returned, the upper eight, descending, stay in held.
 */
AVX512_INLINE __m512i exchange(__m512i *held, __m512i next)
{
	const __m512i pair_lo = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13);
	const __m512i pair_hi = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
	const __m512i lower = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
	const __m512i upper_descending = _mm512_setr_epi64(15, 7, 14, 6, 13, 5, 12, 4);
	__m512i x = _mm512_min_epu64(*held, next); /* the lower eight */
	__m512i y = _mm512_max_epu64(*held, next);
	__m512i u, v;

	/* Lanes 4 apart: x0..3 y0..3 against x4..7 y4..7. */
	u = _mm512_shuffle_i64x2(x, y, 0x44);
	v = _mm512_shuffle_i64x2(x, y, 0xee);
	x = _mm512_min_epu64(u, v);
	y = _mm512_max_epu64(u, v);
	/* Lanes 2 apart. */
	u = _mm512_permutex2var_epi64(x, pair_lo, y);
	v = _mm512_permutex2var_epi64(x, pair_hi, y);
	x = _mm512_min_epu64(u, v);
	y = _mm512_max_epu64(u, v);
	/* Neighbours. */
	u = _mm512_unpacklo_epi64(x, y);
	v = _mm512_unpackhi_epi64(x, y);
	x = _mm512_min_epu64(u, v);
	y = _mm512_max_epu64(u, v);
	*held = _mm512_permutex2var_epi64(x, upper_descending, y);
	return _mm512_permutex2var_epi64(x, lower, y);
}

AVX512_INLINE __mmask8 first_lanes(uint64_t n)
{
	return n < N_LANES ? (__mmask8)((1u << n) - 1) : (__mmask8)0xff;
}

/*
 * The next vector of the list with the smaller head; both must have eight. No branch: see
 * merge2.c.
 */
AVX512_INLINE __m512i next_full(struct part *part)
{
	const uintptr_t a = (uintptr_t)part->a;
	const uintptr_t b = (uintptr_t)part->b;
	const uintptr_t take_a = -(uintptr_t)(*part->a <= *part->b);
	const uintptr_t a_step = take_a & sizeof(__m512i);

	part->a = (const uint64_t *)(a + a_step);
	part->b = (const uint64_t *)(b + sizeof(__m512i) - a_step);
	return _mm512_loadu_si512((const void *)(b ^ ((a ^ b) & take_a)));
}

/* The same near the ends, padded. */
AVX512_INLINE __m512i next_padded(struct part *part)
{
	const uint64_t n_a = (uint64_t)(part->a_end - part->a);
	const uint64_t n_b = (uint64_t)(part->b_end - part->b);
	const bool take_a = n_b == 0 || (n_a > 0 && *part->a <= *part->b);
	const uint64_t *from = take_a ? part->a : part->b;
	const uint64_t n_left = take_a ? n_a : n_b;
	const uint64_t n = n_left < N_LANES ? n_left : N_LANES;

	part->a += take_a ? n : 0;
	part->b += take_a ? 0 : n;
	return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), first_lanes(n), from);
}

AVX512_INLINE __m512i reversed(__m512i v)
{
	return _mm512_permutexvar_epi64(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), v);
}

AVX512_INLINE void step_full(struct part *part)
{
	_mm512_storeu_si512(part->out, exchange(&part->held, next_full(part)));
	part->out += N_LANES;
}

AVX512_INLINE bool is_full(const struct part *part)
{
	return (part->a_end - part->a >= N_LANES) & (part->b_end - part->b >= N_LANES);
}

/* From the first full step that can be made to the last output. */
AVX512 static void finish(struct part part)
{
	while (is_full(&part))
		step_full(&part);
	while (part.out < part.out_end) {
		const uint64_t n_left = (uint64_t)(part.out_end - part.out);
		const __m512i lower = exchange(&part.held, next_padded(&part));

		_mm512_mask_storeu_epi64(part.out, first_lanes(n_left), lower);
		part.out += n_left < N_LANES ? n_left : N_LANES;
	}
}

AVX512_INLINE struct part start(const uint64_t *a, uint64_t n_a, const uint64_t *b, uint64_t n_b,
				uint64_t *out)
{
	struct part part = { .a = a, .a_end = a + n_a, .b = b, .b_end = b + n_b,
			     .out = out, .out_end = out + n_a + n_b };

	part.held = reversed(next_padded(&part));
	return part;
}

AVX512 void merge2_8_avx512(const void *a_elements, uint64_t n_a, const void *b_elements,
			    uint64_t n_b, void *out_elements)
{
	const uint64_t *a = a_elements;
	const uint64_t *b = b_elements;
	uint64_t *out = out_elements;
	const uint64_t middle = (n_a + n_b) / 2;
	const uint64_t a_middle = co_rank_8(a, n_a, b, n_b, middle);
	const uint64_t b_middle = middle - a_middle;
	struct part part0 = start(a, a_middle, b, b_middle, out);
	struct part part1 = start(a + a_middle, n_a - a_middle, b + b_middle, n_b - b_middle,
				  out + middle);

	while (is_full(&part0) && is_full(&part1)) {
		step_full(&part0);
		step_full(&part1);
	}
	finish(part0);
	finish(part1);
}
