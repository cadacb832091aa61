/*
 * key_tail - words of normalised keys behind their beginning
 *
 * Long keys are mostly a single string of bytes, and what is looked at behind the first bytes of
 * those is just eight bytes of the record. Everything else is left to key_word().
 */
#pragma once

#include "src/record/normalised_key.h"
#include "src/record/load_upto16.h"

/* Are the words of the key, but for the first, words of the record, or their complement? */
static inline bool key_rest_is_bytes(const struct key_fields *keys)
{
	const struct key_field *const field = keys->fields;

	return keys->n == 1 && field->form == KEY_FORM_BITS && !field->reversed &&
	       !field->is_float && field->nbytes >= 8;
}

/* As key_word(), for at > 0. */
static inline uint64_t key_rest_word(const struct key_fields *keys, const unsigned char *record,
				     uint32_t at)
{
	const struct key_field *const field = keys->fields;
	uint64_t word, n_behind;

	if (!key_rest_is_bytes(keys) || at >= field->nbytes)
		return key_word(keys, record, at);
	n_behind = at + 8 > field->nbytes ? at + 8 - field->nbytes : 0;
	word = __builtin_bswap64(load_8(record + field->offset + at - n_behind));
	return (word ^ (field->descending ? UINT64_MAX : 0)) << 8 * n_behind;
}

/* As key_compare(), for keys that are equal in the bytes before at > 0. */
static inline int key_rest_compare(const struct key_fields *keys, uint32_t at,
				   const unsigned char *a, const unsigned char *b)
{
	for (; at < keys->key_nbytes; at += 8) {
		const uint64_t word_a = key_rest_word(keys, a, at);
		const uint64_t word_b = key_rest_word(keys, b, at);

		if (word_a != word_b)
			return word_a < word_b ? -1 : 1;
	}
	return 0;
}
