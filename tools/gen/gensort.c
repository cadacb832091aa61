/*
 * gensort.c - the records of the sort benchmark (see gen.h)
 *
 * The random parts of a record come from one sequence of 128-bit numbers, a linear congruential
 * generator modulo 2^128 (multiplier by L'Ecuyer, "Tables of linear congruential generators",
 * Mathematics of Computation 68, 1999):
 *
 *	X(0) = 0,	X(i + 1) = X(i) * multiplier + increment
 *
 *	ASCII	 0	10	the key: X(i + 1) in base 95, as printable characters; 8 digits of
 *				the upper half, 2 of the lower, least significant first
 *		10	2	blanks
 *		12	32	i in hexadecimal
 *		44	2	blanks
 *		46	52	the lowest 13 hexadecimal digits of X(i + 1), each four times
 *		98	2	CR LF
 *
 *	binary	 0	100	the upper 10 bytes of X(i + 1) to X(i + 10), each but the first
 *				exchanged by a mask of its own
 *
 * so a binary record costs one new number. In a skewed record, up to 48 leading bits of the key are
 * a prefix that all numbers i of the same length in bits share.
 *
 * The formats, the masks and the prefixes are those of gensort 1.5 (2016, BSD version), the
 * program that defines them.
 */
#include "tools/gen/gen.h"

#include <string.h>

#include "src/record/key_encoding.h"

#define WIDE(hi, lo) ((uint128_t)UINT64_C(hi) << 64 | UINT64_C(lo))
#define MULTIPLIER WIDE(0x2360ed051fc65da4, 0x4385df649fccf645)
#define INCREMENT WIDE(0x4a696d4772617952, 0x4950202020202001)

/* Return X(i) in at most 64 steps: 2^k steps are a step with another multiplier and increment. */
static uint128_t random_at(uint64_t i)
{
	uint128_t multiplier = MULTIPLIER, increment = INCREMENT; /* of 1, 2, 4, ... steps */
	uint128_t x = 0;

	for (; i; i >>= 1) {
		if (i & 1)
			x = x * multiplier + increment;
		increment = increment * multiplier + increment;
		multiplier *= multiplier;
	}
	return x;
}

/* --- ASCII --- */

static void put_key_digits(uint64_t number, unsigned n, unsigned char *to)
{
	for (unsigned i = 0; i < n; i++) {
		to[i] = (unsigned char)(' ' + number % 95);
		number /= 95;
	}
}

/* Eight hexadecimal digits: a nibble to each byte of a word, then all to characters at once. */
static void put_hex_digits(uint32_t number, unsigned char *to)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	uint64_t digits = number;
	uint64_t letter_mask;

	digits = (digits << 16 | digits) & UINT64_C(0x0000ffff0000ffff);
	digits = (digits << 8 | digits) & UINT64_C(0x00ff00ff00ff00ff);
	digits = (digits << 4 | digits) & UINT64_C(0x0f0f0f0f0f0f0f0f);
	letter_mask = (digits + 6 * ones) >> 4 & ones;
	digits += '0' * ones + ('A' - '0' - 10) * letter_mask;
	digits = __builtin_bswap64(digits);
	memcpy(to, &digits, 8);
}

static void make_ascii(const uint128_t *random, uint64_t number, unsigned char *record)
{
	const uint64_t lo = (uint64_t)random[0];

	put_key_digits((uint64_t)(random[0] >> 64), 8, record);
	put_key_digits(lo, 2, record + 8);
	memcpy(record + 10, "  0000000000000000", 18);
	put_hex_digits((uint32_t)(number >> 32), record + 28);
	put_hex_digits((uint32_t)number, record + 36);
	memcpy(record + 44, "  ", 2);
	for (unsigned i = 0; i < 13; i++)
		memset(record + 46 + 4 * i, "0123456789ABCDEF"[lo >> (48 - 4 * i) & 15], 4);
	memcpy(record + 98, "\r\n", 2);
}

/* --- Binary --- */

enum { N_SEGMENTS = 10, SEGMENT_NBYTES = 10 };

static const struct {
	uint64_t hi;
	uint16_t lo;
} masks[N_SEGMENTS] = {
	{ UINT64_C(0x0000000000000000), 0x0000 }, { UINT64_C(0xf0e8e4e2e1d8d4d2), 0xd1cc },
	{ UINT64_C(0xcac9c6c5c3b8b4b2), 0xb1ac }, { UINT64_C(0xaaa9a6a5a39c9a99), 0x9695 },
	{ UINT64_C(0x938e8d8b87787472), 0x716c }, { UINT64_C(0x6a696665635c5a59), 0x5655 },
	{ UINT64_C(0x534e4d4b473c3a39), 0x3635 }, { UINT64_C(0x332e2d2b271e1d1b), 0x170f },
	{ UINT64_C(0xc8c4c2c198949291), 0x8ce0 }, { UINT64_C(0x170f332e2d2b271e), 0x1d1b },
};

