/*
 * row_copy - copy and hash a row within shared memory
 *
 * One thread copies a row word by word from its slot to its packed position. Both may have any
 * alignment, so each word is assembled from two source words, and written as parts of two target
 * words:
 *
 *	from	|...A|AAAA|AAA.|	skew 3: a word is the last byte of one and three of the next
 *	words	AAAA AAAA		as they are digested
 *	to	|..AA|AAAA|AA..|	head 2: bytes before the first word, words, the rest
 *
 * The first and the last target word may have bytes of other rows, which other threads write. So
 * they are written byte by byte. If everything is aligned (WORDS), the compiler removes all of
 * this.
 */
#pragma once

#include "kernels/stream_pass.cuh"

/* Return four bytes from bit `shift` of two words; shift <= 24. */
__device__ __forceinline__ uint32_t funnel_shift(uint32_t low, uint32_t high, uint32_t shift)
{
	return (uint32_t)(((uint64_t)high << 32 | low) >> shift);
}

/* Returns the words of a row one after the other. Reads up to one word past those it returns. */
template <bool WORDS> struct row_source {
	const uint32_t *words;
	uint32_t shift, previous; /* the word whose first bytes were already returned */

	__device__ explicit row_source(const unsigned char *from)
	    : words((const uint32_t *)(const void *)(from - (WORDS ? 0 : skew(from)))),
	      shift(WORDS ? 0 : 8 * skew(from)), previous(0)
	{
		if (!WORDS)
			previous = *words++;
	}

	__device__ uint32_t next_word()
	{
		const uint32_t next = *words++, low = previous;

		previous = next;
		return WORDS ? next : funnel_shift(low, next, shift);
	}
};

/* Writes words one after the other to a row of any alignment. */
template <bool WORDS> struct row_sink {
	unsigned char *to;
	uint32_t *words; /* where the next whole word goes */
	uint32_t head;   /* bytes before the first whole word */
	uint32_t held;   /* the last word that was put, not completely written */

	__device__ explicit row_sink(unsigned char *row)
	    : to(row), words((uint32_t *)(void *)row), head(0), held(0)
	{
		if (WORDS)
			return;
		head = (4 - skew(row)) % 4;
		words = (uint32_t *)(void *)(row + head);
	}

	__device__ void put(uint32_t word, bool is_first)
	{
		if (WORDS)
			*words++ = word;
		else if (!is_first)
			*words++ = funnel_shift(held, word, 8 * head);
		else
			for (uint32_t i = 0; i < head; i++)
				to[i] = (unsigned char)(word >> 8 * i);
		held = word;
	}

	/* Write the held word and the n < 4 bytes after it. */
	__device__ void finish(uint32_t bytes, uint32_t n)
	{
		unsigned char *remaining = (unsigned char *)words;
		uint64_t left = ((uint64_t)bytes << 32 | held) >> 8 * head;

		if (WORDS)
			return;
		n += 4 - head;
		if (n >= 4) {
			*words = (uint32_t)left;
			remaining += 4;
			left >>= 32;
			n -= 4;
		}
		for (uint32_t i = 0; i < n; i++)
			remaining[i] = (unsigned char)(left >> 8 * i);
	}
};

/* Computes digest_record(), sixteen bytes at a time. */
struct row_hash {
	uint64_t low, high, sum;

	__device__ row_hash() : low(digest_mask_low(0)), high(digest_mask_high(0)), sum(DIGEST_SEED)
	{
	}

	__device__ void add(const uint32_t *w)
	{
		sum += digest_fold(((uint64_t)w[1] << 32 | w[0]) ^ low,
				   ((uint64_t)w[3] << 32 | w[2]) ^ high);
		low += digest_mask_low(16) - digest_mask_low(0);
		high += digest_mask_high(16) - digest_mask_high(0);
	}

	/*
	 * Return the hash of a row of `nbytes`, whose last bytes are in w if they were not added.
	 */
	__device__ uint64_t finish(const uint32_t *w, uint32_t nbytes)
	{
		const uint64_t lo = (uint64_t)w[1] << 32 | w[0], hi = (uint64_t)w[3] << 32 | w[2];

		if (nbytes <= 8)
			return digest_word8(lo);
		if (nbytes <= 16)
			return digest_word16(lo, hi);
		if (nbytes % 16)
			add(w);
		return digest_mix64(sum);
	}
};

/*
 * Copy a row of 4 bytes or more, in whole words if WORDS, and return its hash. May read one word
 * past the row.
 */
template <bool WORDS>
__device__ __forceinline__ uint64_t copy_row(unsigned char *__restrict__ to,
					     const unsigned char *__restrict__ from,
					     uint32_t nbytes)
{
	row_source<WORDS> source(from);
	row_sink<WORDS> sink(to);
	row_hash hash;
	const uint32_t aligned_nbytes = nbytes > 16 ? nbytes / 16 * 16 : 0,
		       remaining = nbytes - aligned_nbytes;
	uint32_t w[4], last = 0;

#pragma unroll 2
	for (uint32_t at = 0; at < aligned_nbytes; at += 16) {
#pragma unroll
		for (uint32_t j = 0; j < 4; j++)
			w[j] = source.next_word();
#pragma unroll
		for (uint32_t j = 0; j < 4; j++)
			sink.put(w[j], j == 0 && at == 0);
		hash.add(w);
	}
#pragma unroll
	for (uint32_t j = 0; j < 4; j++) {
		w[j] = 0;
		if (4 * j + 4 <= remaining)
			sink.put(w[j] = source.next_word(), j == 0 && aligned_nbytes == 0);
		else if (!WORDS && 4 * j < remaining)
			w[j] = last = source.next_word() & ((1u << 8 * (remaining % 4)) - 1);
	}
	sink.finish(last, remaining % 4);
	return hash.finish(w, nbytes);
}
