/*
 * encode - records to elements and back, and what is learnt on the way
 *
 * One loop does it all while the data is in the first-level cache: a block of records is loaded
 * into an array of raw values, the array is hashed, and mapped to elements. The array makes the
 * loops within a block independent of what overlaps outside of it (in place, or expanding in
 * place from the end of the buffer), so that the compiler can vectorise them. In place, blocks
 * go forwards: an element's place never lies beyond its record's when they end together, nor a
 * record's beyond its element's when they start together.
 *
 * The digest is the expensive part: two 64-bit multiplications per record.
 * AVX-512DQ multiplies eight at a time; so all of it is compiled twice, and the
 * choice is made at run time, by hand: a loader's choice (ifunc) runs before the sanitizers are
 * ready.
 *
 * The length of the record is a constant in each instance, so loads, stores and shifts are single
 * instructions; everything else about the key (byte order, direction, kind) is a mask.
 */
#include "src/device/cpu/encode.h"

#include "src/device/cpu/references.h"

#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are loaded as integers");

enum { BLOCK_N = 256 };

#define INLINE __attribute__((always_inline)) static inline

INLINE uint128_t swap_bytes_16(uint128_t value)
{
	return (uint128_t)__builtin_bswap64((uint64_t)value) << 64 |
	       __builtin_bswap64((uint64_t)(value >> 64));
}

#define ELEMENT uint32_t
#define NAME(stem) stem##_4
#define SWAP_BYTES(value) __builtin_bswap32(value)
#include "src/device/cpu/encode.inc"

#define ELEMENT uint64_t
#define NAME(stem) stem##_8
#define SWAP_BYTES(value) __builtin_bswap64(value)
#include "src/device/cpu/encode.inc"

#define ELEMENT uint128_t
#define NAME(stem) stem##_16
#define SWAP_BYTES(value) swap_bytes_16(value)
#include "src/device/cpu/encode.inc"

/* call(op, n) for the n that is record_nbytes, as a constant. */
#define DISPATCH(stem, op)                                                                         \
	switch ((op)->layout->map.record_nbytes) {                                                 \
	case 1:                                                                                    \
		stem##_4(op, 1);                                                                   \
		break;                                                                             \
	case 2:                                                                                    \
		stem##_4(op, 2);                                                                   \
		break;                                                                             \
	case 3:                                                                                    \
		stem##_4(op, 3);                                                                   \
		break;                                                                             \
	case 4:                                                                                    \
		stem##_4(op, 4);                                                                   \
		break;                                                                             \
	case 5:                                                                                    \
		stem##_8(op, 5);                                                                   \
		break;                                                                             \
	case 6:                                                                                    \
		stem##_8(op, 6);                                                                   \
		break;                                                                             \
	case 7:                                                                                    \
		stem##_8(op, 7);                                                                   \
		break;                                                                             \
	case 8:                                                                                    \
		stem##_8(op, 8);                                                                   \
		break;                                                                             \
	case 9:                                                                                    \
		stem##_16(op, 9);                                                                  \
		break;                                                                             \
	case 10:                                                                                   \
		stem##_16(op, 10);                                                                 \
		break;                                                                             \
	case 11:                                                                                   \
		stem##_16(op, 11);                                                                 \
		break;                                                                             \
	case 12:                                                                                   \
		stem##_16(op, 12);                                                                 \
		break;                                                                             \
	case 13:                                                                                   \
		stem##_16(op, 13);                                                                 \
		break;                                                                             \
	case 14:                                                                                   \
		stem##_16(op, 14);                                                                 \
		break;                                                                             \
	case 15:                                                                                   \
		stem##_16(op, 15);                                                                 \
		break;                                                                             \
	case 16:                                                                                   \
		stem##_16(op, 16);                                                                 \
		break;                                                                             \
	}

static void encode_plain(const struct encode_op *op)
{
	DISPATCH(encode_all, op)
}

static void decode_plain(const struct decode_op *op)
{
	DISPATCH(decode_all, op)
}

#ifdef __x86_64__
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

static bool have_avx512(void)
{
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

AVX512 static void encode_avx512(const struct encode_op *op){ DISPATCH(encode_all, op) }

AVX512 static void decode_avx512(const struct decode_op *op)
{
	DISPATCH(decode_all, op)
}
#else
#define encode_avx512 encode_plain
#define decode_avx512 decode_plain

static bool have_avx512(void)
{
	return false;
}
#endif

void cpu_encode(const struct encode_op *op)
{
	if (op->layout->kind == LAYOUT_REFERENCES)
		cpu_encode_references(op);
	else
		(have_avx512() ? encode_avx512 : encode_plain)(op);
}

void cpu_decode(const struct decode_op *op)
{
	if (op->layout->kind == LAYOUT_REFERENCES)
		cpu_decode_references(op);
	else
		(have_avx512() ? decode_avx512 : decode_plain)(op);
}
