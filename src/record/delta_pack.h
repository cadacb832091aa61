/*
 * delta_pack.h - pack sorted encoded keys as differences of neighbours, in as few bits as these
 * need
 *
 * n keys of 4, 8 or 16 bytes are divided into miniblocks of 256; the last one may be shorter. A
 * miniblock stores its differences in as many bits as its largest one needs. It is independent of
 * the others: any thread, or thread block of a GPU, can pack or unpack it, once the widths before
 * it are summed up.
 *
 *	bases     the first key of each miniblock
 *	widths    one byte for each miniblock: the bits of a difference;
 *	          zeros, to a multiple of 32 bytes
 *	packed    miniblock 0: 32 bytes x its width
 *	          miniblock 1, ...
 *	          the last: for each 8 keys, or fewer at the end, as many bytes as its width
 *	          at least 16 zeros, to a multiple of 32 bytes
 *
 * Difference i of a miniblock is key[i] - key[i - 1]; difference 0, and those after the end of the
 * last miniblock, are 0. Their bits follow each other, lowest first, and fill bytes from the lowest
 * bit. So 8 differences take as many bytes as a difference has bits, and every eighth begins with a
 * byte. With the zeros at the end, a difference of up to 56 bits can be read with one load of 8
 * bytes, a shift and a mask, and one of up to 120 bits with a load of 16. Wider ones are stored
 * with all bits of the key.
 *
 * Everything is little-endian. Keys that are not sorted are restored too, because differences wrap,
 * but they take all their bits.
 *
 * A better code would gain little: for random keys, whose differences are distributed
 * exponentially, the largest of 256 is 2.6 bits wider than the mean. An optimal code (Rice) would
 * save 1.5 of these, a thirtieth of a u64's bits, for a loop over bits.
 */
#pragma once

#include <stddef.h>

#include "src/record/key_encoding.h"

/*
 * Pack n keys of key_nbytes, aligned, into at most `capacity` bytes. Returns the packed size, or 0
 * if it would exceed the capacity; the contents are then undefined.
 */
size_t delta_encode(const void *keys, size_t n, uint32_t key_nbytes, void *packed, size_t capacity);

/*
 * Unpack n keys. Returns 0, or -EBADMSG if `packed` is not what delta_encode() makes of any n keys;
 * the keys are then undefined. Reads and writes nothing outside the two buffers, whatever they
 * contain.
 */
int delta_decode(const void *packed, size_t packed_nbytes, void *keys, size_t n,
		 uint32_t key_nbytes);

/* --- The format, shared by both back ends. The keys of a block take at most 2^30 bytes. --- */

enum {
	DELTA_MINIBLOCK_N = 256, /* keys that share a width */
	DELTA_GROUP_N = 8,       /* keys that begin with a byte, whatever their width is */
	DELTA_UNIT_NBYTES = 32,
	DELTA_SLACK_NBYTES = 16,
};

static inline GSORT_HD uint64_t delta_round_up(uint64_t nbytes)
{
	return (nbytes + DELTA_UNIT_NBYTES - 1) / DELTA_UNIT_NBYTES * DELTA_UNIT_NBYTES;
}

static inline GSORT_HD uint64_t delta_n_miniblocks(uint64_t n)
{
	return (n + DELTA_MINIBLOCK_N - 1) / DELTA_MINIBLOCK_N;
}

/* Return the size of the miniblock that begins at `first`, of n keys. */
static inline GSORT_HD uint32_t delta_miniblock_n(uint64_t n, uint64_t first)
{
	return n - first < DELTA_MINIBLOCK_N ? (uint32_t)(n - first) : (uint32_t)DELTA_MINIBLOCK_N;
}

/* Return the size of the packed differences of a miniblock of n keys. */
static inline GSORT_HD uint32_t delta_miniblock_nbytes(uint32_t n, uint32_t width)
{
	return (n + DELTA_GROUP_N - 1) / DELTA_GROUP_N * width;
}

/* Bases, then widths, then zeros. */
static inline GSORT_HD uint64_t delta_widths_offset(uint64_t n, uint32_t key_nbytes)
{
	return delta_n_miniblocks(n) * key_nbytes;
}

static inline GSORT_HD uint64_t delta_header_nbytes(uint64_t n, uint32_t key_nbytes)
{
	return delta_round_up(delta_n_miniblocks(n) * (key_nbytes + 1));
}

/* Return the size of a block with packed differences of packed_nbytes. */
static inline GSORT_HD uint64_t delta_block_nbytes(uint64_t n, uint32_t key_nbytes,
						   uint64_t packed_nbytes)
{
	return delta_round_up(delta_header_nbytes(n, key_nbytes) + packed_nbytes +
			      DELTA_SLACK_NBYTES);
}

/* Return the widest difference below the full width. */
static inline GSORT_HD uint32_t delta_max_width(uint32_t key_nbytes)
{
	return key_nbytes == 4 ? 32 : 8 * key_nbytes - 8;
}

/* Return the width for differences of at most n_bits. */
static inline GSORT_HD uint32_t delta_width(uint32_t n_bits, uint32_t key_nbytes)
{
	return n_bits > delta_max_width(key_nbytes) ? 8 * key_nbytes : n_bits;
}

static inline GSORT_HD bool delta_is_width(uint32_t width, uint32_t key_nbytes)
{
	return width <= delta_max_width(key_nbytes) || width == 8 * key_nbytes;
}
