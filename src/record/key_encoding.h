/*
 * key_encoding.h - from a key to an unsigned integer that sorts like it, and back; host and device
 *
 * A key-only record is its keys and nothing else: one key of 1 to 16 bytes, or several that
 * together cover each byte once. Its encoded key is an unsigned integer, in an element of 4, 8 or
 * 16 bytes, whose order is that of the keys. It is in the low record_nbytes of the element; the
 * bytes above are zero.
 *
 *	raw      the record's bytes as an unsigned integer, first byte lowest
 *	bits     the keys, one after the other from the top, most significant byte first
 *	fold     for a float with its sign bit set: all its bits but the sign; else 0
 *	encoded  (bits ^ xor_mask ^ fold(bits)) + nan_offset
 *
 * xor_mask has the sign bit of signed types and floats (negative before positive), and is
 * complemented over a whole key if its order is descending. fold inverts the magnitude of a
 * negative float. That gives IEEE 754's totalOrder and keeps every bit (the transformation of radix
 * sorts; Herf 2001). Both steps are involutions. fold depends only on the sign, which it leaves
 * alone and which xor_mask moves predictably; so the way back is
 *
 *	bits = x ^ fold(x), where x = (encoded - nan_offset) ^ xor_mask
 *
 * nan_offset makes numpy's order of that. The values that numpy puts last have the lowest encoded
 * keys: NaT, the lowest signed number, and NaN with the sign bit set. Adding the offset, modulo the
 * width of the key, rotates them to the end (a single key only):
 *
 *	-NaN  -inf ... +inf  +NaN	becomes		-inf ... +inf  +NaN  -NaN
 *
 * That is one of the orders that the numeric order allows: it leaves open which of two NaN, or of
 * two zeros, comes first. If a record has other bytes, these decide instead (normalised_key.h).
 *
 * From raw to bits, bytes change places: keys are concatenated, and big-endian keys are swapped.
 * Any permutation is made of moves. A move takes a word of 8 bytes (4 in elements of 4), optionally
 * swaps its bytes, rotates it, and keeps some of its bytes. Bytes that go the same way share a
 * move, so what occurs in practice takes few:
 *
 *	0:u32 4:u32      a0 a1 a2 a3 b0 b1 b2 b3 -> b0 b1 b2 b3 a0 a1 a2 a3: rotate by 32
 *	0:u32be 4:u32be  swap the whole word
 *	0:u32be 4:u32    swap, keep the upper half; rotate by 32, keep the lower half
 *
 * A macro makes the functions for the three widths. C and CUDA compile the same text, so both back
 * ends agree by construction.
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

/* Return the number of bits of a value without leading zeros; 0 for 0. */
static inline unsigned uint128_bit_length(uint128_t value)
{
	const uint64_t low = (uint64_t)value, high = (uint64_t)(value >> 64);

	if (high)
		return 128 - (unsigned)__builtin_clzll(high);
	return low ? 64 - (unsigned)__builtin_clzll(low) : 0;
}

/* A 128-bit mask in two words, so that the struct is the same to every compiler. */
struct mask128 {
	uint64_t lo, hi;
};

static inline GSORT_HD uint32_t byte_swap_4(uint32_t x)
{
#ifdef __CUDA_ARCH__
	return __byte_perm(x, 0, 0x0123);
#else
	return __builtin_bswap32(x);
#endif
}

static inline GSORT_HD uint64_t byte_swap_8(uint64_t x)
{
#ifdef __CUDA_ARCH__
	return (uint64_t)byte_swap_4((uint32_t)x) << 32 | byte_swap_4((uint32_t)(x >> 32));
#else
	return __builtin_bswap64(x);
#endif
}

static inline GSORT_HD uint128_t byte_swap_16(uint128_t x)
{
	return (uint128_t)byte_swap_8((uint64_t)x) << 64 | byte_swap_8((uint64_t)(x >> 64));
}

