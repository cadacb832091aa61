/*
 * key_layout.c - keys as encoded keys (key_encoding.h), as fields of a normalised key
 * (normalised_key.h), and the steps that load its first 16 bytes (key_prefix.h)
 */
#include "src/record/key_layout.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/record/key_prefix.h"

enum { MAX_KEY_NBYTES = 16 };

/* --- One key as an encoded key --- */

/* Make the field of a key that is a single field. */
static struct key_field make_field(const struct key *key, uint64_t offset)
{
	const bool is_numeric = key->numeric && key_is_float(key);
	const bool nan_lowest = key->descending ? key->nan_position == KEY_NAN_LAST :
						  key->nan_position == KEY_NAN_FIRST;

	return (struct key_field){
		.offset = (uint32_t)offset,
		.nbytes = key->nbytes,
		.reversed = !key->big_endian && key->nbytes > 1,
		.has_sign = key_has_sign(key),
		.is_float = key_is_float(key),
		.descending = key->descending,
		.form = is_numeric   ? KEY_FORM_NUMERIC :
			key->numeric ? KEY_FORM_TIME :
				       KEY_FORM_BITS,
		.n_fraction_bits = (uint8_t)key_n_fraction_bits(key),
		.nan_lowest = key->numeric && nan_lowest,
	};
}

static struct mask128 mask_split(uint128_t mask)
{
	return (struct mask128){ .lo = (uint64_t)mask, .hi = (uint64_t)(mask >> 64) };
}

/* Keep the low 8 * nbytes bits. */
static struct mask128 mask_within(uint128_t mask, uint32_t nbytes)
{
	return mask_split(mask & ~(uint128_t)0 >> 8 * (16 - nbytes));
}

/*
 * Return how far the encoded keys of an ascending field are rotated, so that NaN of both signs are
 * above, or below, all numbers.
 */
static uint128_t nan_rotation(const struct key_field *field)
{
	const uint128_t n_nans = ((uint128_t)1 << field->n_fraction_bits) - 1; /* of one sign */

	switch (field->form) {
	case KEY_FORM_NUMERIC:
	case KEY_FORM_REFINED:
		return field->nan_lowest ? n_nans : -n_nans;
	case KEY_FORM_TIME: /* NaT is the lowest integer */
		return field->nan_lowest ? 0 : -(uint128_t)1;
	default:
		return 0;
	}
}

struct key_encoding key_field_encoding(const struct key_field *field)
{
	const uint128_t sign = (uint128_t)1 << (field->nbytes * 8 - 1);
	const uint128_t xor_mask = field->has_sign ? sign : 0, rotation = nan_rotation(field);

	/* Descending keys are the complements of ascending ones, and rotate the other way. */
	return (struct key_encoding){
		.record_nbytes = (uint8_t)field->nbytes,
		.element_nbytes = field->nbytes <= 4 ? 4 :
				  field->nbytes <= 8 ? 8 :
						       16,
		.swap = !field->reversed && field->nbytes > 1,
		.is_float = field->is_float,
		.xor_mask = mask_within(field->descending ? ~xor_mask : xor_mask, field->nbytes),
		.nan_offset = mask_within(field->descending ? -rotation : rotation, field->nbytes),
	};
}

/* --- Several keys as one encoded key --- */

/* A single key can have any order that an encoding has; several are compared bit by bit. */
static bool is_encodable(const struct key *key, uint32_t n_keys)
{
	return key->nbytes >= 1 && key->nbytes <= MAX_KEY_NBYTES && key->kind != KEY_COMPLEX &&
	       (n_keys == 1 || !key->numeric);
}

bool key_encoding_covers(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes)
{
	uint32_t byte_mask = 0;
	uint64_t nbytes = 0;

	if (record_nbytes < 1 || record_nbytes > MAX_KEY_NBYTES)
		return false;
	for (uint32_t i = 0; i < n_keys && nbytes <= record_nbytes; i++) {
		if (keys[i].nbytes > record_nbytes ||
		    keys[i].offset > record_nbytes - keys[i].nbytes ||
		    !is_encodable(&keys[i], n_keys))
			return false;
		byte_mask |= ((UINT32_C(1) << keys[i].nbytes) - 1) << keys[i].offset;
		nbytes += keys[i].nbytes;
	}
	return nbytes == record_nbytes && byte_mask == (UINT32_C(1) << record_nbytes) - 1;
}

/* Set positions[i] to where in the record byte i of the concatenated keys is. */
static void find_byte_positions(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes,
				uint8_t *positions)
{
	uint32_t end = (uint32_t)record_nbytes;

	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];

		end -= key->nbytes;
		for (uint32_t j = 0; j < key->nbytes; j++)
			positions[end + j] = (uint8_t)(key->offset +
						       (key->big_endian ? key->nbytes - 1 - j : j));
	}
}

/*
 * Return whether each byte is where it should be, or, with `swapped`, all are in the opposite
 * order.
 */
static bool is_in_place(const uint8_t *positions, uint32_t n, bool swapped)
{
	for (uint32_t i = 0; i < n; i++)
		if (positions[i] != (swapped ? n - 1 - i : i))
			return false;
	return true;
}

