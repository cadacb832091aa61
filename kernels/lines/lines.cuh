/*
 * lines.cuh - lines of a text in device memory, and words that sort like them
 *
 * The string of a line is what it is compared by: the line, its key, or both. The key precedes its
 * line in the text, so both are one string. A delimiter is between them, but strings with different
 * keys differ before it.
 *
 * A word has some bytes of a string, padded with zeros. Its last byte is the number of these bytes
 * if the string ends in the word, or LINE_CONTINUES. So a string that ends sorts before one that
 * continues, even with zeros, and only strings that continue need another word. If lines are in
 * descending order, the bytes of lines and the last byte are complemented (those of keys are not).
 */
#pragma once

#include "kernels/kernels.h"
#include "kernels/sort/element.cuh"
#include "kernels/stream_pass.cuh"
#include "src/record/load_bytes.h"

/* A whole warp reads lines longer than this; a thread reads each shorter one. */
static constexpr uint64_t LONG_LINE_NBYTES = 512;

static constexpr uint64_t LINE_CONTINUES = 0xff;

/* A line in device memory without its delimiter. */
struct line_bytes {
	const unsigned char *bytes;
	uint64_t nbytes;
};

/* Return n lines of the text from the i-th on as one, for example a key and its line. */
__device__ __forceinline__ line_bytes text_lines(const kernel_lines &lines, uint64_t i, unsigned n)
{
	const uint64_t begin = lines.starts[i];

	return { lines.text + begin, lines.starts[i + n] - begin - 1 };
}

__device__ __forceinline__ line_bytes line_at(const kernel_lines &lines, uint64_t number)
{
	return text_lines(lines, lines.has_keys ? 2 * number + 1 : number, 1);
}

/* Return the string of a line. */
__device__ __forceinline__ line_bytes string_at(const kernel_lines &lines, uint64_t number)
{
	return lines.has_keys ? text_lines(lines, 2 * number, lines.keys_decide ? 1 : 2) :
				line_at(lines, number);
}

/* Return where the line begins in its string. */
__device__ __forceinline__ uint64_t string_key_nbytes(const kernel_lines &lines, uint64_t number)
{
	return lines.has_keys ? text_lines(lines, 2 * number, 1).nbytes + 1 : 0;
}

/* Return n <= 8 bytes of a string from `at` on, padded with zeros, the first one highest. */
__device__ __forceinline__ uint64_t load_line(line_bytes string, uint64_t at, uint32_t n)
{
	const uint64_t left = string.nbytes > at ? string.nbytes - at : 0;

	return byte_swap_8(load_bytes(string.bytes + at, left < n ? (uint32_t)left : n));
}

/* Return the last byte of a word of n bytes of the string from `at` on. */
__device__ __forceinline__ uint64_t line_remaining(line_bytes string, uint64_t at, uint32_t n)
{
	const uint64_t left = string.nbytes > at ? string.nbytes - at : 0;

	return left > n ? LINE_CONTINUES : left;
}

/* Return how many of the n bytes of a word from `at` on belong to the key. */
__device__ __forceinline__ uint32_t word_key_nbytes(const kernel_lines &lines, uint64_t number,
						    uint64_t at, uint32_t n)
{
	const uint64_t key_nbytes = string_key_nbytes(lines, number);
	const uint64_t left = key_nbytes > at ? key_nbytes - at : 0;

	return left < n ? (uint32_t)left : n;
}

/* Return the word of LINE_WORD_NBYTES from `at` on. */
__device__ __forceinline__ uint64_t line_word(const kernel_lines &lines, uint64_t number,
					      uint64_t at)
{
	const line_bytes string = string_at(lines, number);
	const uint64_t word = load_line(string, at, LINE_WORD_NBYTES) |
			      line_remaining(string, at, LINE_WORD_NBYTES);

	return lines.descending ? word ^ ~(uint64_t)0 >> 8 * word_key_nbytes(lines, number, at,
									     LINE_WORD_NBYTES) :
				  word;
}

