/*
 * load_upto16.h - load and store up to 16 bytes without touching those after them
 *
 * A loop over single bytes costs several cycles for each, and a misprediction. Two loads that
 * overlap, each as wide as the bytes allow, cost as much as one:
 *
 *	n = 11	[ . . . . . . . . ]		8 from the start
 *		      [ . . . . . . . . ]	8 up to the end, shifted into place
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "src/record/key_encoding.h"

static inline uint32_t load_4(const unsigned char *from)
{
	uint32_t word;

	memcpy(&word, from, 4);
	return word;
}

static inline uint64_t load_8(const unsigned char *from)
{
	uint64_t word;

	memcpy(&word, from, 8);
	return word;
}

static inline uint128_t load_16(const unsigned char *from)
{
	uint128_t word;

	memcpy(&word, from, 16);
	return word;
}

/* Load n < 8 bytes, the first one lowest, zeros above. */
static inline uint64_t load_below_8(const unsigned char *from, uint64_t n)
{
	if (n >= 4)
		return load_4(from) | (uint64_t)load_4(from + n - 4) << 8 * (n - 4);
	if (n == 0)
		return 0;
	return from[0] | (uint64_t)from[n / 2] << 8 * (n / 2) |
	       (uint64_t)from[n - 1] << 8 * (n - 1);
}

/* Load n <= 16 bytes, the first one lowest, zeros above. */
static inline uint128_t load_upto_16(const unsigned char *from, uint64_t n)
{
	if (n < 8)
		return load_below_8(from, n);
	if (n == 16)
		return load_16(from);
	if (n == 8)
		return load_8(from);
	return load_8(from) | (uint128_t)(load_8(from + n - 8) >> 8 * (16 - n)) << 64;
}

/* Store the low n <= 16 bytes of `word`. */
static inline void store_upto_16(unsigned char *to, uint128_t word, uint64_t n)
{
	const uint64_t low = (uint64_t)word;

	if (n >= 8) {
		const uint64_t last = (uint64_t)(word >> 8 * (n - 8));

		memcpy(to, &low, 8);
		memcpy(to + n - 8, &last, 8);
		return;
	}
	for (uint64_t i = 0; i < n; i++)
		to[i] = (unsigned char)(low >> 8 * i);
}
