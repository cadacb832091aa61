/*
 * gen_record - records with keys, made of fractions (see gen_record.h)
 *
 * The normalised key (normalised_key.h) is made first, and its fields are then put in their
 * places, the way back of what a sort does:
 *
 *	prefix		the fraction	what is left of the key
 *	prefix_nbytes	16 bytes	a hash of the fraction
 *
 * so a key longer than a fraction still sorts as its fraction does, and is equal where that is.
 * Where keys overlap, the one that weighs more is the one that is right.
 */
#include "tools/gen/gen_record.h"

#include <string.h>

#include "src/record/key_layout.h"
#include "src/record/load_upto16.h"

/* What the streams of random words are for. */
enum { STREAM_PREFIX = 1, STREAM_TAIL, STREAM_FILLER };

/* Of SplitMix64, begun at `state`. */
static void put_random(uint64_t state, unsigned char *to, uint64_t nbytes)
{
	for (uint64_t offset = 0; offset < nbytes; offset += 8) {
		const uint64_t word = digest_mix64(state += DIGEST_SEED);

		memcpy(to + offset, &word, nbytes - offset < 8 ? nbytes - offset : 8);
	}
}

static uint64_t stream_of(const struct gen *gen, uint64_t stream, uint64_t i)
{
	return digest_mix64(digest_mix64(gen->stream + stream) ^ i);
}

/* All of the key but the prefix, which stays. */
static void put_key(const struct gen *gen, uint128_t fraction, unsigned char *key)
{
	const uint64_t hi = (uint64_t)(fraction >> 64), lo = (uint64_t)fraction;
	const uint64_t words[2] = { __builtin_bswap64(hi), __builtin_bswap64(lo) };
	const uint32_t n_remaining = gen->layout.record_keys.key_nbytes - gen->prefix_nbytes;

	key += gen->prefix_nbytes;
	memcpy(key, words, n_remaining < sizeof words ? n_remaining : sizeof words);
	if (n_remaining > sizeof words)
		put_random(stream_of(gen, STREAM_TAIL, digest_mix64(hi) ^ lo), key + sizeof words,
			   n_remaining - sizeof words);
}

/* Of a field that is not made of bits, as a code: any of the values that are equal will do. */
static void put_value(const struct key_field *field, const unsigned char *key,
		      unsigned char *record)
{
	const struct key_encoding map = key_field_encoding(field);
	uint64_t encoded_key = 0;

	for (uint32_t i = 0; i < field->nbytes; i++)
		encoded_key = encoded_key << 8 | key[i];
	store_upto_16(record, decode_raw_key_8(encoded_key, &map), field->nbytes);
}

/* The inverse of key_field_load(). */
static void put_bits(const struct key_field *field, const unsigned char *key, unsigned char *record)
{
	const unsigned char complement = field->descending ? 0xff : 0;
	const unsigned char sign = field->has_sign ? 0x80 : 0;
	unsigned char negate_mask = 0;

	for (uint32_t i = 0; i < field->nbytes; i++) {
		unsigned char byte = key[i] ^ complement ^ negate_mask;

		if (i == 0) {
			byte ^= sign;
			negate_mask = field->is_float && byte >> 7 ? 0xff : 0;
			byte ^= negate_mask & 0x7f;
		}
		record[field->reversed ? field->nbytes - 1 - i : i] = byte;
	}
}

static void put_field(const struct key_field *field, const unsigned char *key,
		      unsigned char *record)
{
	if (field->form == KEY_FORM_BITS)
		put_bits(field, key + field->start, record + field->offset);
	else
		put_value(field, key + field->start, record + field->offset);
}

void gen_record_store(const struct gen *gen, uint64_t first, const uint128_t *fractions, uint64_t n,
		      void *records)
{
	const struct key_fields *keys = &gen->layout.record_keys;
	unsigned char key[LAYOUT_MAX_RECORD_NBYTES];
	unsigned char *record = records;

	put_random(stream_of(gen, STREAM_PREFIX, 0), key, gen->prefix_nbytes);
	for (uint64_t i = 0; i < n; i++) {
		put_random(stream_of(gen, STREAM_FILLER, first + i), record,
			   gen->set.record_nbytes);
		put_key(gen, fractions[i], key);
		for (uint32_t field = keys->n; field-- > 0;)
			put_field(&keys->fields[field], key, record);
		record += gen->set.record_nbytes;
	}
}
