/*
 * normalised_key.h - all keys of a record as one byte string that sorts by memcmp; host and device
 *
 * The keys, most significant first, are concatenated without gaps: integers with their most
 * significant byte first and the sign bit flipped, floats in IEEE 754's total order
 * (key_encoding.h), descending keys complemented. The normalised key is never stored. It is looked
 * at in words of 8 bytes, as big-endian integers that are padded with zeros after the end:
 *
 *	keys         8:i16  0:b3:r
 *	fields       { offset 8, start 0, 2 bytes, reversed, sign }
 *	             { offset 0, start 2, 3 bytes, descending }
 *	key_word(0)  the i16, big-endian, ^ 0x8000; then ~b ~b ~b 0 0 0
 *
 * So comparing two records is comparing words from the front, up to the first difference.
 * Everything that sorts records is made of these words: elements hold the first bytes, and ties are
 * broken by the next word.
 *
 * In the numeric order (key_type.h) values that are equal have equal bytes here, although their own
 * bytes differ: -0.0 those of +0.0, and every NaN 0xff. A complex number begins with a byte that
 * says which of its parts are NaN, because numpy's order is: no part, the imaginary part, the real
 * part, both.
 *
 *	8:c64:n      { offset 8, start 0, 1 byte }
 *	             { offset 8, start 1, 4 bytes } { offset 12, start 5, 4 bytes }
 */
#pragma once

#include <string.h>

#include "src/record/load_bytes.h"
#include "src/record/key_encoding.h"

/* What the bytes of a field in the normalised key are made of. */
enum key_form {
	KEY_FORM_BITS,    /* its bits */
	KEY_FORM_NUMERIC, /* the value of a float of at most 8 bytes */
	/* The same, but equal values are ordered like their encoded keys (key_encoding.h). */
	KEY_FORM_REFINED,
	KEY_FORM_TIME, /* an integer of at most 8 bytes, whose lowest value comes last */
	KEY_FORM_NANS, /* one byte: which of two floats are NaN */
};

/* A key, or a part of one, in the record and in the normalised key. Plain data. */
struct key_field {
	uint32_t offset; /* first byte in the record */
	uint32_t start;  /* first byte in the normalised key */
	uint32_t nbytes;
	bool reversed; /* little-endian in the record */
	bool has_sign; /* the sign bit is flipped */
	bool is_float; /* negative values are folded */
	bool descending;
	uint8_t form;             /* enum key_form */
	uint8_t n_fraction_bits;  /* of a float */
	uint8_t component_nbytes; /* KEY_FORM_NANS: of each float */
	bool nan_lowest; /* before `descending` is applied, NaN and NaT are below all numbers */
};

/* The fields of all keys, by `start`, without gaps. The layout owns the array. */
struct key_fields {
	const struct key_field *fields;
	uint32_t n;
	uint32_t key_nbytes;
};

/* Return whether the field can be restored from its bytes in the normalised key. */
static inline bool key_field_is_decodable(const struct key_field *field)
{
	return field->form == KEY_FORM_BITS || field->form == KEY_FORM_REFINED ||
	       field->form == KEY_FORM_TIME;
}

/* Load 1 <= n <= 8 bytes, most significant first, into the low 8 * n bits. */
static inline GSORT_HD uint64_t key_load(const unsigned char *bytes, uint32_t n)
{
#ifdef __CUDA_ARCH__
	return byte_swap_8(load_bytes(bytes, n)) >> (64 - 8 * n);
#else
	uint64_t word = 0;

	if (n == 8) {
		memcpy(&word, bytes, 8);
		return __builtin_bswap64(word);
	}
	for (uint32_t i = 0; i < n; i++)
		word = word << 8 | bytes[i];
	return word;
#endif
}

/* Load 1 <= n <= 8 bytes, least significant first. */
static inline GSORT_HD uint64_t key_load_reversed(const unsigned char *bytes, uint32_t n)
{
#ifdef __CUDA_ARCH__
	return load_bytes(bytes, n);
#else
	uint64_t word = 0;

	if (n == 8) {
		memcpy(&word, bytes, 8);
		return word;
	}
	for (uint32_t i = n; i-- > 0;)
		word = word << 8 | bytes[i];
	return word;
#endif
}

/* Return whether these are the bits of a NaN: the magnitude is above that of infinity. */
static inline GSORT_HD bool key_is_nan(uint64_t bits, uint32_t nbytes, unsigned n_fraction_bits)
{
	const uint64_t sign = UINT64_C(1) << (8 * nbytes - 1);

	return (bits & (sign - 1)) > sign - (UINT64_C(1) << n_fraction_bits);
}

static inline GSORT_HD uint64_t key_load_component(const struct key_field *field,
						   const unsigned char *component, uint32_t n)
{
	return field->reversed ? key_load_reversed(component, n) : key_load(component, n);
}

