/*
 * load_bytes.h - load integers from any address, for a GPU
 *
 * A GPU loads words from multiples of their size only. Bytes at any other address are loaded as the
 * aligned words that hold them, and shifted: a load of 8 bytes is two or three loads of 4, not
 * eight of 1. No word is touched that holds none of the bytes.
 *
 *	bytes      .xxx xxxx x...		skew 1, n = 8
 *	words      0    1    2
 *
 * It also compiles for the host, where the kernels are tested; memcpy() is faster there.
 */
#pragma once

#include "src/record/key_encoding.h"

/* Load n <= 8 bytes, the first one lowest. */
static inline GSORT_HD uint64_t load_bytes(const unsigned char *bytes, uint32_t n)
{
	const unsigned skew = (unsigned)((uintptr_t)bytes % 4), end = skew + n;
	const uint32_t *words = (const uint32_t *)(const void *)(bytes - skew);
	uint64_t low, high = 0, value;

	if (n == 0)
		return 0;
	low = words[0];
	if (end > 4)
		low |= (uint64_t)words[1] << 32;
	if (end > 8)
		high = words[2];
	value = skew ? low >> 8 * skew | high << (64 - 8 * skew) : low;
	return n < 8 ? value & (((uint64_t)1 << 8 * n) - 1) : value;
}