/* Move some bytes of a word to another word, or to other positions in it. */
struct byte_move {
	uint64_t mask;  /* bytes that are kept, where they go */
	uint8_t from;   /* source word, 0 or 1 */
	bool swap;      /* swap its bytes */
	uint8_t rotate; /* then rotate left by this many bits */
	uint8_t to;     /* destination word */
};

/* The floats of one width among the keys. */
struct float_fields {
	struct mask128 signs;     /* their sign bits, in the bits */
	uint8_t n_magnitude_bits; /* bits below the sign */
};

/* Each byte has one move at most; five floats of different widths have 15 bytes. */
enum { KEY_ENCODING_MAX_MOVES = 16, KEY_ENCODING_MAX_FLOATS = 5 };

/* Made by key_layout.h. Plain data, passed by value to kernels. */
struct key_encoding {
	uint8_t record_nbytes;     /* 1..16 */
	uint8_t element_nbytes;    /* 4, 8 or 16: the smallest that holds the record */
	bool swap;                 /* big-endian in the record: swap, no moves */
	bool is_float;             /* fold the whole record, a single float */
	struct mask128 xor_mask;   /* within the low record_nbytes */
	struct mask128 nan_offset; /* added, within the low record_nbytes; of a single key */
	/* Of several keys, where more is needed: */
	uint8_t n_moves, n_floats;
	struct float_fields floats[KEY_ENCODING_MAX_FLOATS];
	struct byte_move moves[KEY_ENCODING_MAX_MOVES]; /* n_moves, from raw to bits */
	struct byte_move back[KEY_ENCODING_MAX_MOVES];  /* n_moves, from bits to raw */
};

/* Return whether a record equals its element, byte by byte. */
static inline GSORT_HD bool key_encoding_is_identity(const struct key_encoding *encoding)
{
	return encoding->record_nbytes == encoding->element_nbytes && !encoding->swap &&
	       !encoding->n_moves && !encoding->is_float && !encoding->n_floats &&
	       !encoding->xor_mask.lo && !encoding->xor_mask.hi && !encoding->nan_offset.lo &&
	       !encoding->nan_offset.hi;
}

