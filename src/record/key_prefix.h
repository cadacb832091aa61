/*
 * key_prefix.h - words of normalised keys, faster than one at a time
 *
 * key_word() (normalised_key.h) looks at each field for every record. For the first 16 bytes of a
 * key that is prepared once: every field that reaches into them becomes a step, and every step is
 * the same few instructions on a 128-bit integer:
 *
 *	load 16 bytes of the record that hold the field
 *	swap them, unless the field is little-endian
 *	shift the field to the top, and mask off what does not belong to it
 *	fold it, if it is a negative float; flip the sign bit, or all of it
 *	shift it down to its place in the key
 *
 * Records shorter than 16 bytes are loaded as a whole, so that nothing after them is read. Fields
 * that are not made of bits (enum key_form) are left to key_field_load().
 *
 * After the first bytes, long keys are mostly a single string of bytes, whose words are just 8
 * bytes of the record (key_tail_word()).
 */
#pragma once

#include "src/record/normalised_key.h"
#include "src/record/load_upto16.h"

enum { KEY_PREFIX_NBYTES = 16 };

struct key_prefix_step {
	uint128_t mask;              /* the field's bytes, at the top */
	uint128_t negative_xor_mask; /* applied to a negative float */
	uint128_t xor_mask;
	uint32_t load_offset; /* in the record */
	uint8_t shift_up;     /* bits, after loading */
	uint8_t shift_down;
	bool reversed;
	const struct key_field *value_field; /* a field that is not made of bits; else NULL */
};

struct key_prefix {
	struct key_prefix_step steps[KEY_PREFIX_NBYTES];
	uint32_t n_steps;
	uint32_t record_nbytes;
};

/* Prepare the steps for records, or items, of record_nbytes. */
void key_prefix_make(const struct key_fields *keys, uint64_t record_nbytes,
		     struct key_prefix *ret_prefix);

/* All ones if the top bit is set. A branch on it would be mispredicted half of the time. */
static inline uint128_t sign_mask(uint128_t word)
{
	const uint64_t mask = (uint64_t)((int64_t)(uint64_t)(word >> 64) >> 63);

	return (uint128_t)mask << 64 | mask;
}

/* Return layout_key_prefix(). Reads nothing but the record. */
static inline uint128_t key_prefix_load(const struct key_prefix *prefix,
					const unsigned char *record)
{
	const bool is_short = prefix->record_nbytes < 16;
	const uint128_t record_word = is_short ? load_upto_16(record, prefix->record_nbytes) : 0;
	uint128_t key = 0;

	for (uint32_t i = 0; i < prefix->n_steps; i++) {
		const struct key_prefix_step *step = &prefix->steps[i];
		uint128_t loaded, word;

		if (step->value_field) {
			word = key_field_load(step->value_field, record, 0,
					      step->value_field->nbytes);
			key |= word << step->shift_up >> step->shift_down;
			continue;
		}
		loaded = is_short ? record_word : load_16(record + step->load_offset);
		word = (step->reversed ? loaded : byte_swap_16(loaded)) << step->shift_up;

		word &= step->mask;
		word ^= (sign_mask(word) & step->negative_xor_mask) ^ step->xor_mask;
		key |= word >> step->shift_down;
	}
	return key;
}

/*
 * Return how many leading bits all keys share, if `differences` has a bit for each in which some
 * differ.
 */
static inline unsigned key_prefix_common_bits(uint128_t differences)
{
	return 128 - uint128_bit_length(differences);
}

/*
 * Return whether the words of the key after the first one are words of the record, or their
 * complement.
 */
static inline bool key_tail_is_bytes(const struct key_fields *keys)
{
	const struct key_field *const field = keys->fields;

	return keys->n == 1 && field->form == KEY_FORM_BITS && !field->reversed &&
	       !field->is_float && field->nbytes >= 8;
}

/* Return key_word() for offset > 0. */
static inline uint64_t key_tail_word(const struct key_fields *keys, const unsigned char *record,
				     uint32_t offset)
{
	const struct key_field *const field = keys->fields;
	uint64_t word, n_past_end;

	if (!key_tail_is_bytes(keys) || offset >= field->nbytes)
		return key_word(keys, record, offset);
	n_past_end = offset + 8 > field->nbytes ? offset + 8 - field->nbytes : 0;
	word = __builtin_bswap64(load_8(record + field->offset + offset - n_past_end));
	return (word ^ (field->descending ? UINT64_MAX : 0)) << 8 * n_past_end;
}

/* Return key_compare() for keys that are equal in the bytes before offset > 0. */
static inline int key_tail_compare(const struct key_fields *keys, uint32_t offset,
				   const unsigned char *a, const unsigned char *b)
{
	for (; offset < keys->key_nbytes; offset += 8) {
		const uint64_t word_a = key_tail_word(keys, a, offset);
		const uint64_t word_b = key_tail_word(keys, b, offset);

		if (word_a != word_b)
			return word_a < word_b ? -1 : 1;
	}
	return 0;
}
