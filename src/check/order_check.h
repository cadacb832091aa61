/*
 * order_check - are consecutive records in order, and what do they hold?
 */
#pragma once

#include "src/record/layout.h"

struct order_op {
	const struct layout *layout;
	/*
	 * The records are the layout's items, as the output has them, and not those of the input:
	 * the two may differ (layout_makes_items()).
	 */
	bool are_items;
	const void *previous; /* the record before the first, only compared with; or NULL */
	const void *records;  /* n, any alignment */
	uint64_t n;
	bool strict; /* equal neighbours are disorder too (-u) */
};

/* The size of a record, or of an item. */
static inline uint64_t order_record_nbytes(const struct layout *layout, bool are_items)
{
	return are_items ? layout->item_nbytes : layout->record_nbytes;
}

struct order_found {
	uint64_t n_disorders;
	uint64_t first_disorder; /* index of the first record that is out of order; n: none */
	uint64_t n_equal;        /* records with the key of the one before */
	struct digest digest;    /* of the n records, or of the bodies of items */
	uint64_t n_counted;      /* the sum of the counts of items; n if they have none */
};

void order_check(const struct order_op *op, struct order_found *ret_found);