/* word: the type that moves work on. */
#define KEY_ENCODING_DEFINE(suffix, type, word_suffix, word)                                       \
	static inline GSORT_HD type mask128_get_##suffix(struct mask128 mask)                      \
	{                                                                                          \
		return (type)(((uint128_t)mask.hi << 64) | mask.lo);                               \
	}                                                                                          \
	static inline GSORT_HD type sign_invert_mask_##suffix(type bits,                           \
							      const struct key_encoding *encoding) \
	{                                                                                          \
		const unsigned top = encoding->record_nbytes * 8u - 1;                             \
		const type below = (type)(((type)1 << top) - 1);                                   \
                                                                                                   \
		return encoding->is_float && (bits >> top & 1) ? below : (type)0;                  \
	}                                                                                          \
	/* The magnitude bits below each sign that is set: sign - lowest bit. */                   \
	static inline GSORT_HD type float_invert_mask_##suffix(type bits,                          \
							       const struct float_fields *fold)    \
	{                                                                                          \
		const type signs = bits & mask128_get_##suffix(fold->signs);                       \
                                                                                                   \
		return signs - (signs >> fold->n_magnitude_bits);                                  \
	}                                                                                          \
	static inline GSORT_HD type invert_negatives_##suffix(type bits,                           \
							      const struct key_encoding *encoding) \
	{                                                                                          \
		type folded = bits ^ sign_invert_mask_##suffix(bits, encoding);                    \
                                                                                                   \
		for (unsigned i = 0; i < encoding->n_floats; i++)                                  \
			folded ^= float_invert_mask_##suffix(bits, &encoding->floats[i]);          \
		return folded;                                                                     \
	}                                                                                          \
	/* Keep the sum within record_nbytes. */                                                   \
	static inline GSORT_HD type truncate_key_##suffix(type sum,                                \
							  const struct key_encoding *encoding)     \
	{                                                                                          \
		return sum &                                                                       \
		       (type)((type) ~(type)0 >> 8 * (sizeof(type) - encoding->record_nbytes));    \
	}                                                                                          \
	static inline GSORT_HD type encode_key_bits_##suffix(type bits,                            \
							     const struct key_encoding *encoding)  \
	{                                                                                          \
		const type key = invert_negatives_##suffix(bits, encoding) ^                       \
				 mask128_get_##suffix(encoding->xor_mask);                         \
                                                                                                   \
		return truncate_key_##suffix(key + mask128_get_##suffix(encoding->nan_offset),     \
					     encoding);                                            \
	}                                                                                          \
	static inline GSORT_HD type decode_key_bits_##suffix(type key,                             \
							     const struct key_encoding *encoding)  \
	{                                                                                          \
		const type unshifted = key - mask128_get_##suffix(encoding->nan_offset);           \
                                                                                                   \
		return invert_negatives_##suffix(truncate_key_##suffix(unshifted, encoding) ^      \
							 mask128_get_##suffix(encoding->xor_mask), \
						 encoding);                                        \
	}                                                                                          \
	/* What a move makes of its word. */                                                       \
	static inline GSORT_HD word byte_move_##suffix(word from, const struct byte_move *move)    \
	{                                                                                          \
		const unsigned n_bits = 8 * sizeof(word), up = move->rotate;                       \
		const word swapped = move->swap ? byte_swap_##word_suffix(from) : from;            \
                                                                                                   \
		return (swapped << up | swapped >> ((n_bits - up) % n_bits)) & (word)move->mask;   \
	}                                                                                          \
	static inline GSORT_HD type byte_move_all_##suffix(                                        \
		type from, const struct byte_move *moves, unsigned n)                              \
	{                                                                                          \
		type to = 0;                                                                       \
                                                                                                   \
		for (unsigned i = 0; i < n; i++)                                                   \
			to |= (type)byte_move_##suffix((word)(from >> 64 * moves[i].from),         \
						       &moves[i])                                  \
			      << 64 * moves[i].to;                                                 \
		return to;                                                                         \
	}                                                                                          \
	/* Between raw and bits, in either direction, if there are no moves. */                    \
	static inline GSORT_HD type swap_key_bytes_##suffix(type value,                            \
							    const struct key_encoding *encoding)   \
	{                                                                                          \
		const unsigned above = 8 * ((unsigned)sizeof value - encoding->record_nbytes);     \
                                                                                                   \
		return encoding->swap ? byte_swap_##suffix(value) >> above : value;                \
	}                                                                                          \
	static inline GSORT_HD type encode_raw_key_##suffix(type raw,                              \
							    const struct key_encoding *encoding)   \
	{                                                                                          \
		return encode_key_bits_##suffix(                                                   \
			encoding->n_moves ?                                                        \
				byte_move_all_##suffix(raw, encoding->moves, encoding->n_moves) :  \
				swap_key_bytes_##suffix(raw, encoding),                            \
			encoding);                                                                 \
	}                                                                                          \
	static inline GSORT_HD type decode_raw_key_##suffix(type key,                              \
							    const struct key_encoding *encoding)   \
	{                                                                                          \
		const type bits = decode_key_bits_##suffix(key, encoding);                         \
                                                                                                   \
		return encoding->n_moves ?                                                         \
			       byte_move_all_##suffix(bits, encoding->back, encoding->n_moves) :   \
			       swap_key_bytes_##suffix(bits, encoding);                            \
	}

KEY_ENCODING_DEFINE(4, uint32_t, 4, uint32_t)
KEY_ENCODING_DEFINE(8, uint64_t, 8, uint64_t)
KEY_ENCODING_DEFINE(16, uint128_t, 8, uint64_t)