/* Return all bytes of an ascending field that is not made of bits, in the low 8 * nbytes bits. */
static inline GSORT_HD uint64_t key_field_value(const struct key_field *field,
						const unsigned char *record)
{
	const unsigned char *key = record + field->offset;
	const uint32_t n = field->form == KEY_FORM_NANS ? field->component_nbytes : field->nbytes;
	const uint64_t bits = key_load_component(field, key, n);
	const uint64_t sign = UINT64_C(1) << (8 * n - 1), all_ones = sign | (sign - 1);
	const uint64_t n_nans = (UINT64_C(1) << field->n_fraction_bits) - 1; /* of one sign */
	const bool is_nan = field->form != KEY_FORM_TIME &&
			    key_is_nan(bits, n, field->n_fraction_bits);
	uint64_t nans;

	switch (field->form) {
	case KEY_FORM_NUMERIC:
		if (is_nan)
			return field->nan_lowest ? 0 : all_ones; /* no number has either value */
		return bits > sign ? ~bits & all_ones : bits | sign;
	case KEY_FORM_REFINED: /* rotate: NaN of one sign come next to those of the other sign */
		return ((bits & sign ? ~bits : bits | sign) +
			(field->nan_lowest ? n_nans : 0 - n_nans)) &
		       all_ones;
	case KEY_FORM_TIME:
		return ((bits ^ sign) - !field->nan_lowest) & all_ones;
	default:
		nans = 2u * is_nan +
		       key_is_nan(key_load_component(field, key + n, n), n, field->n_fraction_bits);
		return field->nan_lowest ? 3 - nans : nans;
	}
}

/* Return bytes [from, from + n) of the field's normalised key, n <= 8, in the low 8 * n bits. */
static inline GSORT_HD uint64_t key_field_load(const struct key_field *field,
					       const unsigned char *record, uint32_t from,
					       uint32_t n)
{
	const unsigned char *key = record + field->offset;
	const uint64_t all_ones = n == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * n) - 1;
	const uint64_t top = from == 0 ? UINT64_C(1) << (8 * n - 1) : 0;
	uint64_t word;

	if (field->form != KEY_FORM_BITS) {
		word = key_field_value(field, record) >> 8 * (field->nbytes - from - n) & all_ones;
		return field->descending ? word ^ all_ones : word;
	}
	word = field->reversed ? key_load_reversed(key + field->nbytes - from - n, n) :
				 key_load(key + from, n);
	if (field->is_float && key[field->reversed ? field->nbytes - 1 : 0] >> 7)
		word ^= all_ones & ~top;
	if (field->has_sign)
		word ^= top;
	return field->descending ? word ^ all_ones : word;
}

/* Find the field that holds the byte at `offset` < key_nbytes. */
static inline GSORT_HD uint32_t key_field_at(const struct key_fields *keys, uint32_t offset)
{
	uint32_t first = 0, end = keys->n;

	while (end - first > 1) {
		const uint32_t middle = first + (end - first) / 2;

		if (keys->fields[middle].start <= offset)
			first = middle;
		else
			end = middle;
	}
	return first;
}

/*
 * Return bytes [offset, offset + 8) of the normalised key as a big-endian integer, padded with
 * zeros.
 */
static inline GSORT_HD uint64_t key_word(const struct key_fields *keys, const unsigned char *record,
					 uint32_t offset)
{
	uint64_t word = 0;
	uint32_t n_remaining = 8;

	if (offset >= keys->key_nbytes)
		return 0;
	for (uint32_t i = key_field_at(keys, offset); i < keys->n && n_remaining > 0; i++) {
		const struct key_field *field = &keys->fields[i];
		const uint32_t from = offset + (8 - n_remaining) - field->start;
		const uint32_t n_in_field = field->nbytes - from;
		const uint32_t n = n_in_field < n_remaining ? n_in_field : n_remaining;

		word = (n == 8 ? 0 : word << 8 * n) | key_field_load(field, record, from, n);
		n_remaining -= n;
	}
	return n_remaining == 8 ? 0 : word << 8 * n_remaining;
}

/* Compare the normalised keys of two records, like memcmp(). */
static inline GSORT_HD int key_compare(const struct key_fields *keys, const unsigned char *a,
				       const unsigned char *b)
{
	for (uint32_t offset = 0; offset < keys->key_nbytes; offset += 8) {
		const uint64_t word_a = key_word(keys, a, offset),
			       word_b = key_word(keys, b, offset);

		if (word_a != word_b)
			return word_a < word_b ? -1 : 1;
	}
	return 0;
}

/*
 * Compare the normalised key of a record with a stored one, which is padded with zeros to a
 * multiple of 8.
 */
static inline GSORT_HD int key_compare_normalised(const struct key_fields *keys,
						  const unsigned char *record,
						  const unsigned char *normalised)
{
	for (uint32_t offset = 0; offset < keys->key_nbytes; offset += 8) {
		const uint64_t word = key_word(keys, record, offset);
		const uint64_t normalised_word = key_load(normalised + offset, 8);

		if (word != normalised_word)
			return word < normalised_word ? -1 : 1;
	}
	return 0;
}
