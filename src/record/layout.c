/*
 * layout.c - what a sort moves in place of a record
 *
 * A file is a sequence of records of the same size, each with one or more keys. A sort never
 * compares keys field by field, and it does not move whole records if it can move less. What it
 * moves instead is the layout. There are three, and the first that fits is used.
 *
 * Key-only. The keys are all of the record, and together have at most 16 bytes. Then the record is
 * mapped to an unsigned integer that sorts like it, the encoded key, and back (key_encoding.h).
 * Elements, which hold the encoded keys, are all that is sorted and merged. Example, records of one
 * i32:
 *
 *	record     fe ff ff ff  (-2)   05 00 00 00  (5)
 *	element    7ffffffe            80000005
 *
 * Indirect. The records lie in memory and stay there, because the input is mapped, and all of the
 * key fits into an element beside the record's number. Elements are sorted and merged; each record
 * is fetched once, when the output is made. Example, mapped records of 100 bytes with the key
 * 0:u32, 16-byte elements; these are records number 7 and 9:
 *
 *	element    [ 00000005 00...00 | 00000007 ]   [ 80000001 00...00 | 00000009 ]
 *
 * Records. Everything else. An element is the first 4 or 12 bytes of the normalised key
 * (normalised_key.h), followed by the record's number in its chunk or window. Elements are sorted,
 * elements that tie are refined by the next bytes of their keys, and then the items are gathered in
 * that order. Example, a chunk of records with a key of 15 bytes, "keys-" with a number:
 *
 *	element    [ "keys-0000000" | 0 ]   [ "keys-0000000" | 1 ]     tie: bytes 12 to 14 decide
 *
 * The number makes elements unique, so that even a sort that is not stable puts equal keys in their
 * original order.
 *
 * What each part of a sort sees of a record:
 *
 *	            resident run    spilled run                     output
 *	key-only    element         element, or record if shorter   record
 *	indirect    element         never spilled                   record
 *	records     item            item                            part of the item
 *
 * An item is the part of a record that runs store and merges move. Usually it is the whole record.
 * Options that change the output (--count, --keys-only, --argsort) make another item when the
 * record is read, so that runs and merges need not know these options:
 *
 *	  u64 count         body                      u64 position
 *	[ --count only ][ the record, or with       ][ --argsort only ]
 *	                  --keys-only or --argsort
 *	                  its keys, one after the other ]
 *
 * The output takes a range of its bytes. The count is 1 at first and is added up by -u; it is in
 * the byte order of the first key. The position is the record's number in the input, little-endian.
 *
 * Back ends have a table for each kind: how its items are sorted and merged (src/device/backend.h).
 * Nothing but that and this file asks for the kind.
 */
#include "src/record/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/key_layout.h"
#include "src/record/load_upto16.h"

/* --- Key-only layouts --- */

/* Set the layout of records that the keys cover. Pointers are not touched. */
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

/* With keys_only the record must be a single key: several would be reordered. */
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

/* --- Indirect layouts --- */

/*
 * Each access to a random place in memory fetches one or two cache lines. With 400 MB on two cores,
 * records of 24 bytes took about the same time with either layout, and those of 32 bytes half as
 * long.
 */
enum { MIN_INDIRECT_NBYTES = 32 };

bool layout_make_indirect(const struct layout *records, struct layout *ret_layout)
{
	if (records->kind != LAYOUT_RECORDS || !records->projection.is_identity ||
	    layout_needs_refining(records) || records->record_nbytes < MIN_INDIRECT_NBYTES)
		return false;
	*ret_layout = *records;
	ret_layout->kind = LAYOUT_INDIRECT;
	ret_layout->resident_nbytes = records->element_nbytes;
	return true;
}

/* --- Layouts of records --- */

/*
 * Return whether the records would be key-only if they were not forced to be items. Such records
 * are sorted in exactly the order of encoded keys, so that --limit writes the same bytes as the
 * beginning of the whole output.
 */
static bool follows_encoded_order(const struct layout_params *params)
{
	struct layout_params unforced = *params;

	unforced.force_records = false;
	return params->force_records && key_only_accepts(&unforced);
}

/* Make the copies from record to body: of the record, or of its keys. */
static int make_projection_copies(const struct layout_params *params, bool packed, uint64_t offset,
				  struct projection *projection)
{
	const uint32_t n = packed ? params->n_keys : 1;
	struct projection_copy *copies = calloc(n, sizeof *copies);
	uint32_t item_offset = (uint32_t)offset;

