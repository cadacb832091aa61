/*
 * key_type.h - the type of a key, and how it is spelled
 *
 * A type is a kind, a width and a byte order. Its name has the letters of the kind, the width in
 * bits (for byte strings in bytes), and "be" if it is big-endian: u24, f32be, b10. Kinds are rows
 * of a table (key_type.c). Names of C and numpy are understood, too: float32, double, uint64_t,
 * <f4.
 *
 * Floats, and complex numbers and times, have two orders:
 *
 *	:t	total: every bit counts, -NaN < -inf < ... < -0.0 < +0.0 < ... < +inf < +NaN
 *	:n	numeric, as in numpy: -inf < ... < -0.0 = +0.0 < ... < +inf < all NaN, equal
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum key_kind {
	KEY_UNSIGNED,
	KEY_SIGNED,
	KEY_FLOAT,   /* IEEE 754 */
	KEY_BFLOAT,  /* bfloat16: the upper half of a 32-bit float */
	KEY_COMPLEX, /* two floats: real part, imaginary part */
	KEY_TIME,    /* signed; the lowest value is NaT, "not a time" */
	KEY_BOOL,    /* a byte, 0 or 1; other values sort as numbers */
	KEY_BYTES,
};

/* Where NaN and NaT of a key in numpy order come in the output. */
enum key_nan_position {
	KEY_NAN_DEFAULT, /* last if the key is ascending, first if it is descending */
	KEY_NAN_FIRST,
	KEY_NAN_LAST,
};

struct key {
	uint64_t offset; /* first byte in the record */
	uint32_t nbytes;
	enum key_kind kind;
	bool big_endian; /* always true for KEY_BYTES */
	bool descending;
	bool numeric;            /* the order :n; only of kinds that have it */
	bool has_explicit_order; /* by :n or :t */
	uint8_t nan_position;    /* enum key_nan_position; only with `numeric` */
	uint8_t reserved[3];     /* 0 instead of padding: equal keys are equal bytes */
};

_Static_assert(sizeof(struct key) == 24, "no padding");

enum { KEY_TYPE_NBYTES = 16 };

/*
 * Parse a TYPE ("u64", "i32be", "f64le:n", "b10", "double") to an ascending key at offset 0.
 * Returns 0, or -EINVAL (not reported) if `text` is not a type; *ret_key is then untouched.
 */
int key_parse_type(const char *text, struct key *ret_key);

/* Format the TYPE of a key, such as "f32be" or "f32be:n". */
struct key_type_text {
	char text[KEY_TYPE_NBYTES];
};
struct key_type_text key_format_type(const struct key *key);

/* Format a key as for -k: "8:i32be:r". */
struct key_text {
	char text[24 + KEY_TYPE_NBYTES];
};
struct key_text key_format(const struct key *key);

/*
 * Describe the keys of records of record_nbytes: by the type if the record is one key, else like
 * "8:i32be:r,0:b4".
 */
enum { KEYS_TEXT_NBYTES = 64 };
void keys_format(const struct key *keys, uint32_t n, uint64_t record_nbytes,
		 char text[static KEYS_TEXT_NBYTES]);

/* The end of a message about an unknown type. */
#define KEY_TYPES_HINT                                                                             \
	"use u8, u16, u24 ... u128, i8 ... i128, f16, f32, f64, bf16, c64, c128, t64, bool, bN; "  \
	"append le or be for the byte order"

/* Write a type that the user may have meant by `typo`. Returns false if none is close. */
bool key_suggest_type(const char *typo, char text[static KEY_TYPE_NBYTES]);

/* Get number i of all types, little-endian, in one width each. Returns false after the last. */
bool key_type_by_index(unsigned i, struct key *ret_key);

/* Return whether values with the top bit set come before those without. */
bool key_has_sign(const struct key *key);

/* Return whether values with the top bit set also have their magnitude inverted. */
bool key_is_float(const struct key *key);

/* Return whether the kind has the orders :n and :t. */
bool key_has_orders(const struct key *key);

/* Return whether different bits can be equal keys, such as -0.0 and +0.0 in numeric order. */
bool key_has_equal_bit_patterns(const struct key *key);

/* Return the number of fraction bits of a float; 0 for other types. */
unsigned key_n_fraction_bits(const struct key *key);
