/*
 * key_layout - keys as fields of the normalised key (see normalised_key.h), and as codes (see
 * key_encoding.h)
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/record/layout_ops.h"

/* --- Codes --- */

static struct mask128 mask_split(uint128_t mask)
{
	return (struct mask128){ .lo = (uint64_t)mask, .hi = (uint64_t)(mask >> 64) };
}

/* Of the low 8 * nbytes bits. */
static struct mask128 mask_within(uint128_t mask, uint32_t nbytes)
{
	return mask_split(mask & ~(uint128_t)0 >> 8 * (16 - nbytes));
}

/* How many of the least codes belong behind all others. */
static uint128_t count_nan_keys(const struct key_field *field)
{
	switch (field->form) {
	case KEY_FORM_NUMERIC:
	case KEY_FORM_REFINED:
		return ((uint128_t)1 << field->n_fraction_bits) - 1; /* NaN with a sign */
	case KEY_FORM_TIME:
		return 1;
	default:
		return 0;
	}
}

struct key_encoding key_field_encoding(const struct key_field *field)
{
	const uint128_t sign = (uint128_t)1 << (field->nbytes * 8 - 1);
	const uint128_t xor_mask = field->has_sign ? sign : 0, n_nan_keys = count_nan_keys(field);

	/* Descending codes are the complements of ascending ones, and are turned the other way. */
	return (struct key_encoding){
		.record_nbytes = (uint8_t)field->nbytes,
		.element_nbytes = field->nbytes <= 4 ? 4 :
				  field->nbytes <= 8 ? 8 :
						       16,
		.swap = !field->reversed && field->nbytes > 1,
		.is_float = field->is_float,
		.xor_mask = mask_within(field->descending ? ~xor_mask : xor_mask, field->nbytes),
		.nan_offset =
			mask_within(field->descending ? n_nan_keys : -n_nan_keys, field->nbytes),
	};
}

/* --- Keys to fields --- */

/* Complex numbers are three fields: see normalised_key.h. */
enum { MAX_FIELDS_PER_KEY = 3 };

/* Of a key that is one field. */
static struct key_field make_field(const struct key *key, uint64_t offset)
{
	const bool is_numeric = key->numeric && key_is_float(key);

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
	};
}

/* Returns how many. */
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

/*
 * Would the records be codes if nothing asked for items? Then their order is that of codes, so that
 * the first few are the same bytes as those of all.
 */
static bool follows_encoded_order(const struct layout_params *params)
{
	struct layout_params unforced = *params;

	unforced.force_records = false;
	return params->force_records && layout_ops_key_only.accepts(&unforced);
}

struct key_encoding key_get_encoding(const struct key *key)
{
	const struct key_field field = make_field(key, 0);

	return key_field_encoding(&field);
}

bool key_is_encodable(const struct key *key)
{
	return key->nbytes >= 1 && key->nbytes <= 16 && key->kind != KEY_COMPLEX;
}

uint32_t key_normalised_nbytes(const struct key *key)
{
	return key->nbytes + (key->kind == KEY_COMPLEX && key->numeric);
}

/* Are its bytes in the normalised key those of the record, or their complement? */
static bool is_raw_bytes(const struct key_field *field)
{
	return field->form == KEY_FORM_BITS && !field->reversed && !field->has_sign;
}

/* May `next` be the continuation of the field? Then the two are one. */
static bool is_contiguous(const struct key_field *field, const struct key_field *next)
{
	return is_raw_bytes(field) && is_raw_bytes(next) && field->descending == next->descending &&
	       field->offset + field->nbytes == next->offset;
}

/* Put it behind those that are there. */
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

int layout_make_fields(const struct layout_params *params, bool packed, uint64_t first_offset,
		       struct key_fields *ret_fields)
{
	struct key_field *fields =
		calloc((size_t)params->n_keys * MAX_FIELDS_PER_KEY, sizeof *fields);
	struct key_fields result = { .fields = fields };
	const bool refined = follows_encoded_order(params);
	uint64_t packed_nbytes = 0;

	if (!fields)
		return fail(-ENOMEM, "no memory for %u keys", params->n_keys);
	for (uint32_t i = 0; i < params->n_keys; i++) {
		const struct key *key = &params->keys[i];
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