	if (!copies)
		return fail(-ENOMEM, "no memory for %u keys", n);
	for (uint32_t i = 0; i < n; i++) {
		const struct key *key = &params->keys[i];

		copies[i] = packed ? (struct projection_copy){ (uint32_t)key->offset, item_offset,
							       key->nbytes } :
				     (struct projection_copy){ 0, item_offset,
							       (uint32_t)params->record_nbytes };
		item_offset += copies[i].nbytes;
	}
	projection->copies = copies;
	projection->n_copies = n;
	return 0;
}

static int make_records(const struct layout_params *params, struct layout *layout)
{
	const bool packed = params->keys_only || params->argsort;
	const uint64_t count_nbytes = params->count ? 8 : 0;
	const uint64_t position_nbytes = params->argsort ? 8 : 0;
	const uint32_t key_nbytes = layout->record_keys.key_nbytes;
	uint64_t packed_nbytes = 0;
	int r = key_fields_make(params->keys, params->n_keys, packed, count_nbytes,
				follows_encoded_order(params), &layout->item_keys);

	if (r == 0)
		r = make_projection_copies(params, packed, count_nbytes, &layout->projection);
	if (r < 0)
		return r;
	layout->kind = LAYOUT_RECORDS;
	layout->element_nbytes = key_nbytes <= 8 - RECORD_NUMBER_NBYTES ? 8 : 16;
	layout->body_offset = count_nbytes;
	for (uint32_t i = 0; i < params->n_keys; i++)
		packed_nbytes += params->keys[i].nbytes;
	layout->body_nbytes = packed ? packed_nbytes : params->record_nbytes;
	layout->item_nbytes = count_nbytes + layout->body_nbytes + position_nbytes;
	layout->resident_nbytes = layout->item_nbytes;
	layout->keep_last = params->keep_last;
	layout->output_offset = params->argsort ? layout->item_nbytes - 8 : 0;
	layout->output_nbytes = params->argsort ? 8 : layout->item_nbytes;
	layout->projection.has_count = params->count;
	layout->projection.count_is_big_endian = params->keys[0].kind != KEY_BYTES &&
						 params->keys[0].big_endian;
	layout->projection.has_position = params->argsort;
	layout->projection.is_identity = !packed && !params->count;
	return 0;
}

void layout_project_record(const struct layout *layout, const void *record, uint64_t position,
			   void *item)
{
	const struct projection *projection = &layout->projection;
	unsigned char *destination = item;

	for (uint32_t i = 0; i < projection->n_copies; i++)
		memcpy(destination + projection->copies[i].item_offset,
		       (const unsigned char *)record + projection->copies[i].record_offset,
		       projection->copies[i].nbytes);
	if (projection->has_count)
		layout_set_item_count(layout, item, 1);
	if (projection->has_position)
		memcpy(destination + layout->item_nbytes - 8, &position, 8);
}

uint64_t layout_item_count(const struct layout *layout, const void *item)
{
	uint64_t count;

	if (!layout->projection.has_count)
		return 1;
	memcpy(&count, item, 8);
	return layout->projection.count_is_big_endian ? __builtin_bswap64(count) : count;
}

void layout_set_item_count(const struct layout *layout, void *item, uint64_t count)
{
	if (layout->projection.count_is_big_endian)
		count = __builtin_bswap64(count);
	memcpy(item, &count, 8);
}

void layout_project_records(const struct layout *layout, const void *records, uint64_t n,
			    uint64_t position, void *items, struct digest *digest)
{
	const unsigned char *record = records;
	unsigned char *item = items;

	for (uint64_t i = 0; i < n; i++) {
		layout_project_record(layout, record, position + i, item);
		digest_add(digest, (struct digest){ 1, layout_item_hash(layout, item) });
		record += layout->record_nbytes;
		item += layout->item_nbytes;
	}
}

/* --- Any layout --- */

static bool are_keys_in_record(const struct layout_params *params)
{
	for (uint32_t i = 0; i < params->n_keys; i++) {
		const struct key *key = &params->keys[i];

		if (key->nbytes > params->record_nbytes ||
		    key->offset > params->record_nbytes - key->nbytes)
			return false;
	}
	return true;
}

