/*
 * reference_sort.h - a radix sort for expected data
 *
 * Not instrumented: qsort() with a comparison took up to half of the time of tests with sanitizers.
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "src/record/key_encoding.h"

#define NOT_INSTRUMENTED __attribute__((no_sanitize("address", "thread", "undefined")))

/* Byte 0 is the lowest. */
#define REFERENCE_DIGIT(number, byte) (((const unsigned char *)&(number))[byte])

/* Sort by each byte, from the lowest on. Bytes that are equal in all numbers are left out. */
#define DEFINE_REFERENCE_SORT(nbytes, type)                                                        \
	NOT_INSTRUMENTED static inline void reference_sort_##nbytes(type *numbers, size_t n)       \
	{                                                                                          \
		type *others = malloc(n * sizeof *others + 1), *from = numbers, *to = others;      \
                                                                                                   \
		if (!others)                                                                       \
			abort();                                                                   \
		for (unsigned byte = 0; byte < sizeof(type) && n > 1; byte++) {                    \
			size_t ends[256] = { 0 }, end = n;                                         \
                                                                                                   \
			for (size_t i = 0; i < n; i++)                                             \
				ends[REFERENCE_DIGIT(from[i], byte)]++;                            \
			if (ends[REFERENCE_DIGIT(from[0], byte)] == n)                             \
				continue;                                                          \
			for (unsigned digit = 256; digit-- > 0;) {                                 \
				const size_t count = ends[digit];                                  \
                                                                                                   \
				ends[digit] = end;                                                 \
				end -= count;                                                      \
			}                                                                          \
			for (size_t i = n; i-- > 0;)                                               \
				to[--ends[REFERENCE_DIGIT(from[i], byte)]] = from[i];              \
			from = to;                                                                 \
			to = from == numbers ? others : numbers;                                   \
		}                                                                                  \
		if (from != numbers)                                                               \
			memcpy(numbers, from, n * sizeof *numbers);                                \
		free(others);                                                                      \
	}

DEFINE_REFERENCE_SORT(4, uint32_t)
DEFINE_REFERENCE_SORT(8, uint64_t)
DEFINE_REFERENCE_SORT(16, uint128_t)

/* Sort n aligned unsigned numbers of 4, 8 or 16 bytes. */
static inline void reference_sort_elements(void *elements, uint32_t element_nbytes, uint64_t n)
{
	if (element_nbytes == 4)
		reference_sort_4(elements, n);
	else if (element_nbytes == 8)
		reference_sort_8(elements, n);
	else
		reference_sort_16(elements, n);
}
