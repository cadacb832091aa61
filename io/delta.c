/*
 * delta - sorted codes as the differences of neighbours (see delta.h)
 *
 * Encoding takes two passes over a block, which stays in the cache: one for the widths, after which
 * the exact size is known, and one that packs.
 *
 * For codes of 4 and 8 bytes there is an instance of pack and unpack for each width, in which all
 * shifts and masks are constants; that doubles the speed of packing. For 16 bytes, whose words are
 * pairs of registers, it does not pay for its size.
 */
#include "io/delta.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "src/code.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "codes are stored as they are");

enum { MINIBLOCK_N = 256, GROUP_N = 8, UNIT_NBYTES = 32, SLACK_NBYTES = 16 };

#define INLINE __attribute__((always_inline)) static inline

static size_t round_up(size_t nbytes)
{
	return (nbytes + UNIT_NBYTES - 1) / UNIT_NBYTES * UNIT_NBYTES;
}

static size_t n_miniblocks(size_t n)
{
	return (n + MINIBLOCK_N - 1) / MINIBLOCK_N;
}

/* Of the n codes, those in the miniblock that begins at `first`. */
static size_t miniblock_n(size_t n, size_t first)
{
	return n - first < MINIBLOCK_N ? n - first : MINIBLOCK_N;
}

static size_t n_groups(size_t n)
{
	return (n + GROUP_N - 1) / GROUP_N;
}

static size_t header_nbytes(size_t n, uint32_t code_nbytes)
{
	return round_up(n_miniblocks(n) * (code_nbytes + 1));
}

/* Of n codes whose miniblocks have these widths, all in all. */
static size_t encoded_nbytes(size_t n, uint32_t code_nbytes, const unsigned char *widths)
{
	size_t nbytes = header_nbytes(n, code_nbytes) + SLACK_NBYTES;

	for (size_t first = 0; first < n; first += MINIBLOCK_N)
		nbytes += n_groups(miniblock_n(n, first)) * widths[first / MINIBLOCK_N];
	return round_up(nbytes);
}

static unsigned bit_length(uint128_t value)
{
	const uint64_t low = (uint64_t)value, high = (uint64_t)(value >> 64);

	if (high)
		return 128 - (unsigned)__builtin_clzll(high);
	return low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

#define FOUR_WIDTHS(x, w) x(w) x(w + 1) x(w + 2) x(w + 3)
#define SIXTEEN_WIDTHS(x, w)                                                                       \
	FOUR_WIDTHS(x, w) FOUR_WIDTHS(x, w + 4) FOUR_WIDTHS(x, w + 8) FOUR_WIDTHS(x, w + 12)

#define CODE uint32_t
#define WORD uint64_t
#define NAME(stem) stem##_4
#define EACH_WIDTH(x) SIXTEEN_WIDTHS(x, 1) SIXTEEN_WIDTHS(x, 17)
#include "io/delta.inc"

#define CODE uint64_t
#define WORD uint64_t
#define NAME(stem) stem##_8
#define EACH_WIDTH(x)                                                                              \
	SIXTEEN_WIDTHS(x, 1)                                                                       \
	SIXTEEN_WIDTHS(x, 17) SIXTEEN_WIDTHS(x, 33) FOUR_WIDTHS(x, 49) FOUR_WIDTHS(x, 53)
#include "io/delta.inc"

#define CODE uint128_t
#define WORD uint128_t
#define NAME(stem) stem##_16
#define EACH_WIDTH(x)
#include "io/delta.inc"

size_t delta_encode(const void *codes, size_t n, uint32_t code_nbytes, void *stored,
		    size_t capacity)
{
	switch (code_nbytes) {
	case 4:
		return encode_4(codes, n, stored, capacity);
	case 8:
		return encode_8(codes, n, stored, capacity);
	default:
		assert(code_nbytes == 16);
		return encode_16(codes, n, stored, capacity);
	}
}

int delta_decode(const void *stored, size_t stored_nbytes, void *codes, size_t n,
		 uint32_t code_nbytes)
{
	switch (code_nbytes) {
	case 4:
		return decode_4(stored, stored_nbytes, codes, n);
	case 8:
		return decode_8(stored, stored_nbytes, codes, n);
	default:
		assert(code_nbytes == 16);
		return decode_16(stored, stored_nbytes, codes, n);
	}
}
