/*
 * layout_keys - layouts of which a record is a code
 *
 * What a run consists of is elements, the codes. A whole key is a code, and so is an edge: so it is
 * with all layouts of which elements hold all of the key (key_ops_encoded).
 */
#include <errno.h>
#include <string.h>

#include "src/record/key_encoding_plan.h"
#include "src/record/layout_ops.h"
#include "src/record/load_upto16.h"

/* The layout of records that these keys cover; what it allocates is not touched. */
static void set_key_only(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes,
			 struct layout *layout)
{
	const struct key_encoding encoding = key_encoding_make(keys, n_keys, record_nbytes);

	layout->kind = LAYOUT_KEY_ONLY;
	layout->key = keys[0];
	layout->record_nbytes = record_nbytes;
	layout->item_nbytes = record_nbytes;
	layout->resident_nbytes = encoding.element_nbytes;
	layout->output_nbytes = record_nbytes;
	layout->element_nbytes = encoding.element_nbytes;
	layout->stores_elements = encoding.element_nbytes == record_nbytes;
	layout->encoding = encoding;
	layout->projection.is_identity = true;
}

int layout_make_key_only(const struct key *key, struct layout *ret_layout)
{
	if (!key_encoding_covers(key, 1, key->nbytes))
		return -ENOTSUP;
	*ret_layout = (struct layout){ 0 };
	set_key_only(key, 1, key->nbytes, ret_layout);
	return 0;
}

static int make_key_only(const struct layout_params *params, struct layout *layout)
{
	set_key_only(params->keys, params->n_keys, params->record_nbytes, layout);
	return 0;
}

/*
 * Is the record nothing but keys that a code holds? The keys alone, one after the other, are the
 * record only if there is one of them.
 */
static bool key_only_accepts(const struct layout_params *params)
{
	return !params->force_records && !params->count && !params->argsort &&
	       !(params->keys_only && params->n_keys > 1) &&
	       !(params->needs_equality && key_has_equal_bit_patterns(&params->keys[0])) &&
	       key_encoding_covers(params->keys, params->n_keys, params->record_nbytes);
}

encoded_key_t layout_encode(const struct layout *layout, const void *record)
{
	const struct key_encoding *encoding = &layout->encoding;
	const uint128_t raw = load_upto_16(record, encoding->record_nbytes);

	switch (encoding->element_nbytes) {
	case 4:
		return encode_raw_key_4((uint32_t)raw, encoding);
	case 8:
		return encode_raw_key_8((uint64_t)raw, encoding);
	default:
		return encode_raw_key_16(raw, encoding);
	}
}

static uint128_t decode_raw(const struct key_encoding *encoding, encoded_key_t encoded)
{
	switch (encoding->element_nbytes) {
	case 4:
		return decode_raw_key_4((uint32_t)encoded, encoding);
	case 8:
		return decode_raw_key_8((uint64_t)encoded, encoding);
	default:
		return decode_raw_key_16(encoded, encoding);
	}
}

void layout_decode(const struct layout *layout, encoded_key_t encoded, void *record)
{
	store_upto_16(record, decode_raw(&layout->encoding, encoded),
		      layout->encoding.record_nbytes);
}

static size_t key_only_key_nbytes(const struct layout *layout)
{
	(void)layout;
	return sizeof(encoded_key_t);
}

static encoded_key_t key_only_key_prefix(const void *key)
{
	encoded_key_t encoded;

	memcpy(&encoded, key, sizeof encoded);
	return encoded;
}

static void key_only_key_from_prefix(encoded_key_t prefix, void *key)
{
	memcpy(key, &prefix, sizeof prefix);
}

static void key_only_item_key(const struct layout *layout, const void *item, void *key)
{
	key_only_key_from_prefix(layout_encode(layout, item), key);
}

static int key_only_compare_keys(const struct layout *layout, const void *a, const void *b)
{
	const encoded_key_t key_a = key_only_key_prefix(a), key_b = key_only_key_prefix(b);

	(void)layout;
	return key_a < key_b ? -1 : key_a > key_b;
}

const struct key_ops key_ops_encoded = {
	.key_nbytes = key_only_key_nbytes,
	.record_key = layout_encode,
	.key_prefix = key_only_key_prefix,
	.key_from_prefix = key_only_key_from_prefix,
	.item_key = key_only_item_key,
	.compare_keys = key_only_compare_keys,
	.edge_nbytes = key_only_key_nbytes,
	.compare_edges = key_only_compare_keys,
};

const struct layout_ops layout_ops_key_only = {
	.accepts = key_only_accepts,
	.make = make_key_only,
	.keys = &key_ops_encoded,
	.has_elements = true,
	.is_key_only = true,
};