/* Return whether the string of an element continues after the element's bytes. */
__device__ __forceinline__ bool line_continues(const kernel_lines &lines, uint128_t element)
{
	const uint64_t rest = (uint64_t)(element >> NUMBER_BITS) & 0xff;

	return rest == (lines.descending ? LINE_CONTINUES ^ 0xff : LINE_CONTINUES);
}

/* Return where two strings that agree up to `at` differ, or `limit` if they agree up to there. */
__device__ __forceinline__ uint64_t line_first_difference(line_bytes a, line_bytes b, uint64_t at,
							  uint64_t limit)
{
	const uint64_t nbytes = a.nbytes < b.nbytes ? a.nbytes : b.nbytes;
	const uint64_t end = nbytes < limit ? nbytes : limit;

	for (; at < end; at += 8) {
		const uint32_t n = end - at < 8 ? (uint32_t)(end - at) : 8;
		const uint64_t difference = load_bytes(a.bytes + at, n) ^
					    load_bytes(b.bytes + at, n);

		if (difference)
			return at + (__ffsll((long long)difference) - 1) / 8;
	}
	return a.nbytes == b.nbytes || end == limit ? limit : end;
}

/* Return whether two strings are out of order. key_nbytes: where the line of `a` begins in it. */
__device__ __forceinline__ bool lines_are_disordered(const kernel_lines &lines, line_bytes a,
						     line_bytes b, uint64_t key_nbytes)
{
	const uint64_t at = line_first_difference(a, b, 0, UINT64_MAX);
	bool is_less;

	if (at == UINT64_MAX)
		return false;
	is_less = at == a.nbytes || (at < b.nbytes && a.bytes[at] < b.bytes[at]);
	return is_less == (lines.descending && at >= key_nbytes);
}

/* Return the digest sum of a long line's pairs of words at byte `at`, at + step, and so on. */
__device__ __forceinline__ uint64_t hash_pairs(line_bytes line, uint64_t at, uint64_t step)
{
	uint64_t sum = 0;

	for (; at < line.nbytes; at += step) {
		const uint64_t left = line.nbytes - at;
		const uint64_t lo = load_bytes(line.bytes + at, left < 8 ? (uint32_t)left : 8);
		const uint64_t hi = left <= 8 ? 0 :
						load_bytes(line.bytes + at + 8,
							   left < 16 ? (uint32_t)left - 8 : 8);

		sum += digest_pair(lo, hi, at);
	}
	return sum;
}

/* Return digest_record() of a line. */
__device__ __forceinline__ uint64_t hash_short_line(line_bytes line)
{
	if (line.nbytes > 16)
		return digest_mix64(DIGEST_SEED + hash_pairs(line, 0, 16));
	if (line.nbytes > 8)
		return digest_word16(load_bytes(line.bytes, 8),
				     load_bytes(line.bytes + 8, (uint32_t)line.nbytes - 8));
	return line.nbytes > 0 ? digest_word8(load_bytes(line.bytes, (uint32_t)line.nbytes)) :
				 DIGEST_SEED;
}

/*
 * Return the hash of each lane's line; 0 if a lane has none. The whole warp calls it, and reads
 * long lines together.
 */
__device__ __forceinline__ uint64_t hash_lines(line_bytes line, bool has_line)
{
	const bool is_long = has_line && line.nbytes > LONG_LINE_NBYTES;
	unsigned long_lanes = __ballot_sync(ALL_LANES, is_long);
	uint64_t hash = has_line && !is_long ? hash_short_line(line) : 0;

	while (long_lanes) {
		const unsigned lane = __ffs((int)long_lanes) - 1;
		const line_bytes shared = lane_broadcast(line, lane, WARP);
		const uint64_t sum =
			lanes_sum(hash_pairs(shared, 16 * (threadIdx.x % WARP), 16 * WARP), WARP);

		if (threadIdx.x % WARP == lane)
			hash = digest_mix64(DIGEST_SEED + sum);
		long_lanes &= long_lanes - 1;
	}
	return hash;
}