static void make_binary(const uint128_t *random, uint64_t number, unsigned char *record)
{
	(void)number;
	for (unsigned i = 0; i < N_SEGMENTS; i++) {
		const uint64_t hi = (uint64_t)(random[i] >> 64) ^ masks[i].hi;
		const uint16_t lo = (uint16_t)((uint16_t)(random[i] >> 48) ^ masks[i].lo);
		const uint64_t hi_be = __builtin_bswap64(hi);
		const uint16_t lo_be = __builtin_bswap16(lo);

		memcpy(record + i * SEGMENT_NBYTES, &hi_be, 8);
		memcpy(record + i * SEGMENT_NBYTES + 8, &lo_be, 2);
	}
}

/* --- Skewed --- */

enum { SKEW_BITS = 48 };

/* By the length of the record number in bits. gensort has more, for numbers over 64 bits. */
static const uint64_t skews[65] = {
	0x4a696d477261, 0x95e0e48262b3, 0x45979353dbed, 0x882a02c31536, 0x5c90ab38ae52,
	0x72dc0ca51e33, 0x10431af6a0d8, 0x5efc4abfaca2, 0x44f78c8b40bf, 0x84c0992f3b94,
	0xb3e9689de16b, 0xf8f64263fd0b, 0xda7a45a182de, 0x9b6b4825e251, 0xdc682a00647e,
	0xf25bd15439d1, 0xf2fa42ed1872, 0x6a59451be8d0, 0x2729b9771471, 0x879b2fb7bb35,
	0x68d0cc3c1999, 0x27d80879d79e, 0xb0795011b782, 0x464fb84ab848, 0x21f03ee8ac41,
	0xe7961c0d827f, 0x84d904457a61, 0x5359d35da884, 0x4e385466525c, 0x870fa6459011,
	0xff00463adfc8, 0x89ca67c29c93, 0x755090c0177d, 0xeb4d81a5c9ea, 0x8a8568b3086f,
	0x5da69a3d8667, 0x6a974359eaab, 0x63b6044b8e78, 0x33414912cb67, 0x226df2b79c9b,
	0x1e58396c599a, 0x4d676091dcfe, 0xc98f259b150d, 0xa827dc9aff7e, 0x0696c9a1ba3b,
	0x6d16e338d777, 0xac35a43ba662, 0x7ee1e4007163, 0xa16b6fa9f1ea, 0x2cb7a1bb9362,
	0x2f4b08267ce7, 0x86d192c54184, 0xf6e4143fdeaa, 0x458369e83cb9, 0x6c15f70f8176,
	0xc0b487026b7f, 0xae9031f87d14, 0x6b25dc59e09e, 0x88382362424b, 0xafb96f95d32b,
	0xc1d4fcf577db, 0xc68d66d18453, 0x74fe19dc5268, 0x8b6ae036713b, 0x33d5b5b15c70,
};

/* gensort treats numbers of 61 bits and more as numbers of 64 bits. */
static unsigned skew_index(uint64_t number)
{
	if (number == 0)
		return 0;
	return number >> 60 ? 64 : 64 - (unsigned)__builtin_clzll(number);
}

/* Lengths of 0 and over SKEW_BITS, of 64 equally likely ones, do not change the key. */
static void make_skewed(const uint128_t *random, uint64_t number, unsigned char *record)
{
	const unsigned n_bits = (unsigned)(random[0] >> 32) & 63;
	const uint64_t skew = skews[skew_index(number)] << (64 - SKEW_BITS);
	uint64_t key, mask;

	make_binary(random, number, record);
	if (n_bits == 0 || n_bits > SKEW_BITS)
		return;
	mask = UINT64_MAX << (64 - n_bits);
	key = (uint64_t)(random[0] >> 64);
	key = __builtin_bswap64((key & ~mask) | (skew & mask));
	memcpy(record, &key, 8);
}

static void (*const makers[])(const uint128_t *random, uint64_t number, unsigned char *record) = {
	[GENSORT_ASCII] = make_ascii,
	[GENSORT_BINARY] = make_binary,
	[GENSORT_SKEWED] = make_skewed,
};

/* The random numbers of a batch stay in the first-level cache. */
enum { BATCH_RECORDS = 256 };

static void fill_gensort(const struct data_set *data_set, uint64_t first, uint64_t n, void *records)
{
	const struct gensort *gensort = (const struct gensort *)data_set;
	uint64_t number = gensort->first_number + first;
	uint128_t random[BATCH_RECORDS + N_SEGMENTS - 1];
	uint128_t last = random_at(number);
	unsigned char *output = records;

	while (n) {
		const uint64_t n_batch = n < BATCH_RECORDS ? n : BATCH_RECORDS;

		for (uint64_t i = 0; i < n_batch + N_SEGMENTS - 1; i++)
			random[i] = (i ? random[i - 1] : last) * MULTIPLIER + INCREMENT;
		for (uint64_t i = 0; i < n_batch; i++)
			makers[gensort->kind](&random[i], number + i,
					      output + i * GENSORT_RECORD_NBYTES);
		last = random[n_batch - 1];
		number += n_batch;
		n -= n_batch;
		output += n_batch * GENSORT_RECORD_NBYTES;
	}
}

void gensort_init(enum gensort_kind kind, uint64_t first_number, uint64_t n_records,
		  struct gensort *ret_gensort)
{
	*ret_gensort = (struct gensort){
		.set = { .record_nbytes = GENSORT_RECORD_NBYTES,
			 .n_records = n_records,
			 .fill = fill_gensort },
		.kind = kind,
		.first_number = first_number,
	};
}
