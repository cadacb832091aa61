/*
 * hash - digest_record(), with loads as wide as there are bytes
 *
 * The same sum as its definition in digest.h.
 */
#pragma once

#include "src/cpu/load.h"
#include "src/digest.h"

static inline uint64_t hash_short(const unsigned char *bytes, uint64_t nbytes)
{
	const uint128_t words = load_upto_16(bytes, nbytes);

	if (nbytes == 0)
		return DIGEST_SEED;
	return nbytes <= 8 ? digest_word8((uint64_t)words) :
			     digest_word16((uint64_t)words, (uint64_t)(words >> 64));
}

static inline uint64_t hash_bytes(const unsigned char *bytes, uint64_t nbytes)
{
	uint64_t hash = DIGEST_SEED, at = 0;

	if (nbytes <= 16)
		return hash_short(bytes, nbytes);
	for (; at + 16 <= nbytes; at += 16)
		hash += digest_pair(load_8(bytes + at), load_8(bytes + at + 8), at);
	if (at < nbytes) {
		const uint128_t rest = load_16(bytes + nbytes - 16) >> 8 * (at + 16 - nbytes);

		hash += digest_pair((uint64_t)rest, (uint64_t)(rest >> 64), at);
	}
	return digest_mix64(hash);
}
