/*
 * merge2_avx512 - the two-way merge of u64 elements, eight at a time
 *
 * Hold eight elements, the largest of what was loaded so far and is not out yet. Load the next
 * eight of the list whose next element is the smaller one: all that is not loaded then is at
 * least as large as the eight smallest of the sixteen in hand, so these are the next output. A
 * bitonic network tells them from the others: the held ones in descending order against the new
 * ones in ascending order gives the lower and the upper eight, three more rounds sort both
 * (Chhugani et al., "Efficient implementation of sorting on multi-core SIMD CPU architecture",
 * 2008). Elements are codes, so it is no loss that the network is not stable.
 *
 * A round is a min, a max, and two shuffles that line up the next pairs of *both* halves, so
 * that no lane idles. On Intel all of these use one port: sixteen per step are what bounds the
 * merge, 0.5 ns per element, if two independent chains of steps overlap; one alone waits for
 * its own results, 0.9 ns, and a third gains nothing. The second chain is the mirror image of
 * the first: it merges from the ends downwards, holding the smallest. Each makes half of the
 * output; no search has to find where they meet, as both know how much they make.
 *
 *	a  [ front > . . . . . < back ]		out  [ front > | < back ]
 *	b  [ front > . . . . . < back ]
 *
 * Ends: past its end a list is read as the largest value (by the back chain: the smallest).
 * Such padding may come out before a real element of that value, but then one cannot be told
 * from the other. Reads past the end are masked, not made.
 */
#include "src/cpu/merge2.h"

#include <stdbool.h>

#include "src/cpu/network_avx512.h"

/* What a chain has not loaded yet, and what it has still to put out. */
struct chain {
	const uint64_t *a, *a_end;
	const uint64_t *b, *b_end;
	uint64_t *out, *out_end;
	__m512i held; /* descending */
};

/* The front chain's step with `next`: the next eight of the output; the upper eight are held. */
AVX512_INLINE __m512i exchange_front(struct chain *chain, __m512i next)
{
	__m512i x = chain->held, y = next;

	exchange(&x, &y);
	sort_bitonic_dealt(&x, &y);
	chain->held = second_descending(x, y);
	return first_ascending(x, y);
}

/* The back chain's: the lower eight are held. */
AVX512_INLINE __m512i exchange_back(struct chain *chain, __m512i next)
{
	__m512i x = chain->held, y = next;

	exchange(&x, &y);
	sort_bitonic_dealt(&x, &y);
	chain->held = first_descending(x, y);
	return second_ascending(x, y);
}

/*
 * The next vector from the front: of the list with the smaller head. Both lists must have
 * eight. The choice is made with masks, so that no compiler can make it a branch.
 */
AVX512_INLINE __m512i next_front(struct chain *chain)
{
	const uintptr_t a = (uintptr_t)chain->a;
	const uintptr_t b = (uintptr_t)chain->b;
	const uintptr_t take_a = -(uintptr_t)(*chain->a <= *chain->b);
	const uintptr_t a_step = take_a & sizeof(__m512i);

	chain->a = (const uint64_t *)(a + a_step);
	chain->b = (const uint64_t *)(b + sizeof(__m512i) - a_step);
	return _mm512_loadu_si512((const void *)(b ^ ((a ^ b) & take_a)));
}

/* From the back: of the list with the larger last element. */
AVX512_INLINE __m512i next_back(struct chain *chain)
{
	const uintptr_t take_a = -(uintptr_t)(chain->a_end[-1] > chain->b_end[-1]);
	const uintptr_t a_step = take_a & sizeof(__m512i);
	const uintptr_t a = (uintptr_t)chain->a_end - a_step;
	const uintptr_t b = (uintptr_t)chain->b_end - sizeof(__m512i) + a_step;

	chain->a_end = (const uint64_t *)a;
	chain->b_end = (const uint64_t *)b;
	return _mm512_loadu_si512((const void *)(b ^ ((a ^ b) & take_a)));
}

AVX512_INLINE __mmask8 first_lanes(uint64_t n)
{
	return n < N_LANES ? (__mmask8)((1u << n) - 1) : (__mmask8)0xff;
}

