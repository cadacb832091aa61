/*
 * record - layouts (see record.h)
 */
#include "src/record/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/messages.h"
#include "src/record/kinds.h"

static struct mask128 mask_split(uint128_t mask)
{
	return (struct mask128){ .lo = (uint64_t)mask, .hi = (uint64_t)(mask >> 64) };
}

static struct code_map make_code_map(const struct key *key)
{
	const uint128_t sign = (uint128_t)1 << (key->nbytes * 8 - 1);
	const uint128_t all = sign | (sign - 1);
	uint128_t flip = 0;

	if (key_has_sign(key))
		flip ^= sign;
	if (key->descending)
		flip ^= all;
	return (struct code_map){
		.record_nbytes = (uint8_t)key->nbytes,
		.element_nbytes = key->nbytes <= 4 ? 4 :
				  key->nbytes <= 8 ? 8 :
						     16,
		.swap = key->big_endian && key->nbytes > 1,
		.is_float = key_is_float(key),
		.flip = mask_split(flip),
	};
}

int layout_make_plain(const struct key *key, struct layout *ret_layout)
{
	struct code_map map;

	if (key->offset != 0 || key->nbytes < 1 || key->nbytes > 16)
		return -ENOTSUP;
	map = make_code_map(key);
	*ret_layout = (struct layout){
		.kind = LAYOUT_CODES,
		.key = *key,
		.record_nbytes = key->nbytes,
		.item_nbytes = key->nbytes,
		.resident_nbytes = map.element_nbytes,
		.output_nbytes = key->nbytes,
		.element_nbytes = map.element_nbytes,
		.stores_elements = map.element_nbytes == key->nbytes,
		.map = map,
		.intake.is_identity = true,
	};
	return 0;
}

/* May `next` be the continuation of the field? Then the two are one. */
static bool continues(const struct key_field *field, const struct key *next)
{
	return !field->reversed && !field->has_sign && !field->is_float &&
	       (next->big_endian || next->nbytes == 1) && !key_has_sign(next) &&
	       field->descending == next->descending &&
	       field->offset + field->nbytes == next->offset;
}

/* The fields of keys: each where it is, or packed, one after the other; from first_offset on. */
static int make_fields(const struct key *keys, uint32_t n, bool packed, uint64_t first_offset,
		       struct key_fields *ret_fields)
{
	struct key_field *fields = calloc(n, sizeof *fields);
	uint32_t n_fields = 0, start = 0;

	if (!fields)
		return fail(-ENOMEM, "no memory for %u keys", n);
	for (uint32_t i = 0; i < n; i++) {
		struct key key = keys[i];

		key.offset = first_offset + (packed ? start : key.offset);
		if (n_fields > 0 && continues(&fields[n_fields - 1], &key))
			fields[n_fields - 1].nbytes += key.nbytes;
		else
			fields[n_fields++] = (struct key_field){
				.offset = (uint32_t)key.offset,
				.start = start,
				.nbytes = key.nbytes,
				.reversed = !key.big_endian && key.nbytes > 1,
				.has_sign = key_has_sign(&key),
				.is_float = key_is_float(&key),
				.descending = key.descending,
			};
		start += key.nbytes;
	}
	*ret_fields = (struct key_fields){ .fields = fields, .n = n_fields, .key_nbytes = start };
	return 0;
}

/* The pieces of a body: the record, or its keys. */
static int make_pieces(const struct layout_request *request, bool packed, uint64_t offset,
		       struct intake *intake)
{
	const uint32_t n = packed ? request->n_keys : 1;
	struct intake_piece *pieces = calloc(n, sizeof *pieces);
	uint32_t to = (uint32_t)offset;

	if (!pieces)
		return fail(-ENOMEM, "no memory for %u keys", n);
	for (uint32_t i = 0; i < n; i++) {
		const struct key *key = &request->keys[i];

		pieces[i] =
			packed ? (struct intake_piece){ (uint32_t)key->offset, to, key->nbytes } :
				 (struct intake_piece){ 0, to, (uint32_t)request->record_nbytes };
		to += pieces[i].nbytes;
	}
	intake->pieces = pieces;
	intake->n_pieces = n;
	return 0;
}

