/*
 * layout_ops - what differs between the kinds of layouts: a table of functions for each
 *
 * For src/record/ only: everybody else calls the layout_...() of layout.h, which go through the
 * table, and does not ask which kind it is. The back ends have tables of their own, of how items of
 * a kind are sorted and merged (src/device/backend.h).
 */
#pragma once

#include "src/record/layout.h"

/* What a splitter is, and what is remembered of the edges of a window. As layout.h says of the
 * function layout_NAME(). */
struct key_ops {
	size_t (*key_nbytes)(const struct layout *layout);
	encoded_key_t (*record_key)(const struct layout *layout, const void *record);
	encoded_key_t (*key_prefix)(const void *key);
	void (*key_from_prefix)(encoded_key_t prefix, void *key);
	void (*item_key)(const struct layout *layout, const void *item, void *key);
	int (*compare_keys)(const struct layout *layout, const void *a, const void *b);
	size_t (*edge_nbytes)(const struct layout *layout);
	int (*compare_edges)(const struct layout *layout, const void *a, const void *b);
};

struct layout_ops {
	/* Is such a layout made of the request? NULL: it is made of another layout. */
	bool (*accepts)(const struct layout_params *params);
	/*
	 * Fill in the rest of a layout of which kind, record_nbytes, key and record_keys are there.
	 * 0, or -ENOMEM after a message; what was allocated is layout_free()'s then, too.
	 */
	int (*make)(const struct layout_params *params, struct layout *layout);
	/* As layout_project_record(). NULL: there are no items, and elements are made by encode. */
	void (*project_record)(const struct layout *layout, const void *record, uint64_t position,
			       void *item);
	const struct key_ops *keys;
	/* As the functions of these names. */
	bool has_elements, is_indirect, is_key_only;
};

extern const struct layout_ops layout_ops_key_only; /* layout_keys.c */
extern const struct layout_ops layout_ops_indirect; /* layout_indirect.c */
extern const struct layout_ops layout_ops_records;  /* layout_records.c */

/* Keys that are codes: for kinds of which elements hold all of the key; layout_keys.c */
extern const struct key_ops key_ops_encoded;
/* Keys that are layout.item_keys of items; layout_records.c */
extern const struct key_ops key_ops_records;
/* An item by layout.intake; the same */
void record_project(const struct layout *layout, const void *record, uint64_t position, void *item);

/* Is there an integer of 16 bytes at most that sorts as the key does? And how it is made. */
bool key_is_encodable(const struct key *key);
struct key_encoding key_get_encoding(const struct key *key);

/*
 * The fields of the keys: each where it is, or packed, one after the other; from first_offset on.
 * -ENOMEM after a message.
 */
int layout_make_fields(const struct layout_params *params, bool packed, uint64_t first_offset,
		       struct key_fields *ret_fields);
