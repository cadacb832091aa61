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
static inline bool key_tail_is_bytes(const struct key_fields *keys)
{
	const struct key_field *const field = keys->fields;

	return keys->n == 1 && field->form == KEY_FORM_BITS && !field->reversed &&
	       !field->is_float && field->nbytes >= 8;
}

/* As key_word(), for at > 0. */
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

/* As key_compare(), for keys that are equal in the bytes before at > 0. */
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
