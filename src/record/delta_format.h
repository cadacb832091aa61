/*
 * delta_format - the geometry of packed codes (see delta_pack.h); host and device
 *
 * All that the two back ends have to agree on but the bits themselves: where in a block something
 * stands, and how many bytes it takes. A block holds n codes of key_nbytes; its codes
 * take at most 2^30 bytes.
 */
#pragma once

#include "src/record/key_encoding.h"

enum {
	DELTA_MINIBLOCK_N = 256, /* codes that share a width */
	DELTA_GROUP_N = 8,       /* codes that begin with a byte, whatever their width is */
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

/* Of the n codes, those in the miniblock that begins at `first`. */
static inline GSORT_HD uint32_t delta_miniblock_n(uint64_t n, uint64_t first)
{
	return n - first < DELTA_MINIBLOCK_N ? (uint32_t)(n - first) : (uint32_t)DELTA_MINIBLOCK_N;
}

/* The packed differences of a miniblock of n codes. */
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

/* All in all, with packed differences of packed_nbytes. */
static inline GSORT_HD uint64_t delta_block_nbytes(uint64_t n, uint32_t key_nbytes,
						   uint64_t packed_nbytes)
{
	return delta_round_up(delta_header_nbytes(n, key_nbytes) + packed_nbytes +
			      DELTA_SLACK_NBYTES);
}

/* The widest difference but for the full one. */
static inline GSORT_HD uint32_t delta_max_width(uint32_t key_nbytes)
{
	return key_nbytes == 4 ? 32 : 8 * key_nbytes - 8;
}

/* The width for differences of at most so many bits. */
static inline GSORT_HD uint32_t delta_width(uint32_t n_bits, uint32_t key_nbytes)
{
	return n_bits > delta_max_width(key_nbytes) ? 8 * key_nbytes : n_bits;
}

static inline GSORT_HD bool delta_is_width(uint32_t width, uint32_t key_nbytes)
{
	return width <= delta_max_width(key_nbytes) || width == 8 * key_nbytes;
}
