/*
 * key_type - what a key of a record is, and how its type is spelled
 *
 * A type is a kind, a width and a byte order; its name is the kind's letters and the width, in bits
 * or, of bytes, in bytes, and be if the most significant byte comes first: u24, f32be, b10. All
 * kinds, and what is particular to each, are rows of one table (key_type.c). Other names, of C and
 * of numpy, are understood too: float32, double, uint64_t, <f4.
 *
 * Floats have two orders, and so has what is made of them, and what has a value that is none:
 *
 *	:t	total: every bit counts, -NaN < -inf < ... < -0.0 < +0.0 < ... < +inf < +NaN
 *	:n	numeric, that of numpy: -inf < ... < -0.0 = +0.0 < ... < +inf < all NaN, equal
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum key_kind {
	KEY_UNSIGNED,
	KEY_SIGNED,
	KEY_FLOAT,   /* IEEE 754 */
	KEY_BFLOAT,  /* the upper half of such a float of 32 bits: bfloat16 */
	KEY_COMPLEX, /* two floats: the real part, the imaginary part */
	KEY_TIME,    /* signed; the least is no time at all: NaT, as numpy calls it */
	KEY_BOOL,    /* a byte, 0 or 1; others sort as the numbers that they are */
	KEY_BYTES,
};

struct key {
	uint64_t offset; /* first byte in the record */
	uint32_t nbytes;
	enum key_kind kind;
	bool big_endian; /* always true for KEY_BYTES */
	bool descending;
	bool numeric;            /* the order :n; only of kinds that have it */
	bool has_explicit_order; /* this was said of it, by :n or :t */
	uint32_t reserved;       /* in the place of padding: keys that are equal are equal bytes */
};

_Static_assert(sizeof(struct key) == 24, "no padding");

enum { KEY_TYPE_NBYTES = 16 };

/*
 * Parse a TYPE ("u64", "i32be", "f64le:n", "b10", "double") into *ret_key, at offset 0, ascending.
 * Returns 0, or -EINVAL without a message when `text` is no type; *ret_key is then untouched.
 */
int key_parse_type(const char *text, struct key *ret_key);

/* Write the TYPE of `key` into `text`, "f32be" or "f32be:n" say. */
void key_format_type(const struct key *key, char text[static KEY_TYPE_NBYTES]);

/*
 * The keys of records of record_nbytes in few words: the type when the record is one key, else
 * "8:i32be:r,0:b4".
 */
enum { KEYS_TEXT_NBYTES = 64 };
void keys_format(const struct key *keys, uint32_t n, uint64_t record_nbytes,
		 char text[static KEYS_TEXT_NBYTES]);

/* What a message about an unknown type ends with. */
#define KEY_TYPES_HINT                                                                             \
	"use u8, u16, u24 ... u128, i8 ... i128, f16, f32, f64, bf16, c64, c128, t64, bool, each " \
	"with le or be after it if need be, or bN for N bytes"

/* What may have been meant by `text`, which is no type, into `text`; false if nothing is near. */
bool key_suggest_type(const char *typo, char text[static KEY_TYPE_NBYTES]);

/* The i-th of all types of one width, little-endian. False if there are no more. */
bool key_type_by_index(unsigned i, struct key *ret_key);

/* Are values with the top bit set before those without? */
bool key_has_sign(const struct key *key);

/* And is their magnitude turned around? */
bool key_is_float(const struct key *key);

/* Does the kind have the orders :n and :t? */
bool key_has_orders(const struct key *key);

/* Can values be equal and differ in their bits? Such as -0.0 and +0.0, in the numeric order. */
bool key_has_equal_bit_patterns(const struct key *key);

/* Of a float, the bits behind sign and exponent; else 0. */
unsigned key_n_fraction_bits(const struct key *key);
