/*
 * layout - layouts (see layout.h)
 */
#include "src/record/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/record/layout_ops.h"

/* A row for each kind; of a request, the first that suits makes a layout. */
static const struct layout_ops *const ops_by_kind[N_LAYOUT_KINDS] = {
	[LAYOUT_KEY_ONLY] = &layout_ops_key_only,
	[LAYOUT_INDIRECT] = &layout_ops_indirect,
	[LAYOUT_RECORDS] = &layout_ops_records,
};

static const struct layout_ops *get_ops(const struct layout *layout)
{
	return ops_by_kind[layout->kind];
}

/* The first kind that the request suits. */
static const struct layout_ops *select_kind(const struct layout_params *params,
					    enum layout_kind *ret_kind)
{
	enum layout_kind kind = 0;

	while (!ops_by_kind[kind]->accepts || !ops_by_kind[kind]->accepts(params))
		kind++;
	*ret_kind = kind;
	return ops_by_kind[kind];
}

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
	const struct layout_ops *ops;
	int r;

	if (params->record_nbytes > LAYOUT_MAX_RECORD_NBYTES)
		return -ENOTSUP;
	if (!are_keys_in_record(params))
		return -EINVAL;
	ops = select_kind(params, &layout.kind);
	r = layout_make_fields(params, false, 0, &layout.record_keys);
	if (r == 0)
		r = ops->make(params, &layout);
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
	*layout = (struct layout){ 0 };
}

bool layout_has_elements(const struct layout *layout)
{
	return get_ops(layout)->has_elements;
}

bool layout_is_indirect(const struct layout *layout)
{
	return get_ops(layout)->is_indirect;
}

bool layout_is_key_only(const struct layout *layout)
{
	return get_ops(layout)->is_key_only;
}

void layout_project_record(const struct layout *layout, const void *record, uint64_t position,
			   void *item)
{
	get_ops(layout)->project_record(layout, record, position, item);
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

size_t layout_key_nbytes(const struct layout *layout)
{
	return get_ops(layout)->keys->key_nbytes(layout);
}

encoded_key_t layout_record_key(const struct layout *layout, const void *record)
{
	return get_ops(layout)->keys->record_key(layout, record);
}

encoded_key_t layout_get_key_prefix(const struct layout *layout, const void *key)
{
	return get_ops(layout)->keys->key_prefix(key);
}

void layout_key_from_prefix(const struct layout *layout, encoded_key_t prefix, void *key)
{
	get_ops(layout)->keys->key_from_prefix(prefix, key);
}

encoded_key_t layout_first_equal(const struct layout *layout, encoded_key_t prefix)
{
	/* The number is in the lowest bits of an element of any width. */
	return layout_is_indirect(layout) ?
		       prefix >> 8 * RECORD_NUMBER_NBYTES << 8 * RECORD_NUMBER_NBYTES :
		       prefix;
}

void layout_item_key(const struct layout *layout, const void *item, void *key)
{
	get_ops(layout)->keys->item_key(layout, item, key);
}

int layout_compare_keys(const struct layout *layout, const void *a, const void *b)
{
	return get_ops(layout)->keys->compare_keys(layout, a, b);
}

size_t layout_edge_nbytes(const struct layout *layout)
{
	return get_ops(layout)->keys->edge_nbytes(layout);
}

int layout_compare_edges(const struct layout *layout, const void *a, const void *b)
{
	return get_ops(layout)->keys->compare_edges(layout, a, b);
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
