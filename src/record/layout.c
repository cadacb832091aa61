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
static const struct layout_ops *const kinds[N_LAYOUT_KINDS] = {
	[LAYOUT_CODES] = &layout_ops_codes,
	[LAYOUT_REFERENCES] = &layout_ops_references,
	[LAYOUT_RECORDS] = &layout_ops_records,
};

static const struct layout_ops *ops_of(const struct layout *layout)
{
	return kinds[layout->kind];
}

/* The first kind that the request suits. */
static const struct layout_ops *choose_kind(const struct layout_request *request,
					    enum layout_kind *ret_kind)
{
	enum layout_kind kind = 0;

	while (!kinds[kind]->suits || !kinds[kind]->suits(request))
		kind++;
	*ret_kind = kind;
	return kinds[kind];
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
	struct layout layout = { .record_nbytes = request->record_nbytes, .key = request->keys[0] };
	const struct layout_ops *ops;
	int r;

	if (request->record_nbytes > LAYOUT_MOST_RECORD_NBYTES)
		return -ENOTSUP;
	if (!keys_lie_within(request))
		return -EINVAL;
	ops = choose_kind(request, &layout.kind);
	r = layout_make_fields(request, false, 0, &layout.record_keys);
	if (r == 0)
		r = ops->make(request, &layout);
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
	free((void *)layout->intake.pieces);
	*layout = (struct layout){ 0 };
}

bool layout_has_elements(const struct layout *layout)
{
	return ops_of(layout)->has_elements;
}

bool layout_refers(const struct layout *layout)
{
	return ops_of(layout)->refers;
}

bool layout_is_plain(const struct layout *layout)
{
	return ops_of(layout)->is_plain;
}

void layout_make_item(const struct layout *layout, const void *record, uint64_t position,
		      void *item)
{
	ops_of(layout)->make_item(layout, record, position, item);
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

size_t layout_key_nbytes(const struct layout *layout)
{
	return ops_of(layout)->keys->key_nbytes(layout);
}

code_t layout_record_key(const struct layout *layout, const void *record)
{
	return ops_of(layout)->keys->record_key(layout, record);
}

code_t layout_key_beginning(const struct layout *layout, const void *key)
{
	return ops_of(layout)->keys->key_beginning(key);
}

void layout_begin_key(const struct layout *layout, code_t beginning, void *key)
{
	ops_of(layout)->keys->begin_key(beginning, key);
}

code_t layout_first_alike(const struct layout *layout, code_t beginning)
{
	/* The number is in the lowest bits of an element of any width. */
	return layout_refers(layout) ?
		       beginning >> 8 * RECORD_NUMBER_NBYTES << 8 * RECORD_NUMBER_NBYTES :
		       beginning;
}

void layout_item_key(const struct layout *layout, const void *item, void *key)
{
	ops_of(layout)->keys->item_key(layout, item, key);
}

int layout_compare_keys(const struct layout *layout, const void *a, const void *b)
{
	return ops_of(layout)->keys->compare_keys(layout, a, b);
}

size_t layout_edge_nbytes(const struct layout *layout)
{
	return ops_of(layout)->keys->edge_nbytes(layout);
}

int layout_compare_edges(const struct layout *layout, const void *a, const void *b)
{
	return ops_of(layout)->keys->compare_edges(layout, a, b);
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
