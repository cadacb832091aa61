/*
 * layout_keys - layouts of which a record is a code
 *
 * What a run consists of is elements, the codes. A whole key is a code, and so is an edge: so it is
 * with all layouts of which elements hold all of the key (key_ops_codes).
 */
#include <errno.h>
#include <string.h>

#include "src/record/key_encoding_plan.h"
#include "src/record/layout_ops.h"
#include "src/record/load_upto16.h"

/* The layout of records that these keys cover; what it allocates is not touched. */
static void set_codes(const struct key *keys, uint32_t n_keys, uint64_t record_nbytes,
		      struct layout *layout)
{
	const struct code_map map = code_map_make(keys, n_keys, record_nbytes);

	layout->kind = LAYOUT_CODES;
	layout->key = keys[0];
	layout->record_nbytes = record_nbytes;
	layout->item_nbytes = record_nbytes;
	layout->resident_nbytes = map.element_nbytes;
	layout->output_nbytes = record_nbytes;
	layout->element_nbytes = map.element_nbytes;
	layout->stores_elements = map.element_nbytes == record_nbytes;
	layout->map = map;
	layout->intake.is_identity = true;
}

int layout_make_plain(const struct key *key, struct layout *ret_layout)
{
	if (!code_map_covers(key, 1, key->nbytes))
		return -ENOTSUP;
	*ret_layout = (struct layout){ 0 };
	set_codes(key, 1, key->nbytes, ret_layout);
	return 0;
}

static int make_codes(const struct layout_request *request, struct layout *layout)
{
	set_codes(request->keys, request->n_keys, request->record_nbytes, layout);
	return 0;
}

/*
 * Is the record nothing but keys that a code holds? The keys alone, one after the other, are the
 * record only if there is one of them.
 */
static bool codes_suit(const struct layout_request *request)
{
	return !request->keeps_records && !request->count && !request->index &&
	       !(request->keys_only && request->n_keys > 1) &&
	       !(request->compares && key_has_alikes(&request->keys[0])) &&
	       code_map_covers(request->keys, request->n_keys, request->record_nbytes);
}

code_t layout_encode(const struct layout *layout, const void *record)
{
	const struct code_map *map = &layout->map;
	const uint128_t raw = load_upto_16(record, map->record_nbytes);

	switch (map->element_nbytes) {
	case 4:
		return code_of_raw_4((uint32_t)raw, map);
	case 8:
		return code_of_raw_8((uint64_t)raw, map);
	default:
		return code_of_raw_16(raw, map);
	}
}

static uint128_t raw_of(const struct code_map *map, code_t code)
{
	switch (map->element_nbytes) {
	case 4:
		return code_raw_of_4((uint32_t)code, map);
	case 8:
		return code_raw_of_8((uint64_t)code, map);
	default:
		return code_raw_of_16(code, map);
	}
}

void layout_decode(const struct layout *layout, code_t code, void *record)
{
	store_upto_16(record, raw_of(&layout->map, code), layout->map.record_nbytes);
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