/* Make the move of a single byte from one position to another. */
static struct byte_move move_byte(uint32_t from, uint32_t to, uint32_t word_nbytes, bool swap)
{
	const uint32_t from_byte = from % word_nbytes, to_byte = to % word_nbytes;
	const uint32_t swapped_byte = swap ? word_nbytes - 1 - from_byte : from_byte;

	return (struct byte_move){
		.mask = UINT64_C(0xff) << 8 * to_byte,
		.from = (uint8_t)(from / word_nbytes),
		.swap = swap,
		.rotate = (uint8_t)(8 * ((to_byte + word_nbytes - swapped_byte) % word_nbytes)),
		.to = (uint8_t)(to / word_nbytes),
	};
}

static bool is_same_move(const struct byte_move *move, const struct byte_move *other_move)
{
	return move->from == other_move->from && move->to == other_move->to &&
	       move->swap == other_move->swap && move->rotate == other_move->rotate;
}

static uint8_t add_move(struct byte_move *moves, uint8_t n, struct byte_move move)
{
	for (uint8_t i = 0; i < n; i++) {
		if (is_same_move(&moves[i], &move)) {
			moves[i].mask |= move.mask;
			return n;
		}
	}
	assert(n < KEY_ENCODING_MAX_MOVES);
	moves[n] = move;
	return (uint8_t)(n + 1);
}

/*
 * Make the moves of all bytes. Those of a big-endian key are swapped, and so take the same way and
 * end up in one move.
 */
static void make_moves(struct key_encoding *encoding, const struct key *keys, uint32_t n_keys,
		       const uint8_t *positions)
{
	const uint32_t word_nbytes = encoding->element_nbytes < 8 ? encoding->element_nbytes : 8;
	uint32_t end = encoding->record_nbytes;
	uint8_t n_inverse = 0;

	for (uint32_t i = 0; i < n_keys; i++) {
		end -= keys[i].nbytes;
		for (uint32_t byte = end; byte < end + keys[i].nbytes; byte++) {
			const bool swap = keys[i].big_endian;

			encoding->n_moves =
				add_move(encoding->moves, encoding->n_moves,
					 move_byte(positions[byte], byte, word_nbytes, swap));
			n_inverse = add_move(encoding->back, n_inverse,
					     move_byte(byte, positions[byte], word_nbytes, swap));
		}
	}
	assert(n_inverse == encoding->n_moves);
}

static void add_float(struct key_encoding *encoding, uint128_t sign, uint32_t nbytes)
{
	const uint8_t n_magnitude_bits = (uint8_t)(8 * nbytes - 1);
	uint8_t i = 0;

	while (i < encoding->n_floats && encoding->floats[i].n_magnitude_bits != n_magnitude_bits)
		i++;
	if (i == encoding->n_floats)
		encoding->floats[encoding->n_floats++].n_magnitude_bits = n_magnitude_bits;
	encoding->floats[i].signs.lo |= (uint64_t)sign;
	encoding->floats[i].signs.hi |= (uint64_t)(sign >> 64);
}

/* Make the masks of signs and of descending keys. */
static void make_masks(struct key_encoding *encoding, const struct key *keys, uint32_t n_keys)
{
	uint32_t end = encoding->record_nbytes;
	uint128_t xor_mask = 0;

	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];
		const uint128_t sign = (uint128_t)1 << (8 * end - 1);

		end -= key->nbytes;
		if (key_has_sign(key))
			xor_mask ^= sign;
		if (key->descending)
			xor_mask ^= sign | (sign - ((uint128_t)1 << 8 * end));
		if (key_is_float(key))
			add_float(encoding, sign, key->nbytes);
	}
	encoding->xor_mask = mask_split(xor_mask);
}

struct key_encoding key_encoding_make(const struct key *keys, uint32_t n_keys,
				      uint64_t record_nbytes)
{
	const uint32_t n = (uint32_t)record_nbytes;
	struct key_encoding encoding = {
		.record_nbytes = (uint8_t)n,
		.element_nbytes = n <= 4 ? 4 :
				  n <= 8 ? 8 :
					   16,
	};
	uint8_t positions[MAX_KEY_NBYTES];

	if (n_keys == 1) {
		const struct key_field field = make_field(&keys[0], 0);

		return key_field_encoding(&field);
	}
	find_byte_positions(keys, n_keys, record_nbytes, positions);
	encoding.swap = n > 1 && is_in_place(positions, n, true);
	if (!encoding.swap && !is_in_place(positions, n, false))
		make_moves(&encoding, keys, n_keys, positions);
	make_masks(&encoding, keys, n_keys);
	return encoding;
}

/* --- Keys to fields --- */

/* Complex numbers have three: see normalised_key.h. */
enum { MAX_FIELDS_PER_KEY = 3 };

/* Returns the number of fields. */
static uint32_t make_complex_fields(const struct key *key, uint64_t offset,
				    struct key_field fields[static MAX_FIELDS_PER_KEY])
{
	struct key component = *key;
	uint32_t n = 0;