int layout_make(const struct layout_params *params, struct layout *ret_layout)
{
	struct layout layout = { .record_nbytes = params->record_nbytes, .key = params->keys[0] };
	int r;

	if (params->record_nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return -ENOTSUP;
	if (!are_keys_in_record(params))
		return -EINVAL;
	r = key_fields_make(params->keys, params->n_keys, false, 0, follows_encoded_order(params),
			    &layout.record_keys);
	if (r == 0 && key_only_accepts(params))
		set_key_only(params->keys, params->n_keys, params->record_nbytes, &layout);
	else if (r == 0)
		r = make_records(params, &layout);
	if (r < 0) {
		layout_free(&layout);
		return r;
	}
	*ret_layout = layout;
	return 0;
}

void layout_free(struct layout *layout)
{
	free((void *)layout->record_keys.fields);
	free((void *)layout->item_keys.fields);
	free((void *)layout->projection.copies);
}

/* --- Whole keys, as splitters have them --- */

size_t layout_key_nbytes(const struct layout *layout)
{
	const size_t nbytes = (layout->item_keys.key_nbytes + 7) / 8 * 8;

	return layout_has_elements(layout) || nbytes < sizeof(encoded_key_t) ?
		       sizeof(encoded_key_t) :
		       nbytes;
}

encoded_key_t layout_record_key(const struct layout *layout, const void *record)
{
	return layout_has_elements(layout) ? layout_encode(layout, record) :
					     layout_key_prefix(&layout->record_keys, record);
}

encoded_key_t layout_get_key_prefix(const struct layout *layout, const void *key)
{
	const unsigned char *bytes = key;
	encoded_key_t prefix = 0;

	if (layout_has_elements(layout)) {
		memcpy(&prefix, key, sizeof prefix);
		return prefix;
	}
	for (uint32_t i = 0; i < sizeof prefix; i++)
		prefix = prefix << 8 | bytes[i];
	return prefix;
}

void layout_key_from_prefix(const struct layout *layout, encoded_key_t prefix, void *key)
{
	unsigned char *bytes = key;

	if (layout_has_elements(layout)) {
		memcpy(key, &prefix, sizeof prefix);
		return;
	}
	for (uint32_t i = 0; i < sizeof prefix; i++)
		bytes[i] = (unsigned char)(prefix >> 8 * (15 - i));
}

encoded_key_t layout_first_equal(const struct layout *layout, encoded_key_t prefix)
{
	/* The number is in the lowest bits of an element of either width. */
	return layout_is_indirect(layout) ?
		       prefix >> 8 * RECORD_NUMBER_NBYTES << 8 * RECORD_NUMBER_NBYTES :
		       prefix;
}

void layout_item_key(const struct layout *layout, const void *item, void *key)
{
	if (layout_has_elements(layout)) {
		layout_key_from_prefix(layout, layout_encode(layout, item), key);
		return;
	}
	memset(key, 0, sizeof(encoded_key_t)); /* a short key sets only half of it */
	layout_normalise_key(&layout->item_keys, item, key);
}

static int compare_encoded_keys(const struct layout *layout, const void *a, const void *b)
{
	const encoded_key_t key_a = layout_get_key_prefix(layout, a);
	const encoded_key_t key_b = layout_get_key_prefix(layout, b);

	return key_a < key_b ? -1 : key_a > key_b;
}

int layout_compare_keys(const struct layout *layout, const void *a, const void *b)
{
	return layout_has_elements(layout) ? compare_encoded_keys(layout, a, b) :
					     memcmp(a, b, layout->item_keys.key_nbytes);
}

/* --- Edges --- */

size_t layout_edge_nbytes(const struct layout *layout)
{
	return layout_has_elements(layout) ? sizeof(encoded_key_t) : layout->item_nbytes;
}

bool layout_is_disorder(const struct layout *layout, bool strict, const void *last,
			const void *next)
{
	const int order = layout_has_elements(layout) ? compare_encoded_keys(layout, last, next) :
							key_compare(&layout->item_keys, last, next);

	return order > 0 || (order == 0 && strict);
}

encoded_key_t element_get(const void *elements, uint32_t element_nbytes, uint64_t i)
{
	const char *element = (const char *)elements + i * element_nbytes;
	uint32_t e4;
	uint64_t e8;
	uint128_t e16;

	switch (element_nbytes) {
	case 4:
		memcpy(&e4, element, 4);
		return e4;
	case 8:
		memcpy(&e8, element, 8);
		return e8;
	default:
		memcpy(&e16, element, 16);
		return e16;
	}
}

encoded_key_t layout_key_prefix(const struct key_fields *keys, const void *record)
{
	return (encoded_key_t)key_word(keys, record, 0) << 64 | key_word(keys, record, 8);
}

void layout_normalise_key(const struct key_fields *keys, const void *record, unsigned char *key)
{
	for (uint32_t offset = 0; offset < keys->key_nbytes; offset += 8) {
		const uint64_t word = __builtin_bswap64(key_word(keys, record, offset));

		memcpy(key + offset, &word, 8);
	}
}
