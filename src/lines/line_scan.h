/*
 * line_scan.h - find the ends of lines
 */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "src/record/load_upto16.h"

/* No line is as long. */
#define LINE_MAX_NBYTES ((size_t)1 << 40)

/* Return the delimiter of a line; there must be one. */
static inline const unsigned char *line_end(const unsigned char *line, unsigned char delimiter)
{
	return memchr(line, delimiter, LINE_MAX_NBYTES);
}

/* Return the number of delimiters in a text. */
static inline uint64_t line_count(const unsigned char *text, size_t nbytes, unsigned char delimiter)
{
	uint64_t n = 0;

	/* Blocks whose counts fit in a byte are counted with vectors. */
	while (nbytes > 0) {
		const size_t n_block = nbytes < 255 ? nbytes : 255;
		unsigned char n_in_block = 0;

		for (size_t i = 0; i < n_block; i++)
			n_in_block = (unsigned char)(n_in_block + (text[i] == delimiter));
		n += n_in_block;
		text += n_block;
		nbytes -= n_block;
	}
	return n;
}

/* Return the first of these bytes in a text, or its end. Fields are short: see line_scan. */
static inline const unsigned char *line_find_byte(const unsigned char *p, const unsigned char *end,
						  unsigned char byte)
{
#ifdef __SSE2__
	const __m128i wanted = _mm_set1_epi8((char)byte);

	while (p < end) {
		const size_t n = end - p < 16 ? (size_t)(end - p) : 16;
		const uint128_t bytes = load_upto_16(p, n);
		const __m128i found = _mm_cmpeq_epi8(
			_mm_set_epi64x((int64_t)(bytes >> 64), (int64_t)bytes), wanted);
		const unsigned matches =
			(unsigned)_mm_movemask_epi8(found) & ((1U << n) - 1);

		if (matches)
			return p + __builtin_ctz(matches);
		p += n;
	}
	return end;
#else
	const unsigned char *found = p < end ? memchr(p, byte, (size_t)(end - p)) : NULL;

	return found ? found : end;
#endif
}

/*
 * Finds delimiters one after the other. Lines are short, so a call of memchr() for each would take
 * longer than to look at their bytes.
 */
struct line_scan {
	const unsigned char *bytes; /* 64 of them are being looked at */
	uint64_t matches;           /* bit i: byte i is a delimiter that was not returned */
	unsigned char delimiter;
};

static inline uint64_t line_match_64(const unsigned char *bytes, unsigned char delimiter)
{
	uint64_t matches = 0;

#ifdef __SSE2__
	const __m128i wanted = _mm_set1_epi8((char)delimiter);

	for (unsigned i = 0; i < 4; i++) {
		const __m128i found = _mm_cmpeq_epi8(
			_mm_loadu_si128((const __m128i *)(const void *)(bytes + 16 * i)), wanted);

		matches |= (uint64_t)(uint32_t)_mm_movemask_epi8(found) << 16 * i;
	}
#else
	for (unsigned i = 0; i < 64; i++)
		matches |= (uint64_t)(bytes[i] == delimiter) << i;
#endif
	return matches;
}

static inline struct line_scan line_scan_start(const unsigned char *text, unsigned char delimiter)
{
	return (struct line_scan){ .bytes = text,
				   .matches = line_match_64(text, delimiter),
				   .delimiter = delimiter };
}

/* Return the next delimiter; there must be one. May read up to 63 bytes past it. */
static inline const unsigned char *line_scan_next(struct line_scan *scan)
{
	const unsigned char *found;

	while (scan->matches == 0) {
		scan->bytes += 64;
		scan->matches = line_match_64(scan->bytes, scan->delimiter);
	}
	found = scan->bytes + __builtin_ctzll(scan->matches);
	scan->matches &= scan->matches - 1;
	return found;
}
