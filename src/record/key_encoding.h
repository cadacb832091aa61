/*
 * key_encoding - from the bits of a key to the code that sorts like it, and back; host and device
 *
 * A plain record is its keys and nothing else: one key of 1 to 16 bytes, or several that together
 * have each byte of it once. Its code is the unsigned integer, of an element of 4, 8 or 16 bytes,
 * whose order is that of the keys. The code stands in the low record_nbytes of its element; the
 * bytes above are zero.
 *
 *	raw    the record's bytes as an unsigned integer, first byte lowest
 *	bits   the keys, one after the other from the top, each with its most significant byte first
 *	fold   for a float with its sign bit set, all its bits but the sign; else 0
 *	code = (bits ^ flip ^ fold(bits)) + turn
 *
 * where flip holds the sign bit for signed types and floats (negative before positive), and is
 * complemented over a whole key when its order is descending. A negative float has its magnitude
 * inverted by fold, which gives IEEE 754's totalOrder with every bit preserved (the transformation
 * that radix sorts use; Herf 2001). Both steps are involutions and fold only asks for the sign,
 * which flip moves but does not hide, so the way back is
 *
 *	bits = (code - turn ^ flip) ^ fold(code - turn ^ flip)	since fold leaves the sign alone.
 *
 * turn makes numpy's order of it. What is last there, and first by its bits, are the least codes:
 * NaT, of signed numbers the least, and NaN with a sign. Codes (of one key) are turned as far
 * as that, modulo their width, and these come behind all others:
 *
 *	-NaN  -inf ... +inf  +NaN	becomes		-inf ... +inf  +NaN  -NaN
 *
 * It is as good as the numeric order, in which all NaN are equal, and both zeros: which of two that
 * are equal comes first is left open there, unless the record says more (normalised_key.h).
 *
 * From raw to bits bytes change places, as do those of a number that stands most significant byte
 * first. Any change of places is made of moves: words of 8 bytes (of 4 in elements of 4), whose
 * bytes may be turned around, are rotated, and some of their bytes are taken. Bytes that go the
 * same way go together, so that few moves do for what occurs:
 *
 *	0:u32 4:u32	a0 a1 a2 a3 b0 b1 b2 b3 -> b0 b1 b2 b3 a0 a1 a2 a3: rotated by 32
 *	0:u32be 4:u32be	turned around, all of it
 *	0:u32be 4:u32	turned around, the upper half; rotated by 32, the lower half
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

/* The order of bytes turned around. */
static inline GSORT_HD uint32_t code_swap_4(uint32_t x)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(x, 0, 0x0123);
#else
	return __builtin_bswap32(x);
#endif
}

static inline GSORT_HD uint64_t code_swap_8(uint64_t x)
{
#ifdef __CUDA_ARCH__
	return (uint64_t)code_swap_4((uint32_t)x) << 32 | code_swap_4((uint32_t)(x >> 32));
#else
	return __builtin_bswap64(x);
#endif
}

static inline GSORT_HD uint128_t code_swap_16(uint128_t x)
{
	return (uint128_t)code_swap_8((uint64_t)x) << 64 | code_swap_8((uint64_t)(x >> 64));
}

/* Some bytes of a word to another word, or to other places in it. */
struct code_move {
	uint64_t mask;  /* of those that are taken, where they come to */
	uint8_t from;   /* which word, 0 or 1; */
	bool swap;      /* turned around; */
	uint8_t rotate; /* then rotated up by so many bits */
	uint8_t to;     /* which word */
};

/* Floats of one width among the keys. */
struct code_fold {
	struct mask128 signs; /* in the bits */
	uint8_t n_below;      /* bits from the sign down to the lowest */
};

/* A byte can be moved in one way only, and floats of five widths have 15 bytes. */
enum { CODE_MOST_MOVES = 16, CODE_MOST_FOLDS = 5 };

/* Plain data, passed by value to kernels; key_encoding_plan.h makes it. */
struct code_map {
	uint8_t record_nbytes;  /* 1..16 */
	uint8_t element_nbytes; /* 4, 8 or 16; the smallest that holds the record */
	bool swap;              /* most significant byte first in the record: no moves */
	bool is_float;          /* fold negative values of the whole record */
	struct mask128 flip;    /* within the low record_nbytes */
	struct mask128 turn;    /* the same; added; of one key */
	/* Of several keys, where that is more: */
	uint8_t n_moves, n_folds;
	struct code_fold folds[CODE_MOST_FOLDS];
	struct code_move moves[CODE_MOST_MOVES]; /* from raw to bits, n_moves; ... */
	struct code_move back[CODE_MOST_MOVES];  /* ... and back, as many */
};

