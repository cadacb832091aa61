/*
 * key_prefix - the first 16 bytes of a record's normalised key, by a prepared plan
 *
 * key_word() asks each field what it is, for every record. Here that is asked once: every field
 * that reaches into the first 16 bytes becomes a step, and each kind of step is the same few
 * instructions on a 128-bit integer,
 *
 *	load 16 bytes of the record that hold the field
 *	put the most significant byte first, unless the field stands reversed: then it does
 *	shift the field to the top, cut off what is not the field
 *	fold, if it is a negative float; flip the sign bit, or all of it
 *	shift down to its place in the key
 *
 * Records shorter than 16 bytes are loaded as a whole, so that nothing past them is read. What is
 * not made of bits (normalised_key.h) is left to key_field_load(), and put in its place.
 */
#pragma once

#include "src/record/normalised_key.h"
#include "src/record/load_upto16.h"

enum { KEY_PREFIX_NBYTES = 16 };

struct key_prefix_step {
	uint128_t mask;              /* of the field's bytes, at the top */
	uint128_t negative_xor_mask; /* for a negative float */
	uint128_t xor_mask;
	uint32_t load_offset; /* in the record */
	uint8_t shift_up;     /* bits, after loading */
	uint8_t shift_down;
	bool reversed;
	const struct key_field *value_field; /* of a field that is not made of bits; else NULL */
};

struct key_prefix {
	struct key_prefix_step steps[KEY_PREFIX_NBYTES];
	uint32_t n_steps;
	uint32_t record_nbytes;
};

/* For records, or items, of record_nbytes. */
void key_prefix_make(const struct key_fields *keys, uint64_t record_nbytes,
		     struct key_prefix *ret_prefix);

/* All ones if the top bit is set: a branch on it would be mispredicted half of the time. */
static inline uint128_t sign_mask(uint128_t word)
{
	const uint64_t mask = (uint64_t)((int64_t)(uint64_t)(word >> 64) >> 63);

	return (uint128_t)mask << 64 | mask;
}

/* As layout_key_prefix(); reads nothing but the record. */
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

/* How many bits all keys begin with, if `differences` has those in which they are not the same. */
static inline unsigned key_prefix_common_bits(uint128_t differences)
{
	const uint64_t high = (uint64_t)(differences >> 64), low = (uint64_t)differences;

	if (high)
		return (unsigned)__builtin_clzll(high);
	return low ? 64 + (unsigned)__builtin_clzll(low) : 128;
}