	component.kind = KEY_FLOAT;
	component.nbytes /= 2;
	if (key->numeric) {
		fields[n] = make_field(&component, offset);
		fields[n].component_nbytes = (uint8_t)component.nbytes;
		fields[n].nbytes = 1;
		fields[n++].form = KEY_FORM_NANS;
	}
	fields[n++] = make_field(&component, offset);
	fields[n++] = make_field(&component, offset + component.nbytes);
	return n;
}

static uint32_t make_key_fields(const struct key *key, uint64_t offset,
				struct key_field fields[static MAX_FIELDS_PER_KEY])
{
	if (key->kind == KEY_COMPLEX)
		return make_complex_fields(key, offset, fields);
	fields[0] = make_field(key, offset);
	return 1;
}

uint32_t key_normalised_nbytes(const struct key *key)
{
	return key->nbytes + (key->kind == KEY_COMPLEX && key->numeric);
}

/*
 * Return whether the bytes of the field in the normalised key are those of the record, or their
 * complement.
 */
static bool is_raw_bytes(const struct key_field *field)
{
	return field->form == KEY_FORM_BITS && !field->reversed && !field->has_sign;
}

/* Return whether `next` continues the field, so that both become one. */
static bool is_contiguous(const struct key_field *field, const struct key_field *next)
{
	return is_raw_bytes(field) && is_raw_bytes(next) && field->descending == next->descending &&
	       field->offset + field->nbytes == next->offset;
}

/* Append a field, or extend the last one. */
static void add_field(struct key_fields *keys, struct key_field *fields, struct key_field field)
{
	if (keys->n > 0 && is_contiguous(&fields[keys->n - 1], &field)) {
		fields[keys->n - 1].nbytes += field.nbytes;
	} else {
		field.start = keys->key_nbytes;
		fields[keys->n++] = field;
	}
	keys->key_nbytes += field.nbytes;
}

int key_fields_make(const struct key *keys, uint32_t n_keys, bool packed, uint64_t first_offset,
		    bool refined, struct key_fields *ret_fields)
{
	struct key_field *fields = calloc((size_t)n_keys * MAX_FIELDS_PER_KEY, sizeof *fields);
	struct key_fields result = { .fields = fields };
	uint64_t packed_nbytes = 0;

	if (!fields)
		return fail(-ENOMEM, "no memory for %u keys", n_keys);
	for (uint32_t i = 0; i < n_keys; i++) {
		const struct key *key = &keys[i];
		const uint64_t offset = first_offset + (packed ? packed_nbytes : key->offset);
		struct key_field new_fields[MAX_FIELDS_PER_KEY];
		const uint32_t n_new = make_key_fields(key, offset, new_fields);

		if (refined && new_fields[0].form == KEY_FORM_NUMERIC)
			new_fields[0].form = KEY_FORM_REFINED;
		for (uint32_t j = 0; j < n_new; j++)
			add_field(&result, fields, new_fields[j]);
		packed_nbytes += key->nbytes;
	}
	*ret_fields = result;
	return 0;
}

/* --- The first 16 bytes of a normalised key --- */

/* Return the top n <= 16 bytes. */
static uint128_t top_bytes(uint32_t n)
{
	return n >= 16 ? ~(uint128_t)0 : ~(~(uint128_t)0 >> 8 * n);
}

static struct key_prefix_step make_step(const struct key_field *field, uint64_t record_nbytes)
{
	const uint128_t sign = (uint128_t)1 << 127;
	const uint128_t mask = top_bytes(field->nbytes);
	const uint64_t last = record_nbytes < 16 ? 0 : record_nbytes - 16;
	const uint64_t load_offset = field->offset < last ? field->offset : last;
	const uint32_t skipped = field->offset - (uint32_t)load_offset;

	if (field->form != KEY_FORM_BITS)
		return (struct key_prefix_step){
			.value_field = field,
			.shift_up = (uint8_t)(128 - 8 * field->nbytes),
			.shift_down = (uint8_t)(8 * field->start),
		};
	return (struct key_prefix_step){
		.mask = mask,
		.negative_xor_mask = field->is_float ? mask & ~sign : 0,
		.xor_mask = (field->has_sign ? sign : 0) ^ (field->descending ? mask : 0),
		.load_offset = (uint32_t)load_offset,
		.shift_up =
			(uint8_t)(8 * (field->reversed ? 16 - skipped - field->nbytes : skipped)),
		.shift_down = (uint8_t)(8 * field->start),
		.reversed = field->reversed,
	};
}

void key_prefix_make(const struct key_fields *keys, uint64_t record_nbytes,
		     struct key_prefix *ret_prefix)
{
	struct key_prefix prefix = { .record_nbytes = (uint32_t)record_nbytes };

	for (uint32_t i = 0; i < keys->n && keys->fields[i].start < KEY_PREFIX_NBYTES; i++)
		prefix.steps[prefix.n_steps++] = make_step(&keys->fields[i], record_nbytes);
	*ret_prefix = prefix;
}
