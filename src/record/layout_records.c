/*
 * layout_records - layouts of which items are sorted and merged
 *
 * A whole key is a normalised key, with zeros up to 8 bytes, or to 16 if it is shorter, so that its
 * beginning is always there. An edge is an item.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/layout_ops.h"

/* Anything can be sorted as records. */
static bool records_accept(const struct layout_params *params)
{
	(void)params;
	return true;
}

/* The pieces of a body: the record, or its keys. */
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

static int make_record_layout(const struct layout_params *params, struct layout *layout)
{
	const bool packed = params->keys_only || params->argsort;
	const uint64_t count_nbytes = params->count ? 8 : 0;
	const uint64_t position_nbytes = params->argsort ? 8 : 0;
	const uint32_t key_nbytes = layout->record_keys.key_nbytes;
	uint64_t packed_nbytes = 0;
	int r = layout_make_fields(params, packed, count_nbytes, &layout->item_keys);

	if (r == 0)
		r = make_projection_copies(params, packed, count_nbytes, &layout->projection);
	if (r < 0)
		return r;
	layout->element_nbytes = key_nbytes <= 8 - RECORD_NUMBER_NBYTES ? 8 : 16;
	layout->body_offset = count_nbytes;
	for (uint32_t i = 0; i < params->n_keys; i++)
		packed_nbytes += params->keys[i].nbytes;
	layout->body_nbytes = packed ? packed_nbytes : params->record_nbytes;
	layout->item_nbytes = count_nbytes + layout->body_nbytes + position_nbytes;
	layout->resident_nbytes = layout->item_nbytes;
	layout->output_offset = params->argsort ? layout->item_nbytes - 8 : 0;
	layout->output_nbytes = params->argsort ? 8 : layout->item_nbytes;
	layout->projection.has_count = params->count;
	layout->projection.count_is_big_endian = params->keys[0].kind != KEY_BYTES &&
						 params->keys[0].big_endian;
	layout->projection.has_position = params->argsort;
	layout->projection.is_identity = !packed && !params->count;
	return 0;
}

void record_project(const struct layout *layout, const void *record, uint64_t position, void *item)
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

static size_t records_key_nbytes(const struct layout *layout)
{
	const size_t nbytes = (layout->item_keys.key_nbytes + 7) / 8 * 8;

	return nbytes < sizeof(encoded_key_t) ? sizeof(encoded_key_t) : nbytes;
}

static encoded_key_t records_record_key(const struct layout *layout, const void *record)
{
	return layout_key_prefix(&layout->record_keys, record);
}

static encoded_key_t records_key_prefix(const void *key)
{
	const unsigned char *bytes = key;
	encoded_key_t prefix = 0;

	for (uint32_t i = 0; i < sizeof prefix; i++)
		prefix = prefix << 8 | bytes[i];
	return prefix;
}

static void records_key_from_prefix(encoded_key_t prefix, void *key)
{
	unsigned char *bytes = key;

	for (uint32_t i = 0; i < sizeof prefix; i++)
		bytes[i] = (unsigned char)(prefix >> 8 * (15 - i));
}

static void records_item_key(const struct layout *layout, const void *item, void *key)
{
	memset(key, 0, sizeof(encoded_key_t)); /* of which a short one takes only a half */
	layout_normalise_key(&layout->item_keys, item, key);
}

static int records_compare_keys(const struct layout *layout, const void *a, const void *b)
{
	return memcmp(a, b, layout->item_keys.key_nbytes);
}

static size_t records_edge_nbytes(const struct layout *layout)
{
	return layout->item_nbytes;
}

static int records_compare_edges(const struct layout *layout, const void *a, const void *b)
{
	return key_compare(&layout->item_keys, a, b);
}

const struct key_ops key_ops_records = {
	.key_nbytes = records_key_nbytes,
	.record_key = records_record_key,
	.key_prefix = records_key_prefix,
	.key_from_prefix = records_key_from_prefix,
	.item_key = records_item_key,
	.compare_keys = records_compare_keys,
	.edge_nbytes = records_edge_nbytes,
	.compare_edges = records_compare_edges,
};

const struct layout_ops layout_ops_records = {
	.accepts = records_accept,
	.make = make_record_layout,
	.project_record = record_project,
	.keys = &key_ops_records,
};
