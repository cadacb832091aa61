/*
 * code - from the bits of a key to the code that sorts like it, and back; host and device
 *
 * A plain record is one key of 1 to 16 bytes. Its code is the unsigned integer, of an element of 4,
 * 8 or 16 bytes, whose order is the key's. The code stands in the low record_nbytes of its element;
 * the bytes above are zero.
 *
 *	bits   the record's bytes as an unsigned integer, most significant byte last in memory
 *	       (le) or first (be, and bN)
 *	fold   for a float with its sign bit set, all bits but the sign; else 0
 *	code = (bits ^ flip ^ fold(bits)) + turn
 *
 * where flip holds the sign bit for signed types and floats (negative before positive), and is
 * complemented over the whole key when the order is descending. A negative float has its magnitude
 * inverted by fold, which gives IEEE 754's totalOrder with every bit preserved (the transformation
 * that radix sorts use; Herf 2001). Both steps are involutions and fold only asks for the sign,
 * which flip moves but does not hide, so the way back is
 *
 *	bits = (code - turn ^ flip) ^ fold(code - turn ^ flip)	since fold leaves the sign alone.
 *
 * turn makes numpy's order of it. What is last there, and first by its bits, are the least codes:
 * NaT, of signed numbers the least, and NaN with a sign. Codes are turned around as far as that,
 * modulo their width, and these come behind all others:
 *
 *	-NaN  -inf ... +inf  +NaN	becomes		-inf ... +inf  +NaN  -NaN
 *
 * It is as good as the numeric order, in which all NaN are equal, and both zeros: which of two that
 * are equal comes first is left open there, unless the record says more (key_word.h).
 *
 * The functions are made by a macro for the three element sizes; C and CUDA compile the same text,
 * so that both back ends agree by construction.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define GSORT_HD __host__ __device__
#else
#define GSORT_HD
#endif

__extension__ typedef unsigned __int128 uint128_t;

/* A 128-bit mask in two words, so that the struct is the same to every compiler. */
struct mask128 {
	uint64_t lo, hi;
};

/* Plain data, passed by value to kernels. */
struct code_map {
	uint8_t record_nbytes;  /* 1..16 */
	uint8_t element_nbytes; /* 4, 8 or 16; the smallest that holds the record */
	bool swap;              /* most significant byte first in the record */
	bool is_float;          /* fold negative values */
	struct mask128 flip;    /* within the low record_nbytes */
	struct mask128 turn;    /* the same; added */
};

/* Does encoding leave the bytes as they are? Then a record is its element. */
static inline GSORT_HD bool code_map_is_identity(const struct code_map *map)
{
	return map->record_nbytes == map->element_nbytes && !map->swap && !map->is_float &&
	       !map->flip.lo && !map->flip.hi && !map->turn.lo && !map->turn.hi;
}

#define CODE_DEFINE(suffix, type)                                                                  \
	static inline GSORT_HD type code_mask_##suffix(struct mask128 mask)                        \
	{                                                                                          \
		return (type)(((uint128_t)mask.hi << 64) | mask.lo);                               \
	}                                                                                          \
	static inline GSORT_HD type code_fold_##suffix(type bits, const struct code_map *map)      \
	{                                                                                          \
		const unsigned top = map->record_nbytes * 8u - 1;                                  \
		const type below = (type)(((type)1 << top) - 1);                                   \
                                                                                                   \
		return map->is_float && (bits >> top & 1) ? below : (type)0;                       \
	}                                                                                          \
	/* What is left of a sum within record_nbytes. */                                          \
	static inline GSORT_HD type code_within_##suffix(type sum, const struct code_map *map)     \
	{                                                                                          \
		return sum & (type)((type) ~(type)0 >> 8 * (sizeof(type) - map->record_nbytes));   \
	}                                                                                          \
	/* bits: as an integer, byte order already undone */                                       \
	static inline GSORT_HD type code_encode_##suffix(type bits, const struct code_map *map)    \
	{                                                                                          \
		const type code = bits ^ code_mask_##suffix(map->flip) ^                           \
				  code_fold_##suffix(bits, map);                                   \
                                                                                                   \
		return code_within_##suffix(code + code_mask_##suffix(map->turn), map);            \
	}                                                                                          \
	static inline GSORT_HD type code_decode_##suffix(type code, const struct code_map *map)    \
	{                                                                                          \
		const type turned = code - code_mask_##suffix(map->turn);                          \
		const type bits = code_within_##suffix(turned, map) ^                              \
				  code_mask_##suffix(map->flip);                                   \
                                                                                                   \
		return bits ^ code_fold_##suffix(bits, map);                                       \
	}                                                                                          \
	/* Load record_nbytes from `record` (any alignment) as an integer of the right order. */   \
	static inline GSORT_HD type code_load_##suffix(const unsigned char *record,                \
						       const struct code_map *map)                 \
	{                                                                                          \
		const unsigned n = map->record_nbytes;                                             \
		type bits = 0;                                                                     \
                                                                                                   \
		for (unsigned i = 0; i < n; i++)                                                   \
			bits |= (type)record[map->swap ? n - 1 - i : i] << 8 * i;                  \
		return bits;                                                                       \
	}                                                                                          \
	static inline GSORT_HD void code_store_##suffix(unsigned char *record, type bits,          \
							const struct code_map *map)                \
	{                                                                                          \
		const unsigned n = map->record_nbytes;                                             \
                                                                                                   \
		for (unsigned i = 0; i < n; i++)                                                   \
			record[map->swap ? n - 1 - i : i] = (unsigned char)(bits >> 8 * i);        \
	}

CODE_DEFINE(4, uint32_t)
CODE_DEFINE(8, uint64_t)
CODE_DEFINE(16, uint128_t)
