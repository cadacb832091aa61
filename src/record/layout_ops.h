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
	code_t (*record_key)(const struct layout *layout, const void *record);
	code_t (*key_beginning)(const void *key);
	void (*begin_key)(code_t beginning, void *key);
	void (*item_key)(const struct layout *layout, const void *item, void *key);
	int (*compare_keys)(const struct layout *layout, const void *a, const void *b);
	size_t (*edge_nbytes)(const struct layout *layout);
	int (*compare_edges)(const struct layout *layout, const void *a, const void *b);
};

struct layout_ops {
	/* Is such a layout made of the request? NULL: it is made of another layout. */
	bool (*suits)(const struct layout_request *request);
	/*
	 * Fill in the rest of a layout of which kind, record_nbytes, key and record_keys are there.
	 * 0, or -ENOMEM after a message; what was allocated is layout_free()'s then, too.
	 */
	int (*make)(const struct layout_request *request, struct layout *layout);
	/* As layout_make_item(). NULL: there are no items, and elements are made by encode. */
	void (*make_item)(const struct layout *layout, const void *record, uint64_t position,
			  void *item);
	const struct key_ops *keys;
	/* As the functions of these names. */
	bool has_elements, refers, is_plain;
};

extern const struct layout_ops layout_ops_codes;      /* layout_keys.c */
extern const struct layout_ops layout_ops_references; /* layout_indirect.c */
extern const struct layout_ops layout_ops_records;    /* layout_records.c */

/* Keys that are codes: for kinds of which elements hold all of the key; layout_keys.c */
extern const struct key_ops key_ops_codes;
/* Keys that are layout.item_keys of items; layout_records.c */
extern const struct key_ops key_ops_records;
/* An item by layout.intake; the same */
void record_make_item(const struct layout *layout, const void *record, uint64_t position,
		      void *item);

/* Is there an integer of 16 bytes at most that sorts as the key does? And how it is made. */
bool key_has_code(const struct key *key);
struct code_map key_code_map(const struct key *key);

/*
 * The fields of the keys: each where it is, or packed, one after the other; from first_offset on.
 * -ENOMEM after a message.
 */
int layout_make_fields(const struct layout_request *request, bool packed, uint64_t first_offset,
		       struct key_fields *ret_fields);