/* Does encoding leave the bytes as they are? Then a record is its element. */
static inline GSORT_HD bool code_map_is_identity(const struct code_map *map)
{
	return map->record_nbytes == map->element_nbytes && !map->swap && !map->n_moves &&
	       !map->is_float && !map->n_folds && !map->flip.lo && !map->flip.hi && !map->turn.lo &&
	       !map->turn.hi;
}

/* word: that of moves. */
#define CODE_DEFINE(suffix, type, word_suffix, word)                                               \
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
	/* The bits below each sign that is set: what is borrowed for its lowest one. */           \
	static inline GSORT_HD type code_fold_some_##suffix(type bits,                             \
							    const struct code_fold *fold)          \
	{                                                                                          \
		const type signs = bits & code_mask_##suffix(fold->signs);                         \
                                                                                                   \
		return signs - (signs >> fold->n_below);                                           \
	}                                                                                          \
	static inline GSORT_HD type code_fold_all_##suffix(type bits, const struct code_map *map)  \
	{                                                                                          \
		type folded = bits ^ code_fold_##suffix(bits, map);                                \
                                                                                                   \
		for (unsigned i = 0; i < map->n_folds; i++)                                        \
			folded ^= code_fold_some_##suffix(bits, &map->folds[i]);                   \
		return folded;                                                                     \
	}                                                                                          \
	/* What is left of a sum within record_nbytes. */                                          \
	static inline GSORT_HD type code_within_##suffix(type sum, const struct code_map *map)     \
	{                                                                                          \
		return sum & (type)((type) ~(type)0 >> 8 * (sizeof(type) - map->record_nbytes));   \
	}                                                                                          \
	static inline GSORT_HD type code_encode_##suffix(type bits, const struct code_map *map)    \
	{                                                                                          \
		const type code = code_fold_all_##suffix(bits, map) ^                              \
				  code_mask_##suffix(map->flip);                                   \
                                                                                                   \
		return code_within_##suffix(code + code_mask_##suffix(map->turn), map);            \
	}                                                                                          \
	static inline GSORT_HD type code_decode_##suffix(type code, const struct code_map *map)    \
	{                                                                                          \
		const type turned = code - code_mask_##suffix(map->turn);                          \
                                                                                                   \
		return code_fold_all_##suffix(                                                     \
			code_within_##suffix(turned, map) ^ code_mask_##suffix(map->flip), map);   \
	}                                                                                          \
	/* What a move makes of its word. */                                                       \
	static inline GSORT_HD word code_move_##suffix(word from, const struct code_move *move)    \
	{                                                                                          \
		const unsigned n_bits = 8 * sizeof(word), up = move->rotate;                       \
		const word turned = move->swap ? code_swap_##word_suffix(from) : from;             \
                                                                                                   \
		return (turned << up | turned >> ((n_bits - up) % n_bits)) & (word)move->mask;     \
	}                                                                                          \
	static inline GSORT_HD type code_move_all_##suffix(                                        \
		type from, const struct code_move *moves, unsigned n)                              \
	{                                                                                          \
		type to = 0;                                                                       \
                                                                                                   \
		for (unsigned i = 0; i < n; i++)                                                   \
			to |= (type)code_move_##suffix((word)(from >> 64 * moves[i].from),         \
						       &moves[i])                                  \
			      << 64 * moves[i].to;                                                 \
		return to;                                                                         \
	}                                                                                          \
	/* Between raw and bits, where no moves are needed: it is the same way. */                 \
	static inline GSORT_HD type code_turn_##suffix(type value, const struct code_map *map)     \
	{                                                                                          \
		const unsigned above = 8 * ((unsigned)sizeof value - map->record_nbytes);          \
                                                                                                   \
		return map->swap ? code_swap_##suffix(value) >> above : value;                     \
	}                                                                                          \
	static inline GSORT_HD type code_of_raw_##suffix(type raw, const struct code_map *map)     \
	{                                                                                          \
		return code_encode_##suffix(map->n_moves ? code_move_all_##suffix(raw, map->moves, \
										  map->n_moves) :  \
							   code_turn_##suffix(raw, map),           \
					    map);                                                  \
	}                                                                                          \
	static inline GSORT_HD type code_raw_of_##suffix(type code, const struct code_map *map)    \
	{                                                                                          \
		const type bits = code_decode_##suffix(code, map);                                 \
                                                                                                   \
		return map->n_moves ? code_move_all_##suffix(bits, map->back, map->n_moves) :      \
				      code_turn_##suffix(bits, map);                               \
	}

CODE_DEFINE(4, uint32_t, 4, uint32_t)
CODE_DEFINE(8, uint64_t, 8, uint64_t)
CODE_DEFINE(16, uint128_t, 8, uint64_t)
