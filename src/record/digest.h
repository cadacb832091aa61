/*
 * digest.h - a checksum of a multiset of records, and what has become of all records; host and
 * device
 *
 * A digest is the number of records and the sum, modulo 2^64, of a strong hash of each. It does not
 * depend on the order of the records. So any number of threads can compute parts of it, and it can
 * be compared between input and output. Records that are lost, duplicated, replaced or changed in a
 * bit go undetected with probability 2^-64, unless somebody forges them: it is not a cryptographic
 * hash.
 *
 * A record is hashed as little-endian words of 8 bytes, the last one padded with zeros. Up to 16
 * bytes they are chained through mix64 (the finaliser "Mix13" of Stafford 2011, used by SplitMix64,
 * Steele et al., OOPSLA 2014). For records of at most 8 bytes mix64 is a bijection, so different
 * records have different hashes.
 *
 * Chaining costs the latency of two multiplications for each word. Longer records are hashed by
 * independent pairs of words, as XXH3 and wyhash do: each word is XORed with an odd multiple of a
 * constant that depends on its offset, the two are multiplied to 128 bits, and the folded products
 * are added up.
 *
 * Every record is counted where it is read, and again where it is written or dropped. In between it
 * lives in a chunk, a run or a window. When the sort is done nothing may be left there:
 *
 *	read = written + dropped		as multisets
 *
 * Each part of a sort keeps totals of its own and adds them to those of its caller.
 */
#pragma once

#include <string.h>

#include "src/record/key_encoding.h"

struct digest {
	uint64_t n_records;
	uint64_t sum;
};

static inline GSORT_HD uint64_t digest_mix64(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

#define DIGEST_SEED UINT64_C(0x9e3779b97f4a7c15)

/* Return the word of bytes [offset, offset + 8), padded with zeros after the record's end. */
static inline GSORT_HD uint64_t digest_word(const unsigned char *record, uint64_t record_nbytes,
					    uint64_t offset)
{
	const uint64_t n = offset >= record_nbytes    ? 0 :
			   record_nbytes - offset < 8 ? record_nbytes - offset :
							8;
	uint64_t word = 0;

#ifndef __CUDA_ARCH__
	if (n == 8) {
		memcpy(&word, record + offset, 8);
		return word;
	}
#endif
	for (uint64_t i = 0; i < n; i++)
		word |= (uint64_t)record[offset + i] << 8 * i;
	return word;
}

/* XOR the halves of the 128-bit product. */
static inline GSORT_HD uint64_t digest_fold(uint64_t a, uint64_t b)
{
	const uint128_t product = (uint128_t)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

#define DIGEST_HIGH_SEED UINT64_C(0xd6e8feb86659fd93)

/* Return the mask for the word at `offset`: the first of a pair; digest_mask_high(): the second. */
static inline GSORT_HD uint64_t digest_mask_low(uint64_t offset)
{
	return (2 * offset + 1) * DIGEST_SEED;
}

static inline GSORT_HD uint64_t digest_mask_high(uint64_t offset)
{
	return (2 * offset + 1) * DIGEST_HIGH_SEED;
}

/* Return the contribution of bytes [offset, offset + 16) to the hash. */
static inline GSORT_HD uint64_t digest_pair(uint64_t lo, uint64_t hi, uint64_t offset)
{
	return digest_fold(lo ^ digest_mask_low(offset), hi ^ digest_mask_high(offset));
}

/* Hash a record of any length. This is the definition; faster versions elsewhere must agree. */
static inline GSORT_HD uint64_t digest_record(const unsigned char *record, uint64_t record_nbytes)
{
	uint64_t hash = DIGEST_SEED;

	if (record_nbytes <= 16) {
		for (uint64_t offset = 0; offset < record_nbytes; offset += 8)
			hash = digest_mix64(hash ^ digest_word(record, record_nbytes, offset));
		return hash;
	}
	for (uint64_t offset = 0; offset < record_nbytes; offset += 16)
		hash += digest_pair(digest_word(record, record_nbytes, offset),
				    digest_word(record, record_nbytes, offset + 8), offset);
	return digest_mix64(hash);
}

/* Hash a record of at most 8 bytes, given as its zero-padded little-endian word. */
static inline GSORT_HD uint64_t digest_word8(uint64_t word)
{
	return digest_mix64(DIGEST_SEED ^ word);
}

/* Hash a record of 9 to 16 bytes, given as its two words. */
static inline GSORT_HD uint64_t digest_word16(uint64_t lo, uint64_t hi)
{
	return digest_mix64(digest_word8(lo) ^ hi);
}

static inline void digest_add(struct digest *total, struct digest addend)
{
	total->n_records += addend.n_records;
	total->sum += addend.sum;
}

static inline bool digest_equal(struct digest a, struct digest b)
{
	return a.n_records == b.n_records && a.sum == b.sum;
}

struct record_totals {
	struct digest read;    /* records read from the inputs */
	struct digest written; /* records written to the output */
	struct digest dropped; /* equal to one that is kept (-u), or beyond the limit */
};

static inline void record_totals_add(struct record_totals *total, struct record_totals addend)
{
	digest_add(&total->read, addend.read);
	digest_add(&total->written, addend.written);
	digest_add(&total->dropped, addend.dropped);
}

/* Return the digest of all records that were written or dropped. */
static inline struct digest record_totals_accounted(struct record_totals totals)
{
	digest_add(&totals.written, totals.dropped);
	return totals.written;
}

static inline bool record_totals_are_balanced(struct record_totals totals)
{
	return digest_equal(totals.read, record_totals_accounted(totals));
}
