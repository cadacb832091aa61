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
static bool records_suit(const struct layout_request *request)
{
	(void)request;
	return true;
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
	uint64_t packed_nbytes = 0;
	int r = layout_make_fields(request, packed, count_nbytes, &layout->item_keys);

	if (r == 0)
		r = make_pieces(request, packed, count_nbytes, &layout->intake);
	if (r < 0)
		return r;
	layout->element_nbytes = key_nbytes <= 8 - RECORD_NUMBER_NBYTES ? 8 : 16;
	layout->body_offset = count_nbytes;
	for (uint32_t i = 0; i < request->n_keys; i++)
		packed_nbytes += request->keys[i].nbytes;
	layout->body_nbytes = packed ? packed_nbytes : request->record_nbytes;
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

void record_make_item(const struct layout *layout, const void *record, uint64_t position,
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

static size_t records_key_nbytes(const struct layout *layout)
{
	const size_t nbytes = (layout->item_keys.key_nbytes + 7) / 8 * 8;

	return nbytes < sizeof(code_t) ? sizeof(code_t) : nbytes;
}

static code_t records_record_key(const struct layout *layout, const void *record)
{
	return layout_key_prefix(&layout->record_keys, record);
}

static code_t records_key_beginning(const void *key)
{
	const unsigned char *bytes = key;
	code_t beginning = 0;

	for (uint32_t i = 0; i < sizeof beginning; i++)
		beginning = beginning << 8 | bytes[i];
	return beginning;
}

static void records_begin_key(code_t beginning, void *key)
{
	unsigned char *bytes = key;

	for (uint32_t i = 0; i < sizeof beginning; i++)
		bytes[i] = (unsigned char)(beginning >> 8 * (15 - i));
}

static void records_item_key(const struct layout *layout, const void *item, void *key)
{
	memset(key, 0, sizeof(code_t)); /* of which a short one takes only a half */
	layout_normalise(&layout->item_keys, item, key);
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
	.key_beginning = records_key_beginning,
	.begin_key = records_begin_key,
	.item_key = records_item_key,
	.compare_keys = records_compare_keys,
	.edge_nbytes = records_edge_nbytes,
	.compare_edges = records_compare_edges,
};

const struct layout_ops layout_ops_records = {
	.suits = records_suit,
	.make = make_records,
	.make_item = record_make_item,
	.keys = &key_ops_records,
};
