/*
 * record_hash.h - digest_record() with wide loads
 *
 * The result is that of the definition in digest.h.
 */
#pragma once

#include "src/record/digest.h"
#include "src/record/load_upto16.h"

/* Return the hash of nbytes <= 16, already loaded. */
static inline uint64_t hash_words(uint128_t words, uint64_t nbytes)
{
	if (nbytes > 8)
		return digest_word16((uint64_t)words, (uint64_t)(words >> 64));
	return nbytes > 0 ? digest_word8((uint64_t)words) : DIGEST_SEED;
}

/*
 * Return digest_record(). The bytes are also copied to `to`, unless it is NULL, because they need
 * not be loaded again for that.
 */
static inline uint64_t hash_and_copy(unsigned char *to, const unsigned char *from, uint64_t nbytes)
{
	uint64_t hash = DIGEST_SEED, offset = 0;

	if (nbytes <= 16) {
		const uint128_t words = load_upto_16(from, nbytes);

		if (to)
			store_upto_16(to, words, nbytes);
		return hash_words(words, nbytes);
	}
	for (; offset + 16 <= nbytes; offset += 16) {
		const uint64_t lo = load_8(from + offset), hi = load_8(from + offset + 8);

		if (to) {
			memcpy(to + offset, &lo, 8);
			memcpy(to + offset + 8, &hi, 8);
		}
		hash += digest_pair(lo, hi, offset);
	}
	if (offset < nbytes) {
		const uint128_t last = load_16(from + nbytes - 16);
		const uint128_t tail = last >> 8 * (offset + 16 - nbytes);

		if (to)
			memcpy(to + nbytes - 16, &last, 16);
		hash += digest_pair((uint64_t)tail, (uint64_t)(tail >> 64), offset);
	}
	return digest_mix64(hash);
}

static inline uint64_t hash_bytes(const unsigned char *bytes, uint64_t nbytes)
{
	return hash_and_copy(NULL, bytes, nbytes);
}
