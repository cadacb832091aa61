/*
 * kinds - what differs between the kinds of layouts: a table of functions for each
 *
 * For src/record/ only: everybody else calls the layout_...() of record.h, which go through the
 * table, and does not ask which kind it is. The back ends have tables of their own, of how items of
 * a kind are sorted and merged.
 */
#pragma once

#include "src/record/record.h"

/* All as record.h says of the function layout_NAME(). */
struct layout_ops {
	size_t (*key_nbytes)(const struct layout *layout);
	code_t (*record_key)(const struct layout *layout, const void *record);
	code_t (*key_beginning)(const void *key);
	void (*begin_key)(code_t beginning, void *key);
	void (*item_key)(const struct layout *layout, const void *item, void *key);
	int (*compare_keys)(const struct layout *layout, const void *a, const void *b);
	size_t (*edge_nbytes)(const struct layout *layout);
	int (*compare_edges)(const struct layout *layout, const void *a, const void *b);
};

extern const struct layout_ops layout_ops_codes;   /* kind_codes.c; of references, too */
extern const struct layout_ops layout_ops_records; /* kind_records.c */