AVX512_INLINE __mmask8 last_lanes(uint64_t n)
{
	return n < N_LANES ? (__mmask8)(0xff00u >> n) : (__mmask8)0xff;
}

AVX512_INLINE uint64_t at_most_lanes(uint64_t n)
{
	return n < N_LANES ? n : N_LANES;
}

/* next_front() where there may be fewer than eight, padded. */
AVX512_INLINE __m512i next_front_padded(struct chain *chain)
{
	const uint64_t n_a = (uint64_t)(chain->a_end - chain->a);
	const uint64_t n_b = (uint64_t)(chain->b_end - chain->b);
	const bool take_a = n_b == 0 || (n_a > 0 && *chain->a <= *chain->b);
	const uint64_t *from = take_a ? chain->a : chain->b;
	const uint64_t n = at_most_lanes(take_a ? n_a : n_b);

	chain->a += take_a ? n : 0;
	chain->b += take_a ? 0 : n;
	return _mm512_mask_loadu_epi64(_mm512_set1_epi64(-1), first_lanes(n), from);
}

AVX512_INLINE __m512i next_back_padded(struct chain *chain)
{
	const uint64_t n_a = (uint64_t)(chain->a_end - chain->a);
	const uint64_t n_b = (uint64_t)(chain->b_end - chain->b);
	const bool take_a = n_b == 0 || (n_a > 0 && chain->a_end[-1] > chain->b_end[-1]);
	const uint64_t *end = take_a ? chain->a_end : chain->b_end;
	const uint64_t n = at_most_lanes(take_a ? n_a : n_b);

	chain->a_end -= take_a ? n : 0;
	chain->b_end -= take_a ? 0 : n;
	return _mm512_maskz_loadu_epi64(last_lanes(n), end - N_LANES);
}

/* Have both lists, and the output, a vector more? */
AVX512_INLINE bool is_full(const struct chain *chain)
{
	return (chain->a_end - chain->a >= N_LANES) & (chain->b_end - chain->b >= N_LANES) &
	       (chain->out_end - chain->out >= N_LANES);
}

AVX512_INLINE void step_front(struct chain *chain)
{
	_mm512_storeu_si512(chain->out, exchange_front(chain, next_front(chain)));
	chain->out += N_LANES;
}

AVX512_INLINE void step_back(struct chain *chain)
{
	chain->out_end -= N_LANES;
	_mm512_storeu_si512(chain->out_end, exchange_back(chain, next_back(chain)));
}

AVX512 static void finish_front(struct chain chain)
{
	while (is_full(&chain))
		step_front(&chain);
	while (chain.out < chain.out_end) {
		const uint64_t n = at_most_lanes((uint64_t)(chain.out_end - chain.out));
		const __m512i lower = exchange_front(&chain, next_front_padded(&chain));

		_mm512_mask_storeu_epi64(chain.out, first_lanes(n), lower);
		chain.out += n;
	}
}

AVX512 static void finish_back(struct chain chain)
{
	while (is_full(&chain))
		step_back(&chain);
	while (chain.out < chain.out_end) {
		const uint64_t n = at_most_lanes((uint64_t)(chain.out_end - chain.out));
		const __m512i upper = exchange_back(&chain, next_back_padded(&chain));

		_mm512_mask_storeu_epi64(chain.out_end - N_LANES, last_lanes(n), upper);
		chain.out_end -= n;
	}
}

AVX512 void merge2_8_avx512(const void *a_elements, uint64_t n_a, const void *b_elements,
			    uint64_t n_b, void *out_elements)
{
	const uint64_t *a = a_elements;
	const uint64_t *b = b_elements;
	uint64_t *out = out_elements;
	uint64_t *middle = out + (n_a + n_b) / 2 / N_LANES * N_LANES;
	struct chain front = { .a = a, .a_end = a + n_a, .b = b, .b_end = b + n_b,
			       .out = out, .out_end = middle };
	struct chain back = front;

	back.out = middle;
	back.out_end = out + n_a + n_b;
	front.held = reversed(next_front_padded(&front));
	back.held = reversed(next_back_padded(&back));
	while (is_full(&front) && is_full(&back)) {
		step_front(&front);
		step_back(&back);
	}
	finish_front(front);
	finish_back(back);
}