static int make_records(const struct layout_request *request, struct layout *layout)
{
	const bool packed = request->keys_only || request->index;
	const uint64_t count_nbytes = request->count ? 8 : 0;
	const uint64_t position_nbytes = request->index ? 8 : 0;
	const uint32_t key_nbytes = layout->record_keys.key_nbytes;
	int r = make_fields(request->keys, request->n_keys, packed, count_nbytes,
			    &layout->item_keys);

	if (r == 0)
		r = make_pieces(request, packed, count_nbytes, &layout->intake);
	if (r < 0)
		return r;
	layout->kind = LAYOUT_RECORDS;
	layout->element_nbytes = key_nbytes <= 8 - RECORD_NUMBER_NBYTES ? 8 : 16;
	layout->body_offset = count_nbytes;
	layout->body_nbytes = packed ? key_nbytes : request->record_nbytes;
	layout->item_nbytes = count_nbytes + layout->body_nbytes + position_nbytes;
	layout->resident_nbytes = layout->item_nbytes;
	layout->output_offset = request->index ? layout->item_nbytes - 8 : 0;
	layout->output_nbytes = request->index ? 8 : layout->item_nbytes;
	layout->intake.has_count = request->count;
	layout->intake.count_is_be = request->keys[0].kind != KEY_BYTES &&
				     request->keys[0].big_endian;
	layout->intake.has_position = request->index;
	layout->intake.is_identity = !packed && !request->count;
	return 0;
}

/* Is the record nothing but one key that a code holds? */
static bool is_plain(const struct layout_request *request)
{
	return request->n_keys == 1 && request->keys[0].nbytes == request->record_nbytes &&
	       request->record_nbytes <= 16 && !request->keeps_records && !request->count &&
	       !request->index;
}

static bool keys_lie_within(const struct layout_request *request)
{
	for (uint32_t i = 0; i < request->n_keys; i++) {
		const struct key *key = &request->keys[i];

		if (key->nbytes > request->record_nbytes ||
		    key->offset > request->record_nbytes - key->nbytes)
			return false;
	}
	return true;
}

