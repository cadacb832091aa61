/*
 * kind_records - layouts of which items are sorted and merged
 *
 * A whole key is a normalised key, with zeros up to 8 bytes, or to 16 if it is shorter, so that its
 * beginning is always there. An edge is an item.
 */
#include <string.h>

#include "src/record/kinds.h"

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

const struct layout_ops layout_ops_records = {
	.key_nbytes = records_key_nbytes,
	.record_key = records_record_key,
	.key_beginning = records_key_beginning,
	.begin_key = records_begin_key,
	.item_key = records_item_key,
	.compare_keys = records_compare_keys,
	.edge_nbytes = records_edge_nbytes,
	.compare_edges = records_compare_edges,
};
