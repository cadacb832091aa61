/*
 * kind_codes - layouts of which a record is a code
 *
 * What a run consists of is elements, the codes. A whole key is a code, and so is an edge: so it is
 * with all layouts of which elements hold all of the key (key_ops_codes).
 */
#include <errno.h>
#include <string.h>

#include "src/record/kinds.h"

/* The layout of records that are this key; what it allocates is not touched. */
static void set_plain(const struct key *key, struct layout *layout)
{
	const struct code_map map = key_code_map(key);

	layout->kind = LAYOUT_CODES;
	layout->key = *key;
	layout->record_nbytes = key->nbytes;
	layout->item_nbytes = key->nbytes;
	layout->resident_nbytes = map.element_nbytes;
	layout->output_nbytes = key->nbytes;
	layout->element_nbytes = map.element_nbytes;
	layout->stores_elements = map.element_nbytes == key->nbytes;
	layout->map = map;
	layout->intake.is_identity = true;
}

int layout_make_plain(const struct key *key, struct layout *ret_layout)
{
	if (key->offset != 0 || !key_has_code(key))
		return -ENOTSUP;
	*ret_layout = (struct layout){ 0 };
	set_plain(key, ret_layout);
	return 0;
}

static int make_codes(const struct layout_request *request, struct layout *layout)
{
	set_plain(&request->keys[0], layout);
	return 0;
}

/* Is the record nothing but one key that a code holds? */
static bool codes_suit(const struct layout_request *request)
{
	const struct key *key = &request->keys[0];

	return request->n_keys == 1 && key->nbytes == request->record_nbytes && key_has_code(key) &&
	       !(request->compares && key_has_alikes(key)) && !request->keeps_records &&
	       !request->count && !request->index;
}

code_t layout_encode(const struct layout *layout, const void *record)
{
	const struct code_map *map = &layout->map;

	switch (map->element_nbytes) {
	case 4:
		return code_encode_4(code_load_4(record, map), map);
	case 8:
		return code_encode_8(code_load_8(record, map), map);
	default:
		return code_encode_16(code_load_16(record, map), map);
	}
}

void layout_decode(const struct layout *layout, code_t code, void *record)
{
	const struct code_map *map = &layout->map;

	switch (map->element_nbytes) {
	case 4:
		code_store_4(record, code_decode_4((uint32_t)code, map), map);
		break;
	case 8:
		code_store_8(record, code_decode_8((uint64_t)code, map), map);
		break;
	default:
		code_store_16(record, code_decode_16(code, map), map);
	}
}

static size_t code_nbytes(const struct layout *layout)
{
	(void)layout;
	return sizeof(code_t);
}

static code_t code_beginning(const void *key)
{
	code_t code;

	memcpy(&code, key, sizeof code);
	return code;
}

static void begin_code(code_t beginning, void *key)
{
	memcpy(key, &beginning, sizeof beginning);
}

static void item_code(const struct layout *layout, const void *item, void *key)
{
	begin_code(layout_encode(layout, item), key);
}

static int compare_codes(const struct layout *layout, const void *a, const void *b)
{
	const code_t code_a = code_beginning(a), code_b = code_beginning(b);

	(void)layout;
	return code_a < code_b ? -1 : code_a > code_b;
}

const struct key_ops key_ops_codes = {
	.key_nbytes = code_nbytes,
	.record_key = layout_encode,
	.key_beginning = code_beginning,
	.begin_key = begin_code,
	.item_key = item_code,
	.compare_keys = compare_codes,
	.edge_nbytes = code_nbytes,
	.compare_edges = compare_codes,
};

const struct layout_ops layout_ops_codes = {
	.suits = codes_suit,
	.make = make_codes,
	.keys = &key_ops_codes,
	.has_elements = true,
	.is_plain = true,
};