int layout_make(const struct layout_request *request, struct layout *ret_layout)
{
	struct layout layout = { 0 };
	int r = 0;

	if (request->record_nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return -ENOTSUP;
	if (!keys_lie_within(request))
		return -EINVAL;
	if (is_plain(request))
		r = layout_make_plain(&request->keys[0], &layout);
	if (r == 0)
		r = make_fields(request->keys, request->n_keys, false, 0, &layout.record_keys);
	layout.record_nbytes = request->record_nbytes;
	layout.key = request->keys[0];
	if (r == 0 && !is_plain(request))
		r = make_records(request, &layout);
	if (r < 0) {
		layout_free(&layout);
		return r;
	}
	*ret_layout = layout;
	return 0;
}

/*
 * Of a random place in memory at least a cache line or two are fetched. Of 400 MB on two cores,
 * records of 24 bytes took about as long either way, and those of 32 half as long.
 */
enum { LEAST_REFERRED_NBYTES = 32 };

bool layout_refer(const struct layout *records, struct layout *ret_layout)
{
	if (records->kind != LAYOUT_RECORDS || !records->intake.is_identity ||
	    layout_needs_refining(records) || records->record_nbytes < LEAST_REFERRED_NBYTES)
		return false;
	*ret_layout = *records;
	ret_layout->kind = LAYOUT_REFERENCES;
	ret_layout->resident_nbytes = records->element_nbytes;
	return true;
}

void layout_free(struct layout *layout)
{
	free((void *)layout->record_keys.fields);
	free((void *)layout->item_keys.fields);
	free((void *)layout->intake.pieces);
	*layout = (struct layout){ 0 };
}

static const struct layout_ops *ops_of(const struct layout *layout)
{
	static const struct layout_ops *const ops[] = {
		[LAYOUT_CODES] = &layout_ops_codes,
		[LAYOUT_RECORDS] = &layout_ops_records,
		[LAYOUT_REFERENCES] = &layout_ops_codes,
	};

	return ops[layout->kind];
}

size_t layout_key_nbytes(const struct layout *layout)
{
	return ops_of(layout)->key_nbytes(layout);
}

code_t layout_record_key(const struct layout *layout, const void *record)
{
	return ops_of(layout)->record_key(layout, record);
}

code_t layout_key_beginning(const struct layout *layout, const void *key)
{
	return ops_of(layout)->key_beginning(key);
}

void layout_begin_key(const struct layout *layout, code_t beginning, void *key)
{
	ops_of(layout)->begin_key(beginning, key);
}

void layout_item_key(const struct layout *layout, const void *item, void *key)
{
	ops_of(layout)->item_key(layout, item, key);
}

int layout_compare_keys(const struct layout *layout, const void *a, const void *b)
{
	return ops_of(layout)->compare_keys(layout, a, b);
}

size_t layout_edge_nbytes(const struct layout *layout)
{
	return ops_of(layout)->edge_nbytes(layout);
}

int layout_compare_edges(const struct layout *layout, const void *a, const void *b)
{
	return ops_of(layout)->compare_edges(layout, a, b);
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

code_t element_get(const void *elements, uint32_t element_nbytes, uint64_t i)
{
	const char *at = (const char *)elements + i * element_nbytes;
	uint32_t e4;
	uint64_t e8;
	uint128_t e16;

	switch (element_nbytes) {
	case 4:
		memcpy(&e4, at, 4);
		return e4;
	case 8:
		memcpy(&e8, at, 8);
		return e8;
	default:
		memcpy(&e16, at, 16);
		return e16;
	}
}

code_t layout_key_prefix(const struct key_fields *keys, const void *record)
{
	return (code_t)key_word(keys, record, 0) << 64 | key_word(keys, record, 8);
}

void layout_normalise(const struct key_fields *keys, const void *record, unsigned char *key)
{
	for (uint32_t at = 0; at < keys->key_nbytes; at += 8) {
		const uint64_t word = __builtin_bswap64(key_word(keys, record, at));

		memcpy(key + at, &word, 8);
	}
}

void layout_make_item(const struct layout *layout, const void *record, uint64_t position,
		      void *item)
{
	const struct intake *intake = &layout->intake;
	unsigned char *to = item;

	for (uint32_t i = 0; i < intake->n_pieces; i++)
		memcpy(to + intake->pieces[i].to,
		       (const unsigned char *)record + intake->pieces[i].from,
		       intake->pieces[i].nbytes);
	if (intake->has_count)
		layout_set_item_count(layout, item, 1);
	if (intake->has_position)
		memcpy(to + layout->item_nbytes - 8, &position, 8);
}

uint64_t layout_item_count(const struct layout *layout, const void *item)
{
	uint64_t count;

	if (!layout->intake.has_count)
		return 1;
	memcpy(&count, item, 8);
	return layout->intake.count_is_be ? __builtin_bswap64(count) : count;
}

void layout_set_item_count(const struct layout *layout, void *item, uint64_t count)
{
	if (layout->intake.count_is_be)
		count = __builtin_bswap64(count);
	memcpy(item, &count, 8);
}

void layout_make_items(const struct layout *layout, const void *records, uint64_t n,
		       uint64_t position, void *items, struct digest *digest)
{
	const unsigned char *record = records;
	unsigned char *item = items;

	for (uint64_t i = 0; i < n; i++) {
		layout_make_item(layout, record, position + i, item);
		digest_add(digest, (struct digest){ 1, layout_item_hash(layout, item) });
		record += layout->record_nbytes;
		item += layout->item_nbytes;
	}
}
