/*
 * random_keys.h - keys and bytes as functions of a seed
 */
#pragma once

#include <stdlib.h>

#include "src/record/layout.h"

enum { MAX_RANDOM_KEYS = 5 };

/* Return the i-th number of the sequence that begins with `seed`. */
static inline uint64_t random_number(uint64_t seed, uint64_t i)
{
	return digest_mix64(digest_mix64(seed + 1) + i * DIGEST_SEED);
}

/* Make a key of any type that fits in the record, at any offset, in any direction. */
static inline struct key random_key(uint64_t record_nbytes, uint64_t seed)
{
	static const char *const types[] = {
		"u8",  "u16", "u32",   "u64",     "u128",  "i8",       "i16",   "i32",
		"i64", "f32", "f64",   "i128",    "u16be", "u32be",    "u64be", "i16be",
		"b1",  "b3",  "b4",    "b7",      "b8",    "b10",      "b13",   "u128be",
		"b20", "b40", "f32be", "f64be",   "i32be", "i64be",    "b2",    "i128be",
		"f16", "u24", "i24be", "bf16",    "bool",  "u56be",    "i72",   "f16be",
		"t64", "c64", "f32:n", "f64be:n", "f16:n", "bf16be:n", "c64:n", "c128be:n",
	};
	const unsigned n_types = sizeof types / sizeof types[0];
	struct key key;

	do
		if (key_parse_type(types[random_number(seed, 0) % n_types], &key) != 0)
			abort();
	while (key.nbytes > record_nbytes && ++seed);
	key.offset = random_number(seed, 1) % (record_nbytes - key.nbytes + 1);
	key.descending = random_number(seed, 2) & 1;
	return key;
}

/* Make 1 to MAX_RANDOM_KEYS keys and return their number. */
static inline uint32_t random_keys(uint64_t record_nbytes, uint64_t seed,
				   struct key keys[static MAX_RANDOM_KEYS])
{
	const uint32_t n = 1 + (uint32_t)(random_number(seed, 0) % MAX_RANDOM_KEYS);

	for (uint32_t i = 0; i < n; i++)
		keys[i] = random_key(record_nbytes, random_number(seed, i + 1));
	return n;
}
