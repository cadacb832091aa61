/*
 * key_prefix.c - prepare the steps that load the first 16 bytes of a key
 */
#include "src/record/key_prefix.h"

/* The top n <= 16 bytes. */
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
