/*
 * delta_pack.c - pack sorted encoded keys as differences of neighbours
 *
 * Packing takes two passes over a block, which stays in the cache: one finds the widths, after
 * which the exact size is known, and one packs.
 *
 * For keys of 4 and 8 bytes there is an instance of pack and unpack for each width, in which all
 * shifts and masks are constants. That doubles the speed of packing. For 16 bytes, whose words are
 * pairs of registers, it is not worth its size.
 */
#include "src/record/delta_pack.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "src/record/delta_pack.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "codes are stored as they are");

#define INLINE __attribute__((always_inline)) static inline

static size_t n_groups(size_t n)
{
	return (n + DELTA_GROUP_N - 1) / DELTA_GROUP_N;
}

/* Return the size of a block of n keys whose miniblocks have these widths. */
static size_t encoded_nbytes(size_t n, uint32_t key_nbytes, const unsigned char *widths)
{
	size_t nbytes = 0;

	for (size_t first = 0; first < n; first += DELTA_MINIBLOCK_N)
		nbytes += delta_miniblock_nbytes(delta_miniblock_n(n, first),
						 widths[first / DELTA_MINIBLOCK_N]);
	return delta_block_nbytes(n, key_nbytes, nbytes);
}

#define FOUR_WIDTHS(x, w) x(w) x(w + 1) x(w + 2) x(w + 3)
#define SIXTEEN_WIDTHS(x, w)                                                                       \
	FOUR_WIDTHS(x, w) FOUR_WIDTHS(x, w + 4) FOUR_WIDTHS(x, w + 8) FOUR_WIDTHS(x, w + 12)

#define KEY uint32_t
#define WORD uint64_t
#define NAME(stem) stem##_4
#define EACH_WIDTH(x) SIXTEEN_WIDTHS(x, 1) SIXTEEN_WIDTHS(x, 17)
#include "src/record/delta_pack.inc"

#define KEY uint64_t
#define WORD uint64_t
#define NAME(stem) stem##_8
#define EACH_WIDTH(x)                                                                              \
	SIXTEEN_WIDTHS(x, 1)                                                                       \
	SIXTEEN_WIDTHS(x, 17) SIXTEEN_WIDTHS(x, 33) FOUR_WIDTHS(x, 49) FOUR_WIDTHS(x, 53)
#include "src/record/delta_pack.inc"

#define KEY uint128_t
#define WORD uint128_t
#define NAME(stem) stem##_16
#define EACH_WIDTH(x)
#include "src/record/delta_pack.inc"

size_t delta_encode(const void *keys, size_t n, uint32_t key_nbytes, void *packed, size_t capacity)
{
	switch (key_nbytes) {
	case 4:
		return encode_4(keys, n, packed, capacity);
	case 8:
		return encode_8(keys, n, packed, capacity);
	default:
		assert(key_nbytes == 16);
		return encode_16(keys, n, packed, capacity);
	}
}

int delta_decode(const void *packed, size_t packed_nbytes, void *keys, size_t n,
		 uint32_t key_nbytes)
{
	switch (key_nbytes) {
	case 4:
		return decode_4(packed, packed_nbytes, keys, n);
	case 8:
		return decode_8(packed, packed_nbytes, keys, n);
	default:
		assert(key_nbytes == 16);
		return decode_16(packed, packed_nbytes, keys, n);
	}
}
