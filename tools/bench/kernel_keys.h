/*
 * kernel_keys.h - keys of many distributions for tests and benchmarks of kernels; host and device
 *
 * Key i of n is a pure function of (i, n). Unlike tools/gen/gen.h, which makes files, this makes
 * elements, also on the device, and has distributions that are hard for the kernels (few prefixes,
 * skewed, the value of a tile's padding).
 */
#pragma once

#include <string.h>

#include "src/record/digest.h"

enum key_distribution {
	KEYS_RANDOM,
	KEYS_SORTED,
	KEYS_REVERSED,
	KEYS_EQUAL,
	KEYS_ALL_ONES, /* all bits set, like the padding of a tile */
	KEYS_TWO_VALUES,
	KEYS_FEW_VALUES,    /* 37 values, far apart */
	KEYS_ORGAN_PIPE,    /* ascending, then descending */
	KEYS_SAWTOOTH,      /* ascending repeatedly */
	KEYS_NEARLY_SORTED, /* sorted, except one in 50 */
	KEYS_FEW_PREFIXES,  /* few values of the upper bits, random lower bits */
	KEYS_SKEWED,        /* one in 64 is huge, the others are small */
	KEYS_LOW_HALF,      /* the upper half of the bits is constant */
	N_KEY_DISTRIBUTIONS
};

static const char *const key_distribution_names[N_KEY_DISTRIBUTIONS] = {
	"random",     "sorted",   "reversed",      "equal", "ones",  "two-keys", "hundred-keys",
	"organ-pipe", "sawtooth", "nearly-sorted", "twins", "crowd", "low half"
};

/* Return about i * 2^128 / n: key i of n ascending keys over the whole range. */
static inline GSORT_HD uint128_t key_ascending(uint64_t i, uint64_t n)
{
	return n ? ~(uint128_t)0 / n * i : 0;
}

/* Return key i of n, over the whole range of 128 bits; keys of b bits are its upper b bits. */
static inline GSORT_HD uint128_t key_make(enum key_distribution distribution, uint64_t i,
					  uint64_t n, unsigned bits)
{
	const uint64_t hash = digest_mix64(i + 1);
	const uint128_t random = (uint128_t)hash << 64 | digest_mix64(hash);
	const uint128_t unit = (uint128_t)1 << (128 - bits); /* one unit of a key of `bits` */

	switch (distribution) {
	case KEYS_RANDOM:
		return random;
	case KEYS_SORTED:
		return key_ascending(i, n);
	case KEYS_REVERSED:
		return key_ascending(n - 1 - i, n);
	case KEYS_EQUAL:
		return unit * 42;
	case KEYS_ALL_ONES:
		return ~(uint128_t)0;
	case KEYS_TWO_VALUES:
		return hash & 1 ? unit * 3 : ~(uint128_t)0 / 5 * 3;
	case KEYS_FEW_VALUES:
		return ~(uint128_t)0 / 37 * (hash % 37);
	case KEYS_ORGAN_PIPE:
		return key_ascending(i < n / 2 ? i : n - 1 - i, n);
	case KEYS_SAWTOOTH:
		return key_ascending(i % (n / 10 + 1), n);
	case KEYS_NEARLY_SORTED:
		return hash % 50 ? key_ascending(i, n) : random;
	case KEYS_FEW_PREFIXES:
		return (uint128_t)(hash % 61) << 120 | random >> 20;
	case KEYS_SKEWED:
		return hash % 64 ? unit * (hash >> 40) : random;
	default:
		return ~(uint128_t)0 << (128 - bits / 2) | random >> (bits / 2);
	}
}

/* Write key i of n as an element. */
static inline GSORT_HD void key_store(void *elements, uint32_t element_nbytes, uint64_t i,
				      uint128_t key)
{
	const uint128_t element = key >> (128 - element_nbytes * 8);

	memcpy((char *)elements + i * element_nbytes, &element, element_nbytes);
}
