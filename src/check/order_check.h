/*
 * order_check.h - are consecutive records in order, and what is their digest?
 */
#pragma once

#include "src/record/layout.h"

struct order_check_params {
	const struct layout *layout;
	/*
	 * The records are items of the layout, as in the output, instead of records of the input.
	 * The two may differ (layout_has_projection()).
	 */
	bool are_items;
	const void *previous; /* the record before the first, for comparison only; or NULL */
	const void *records;  /* n, any alignment */
	uint64_t n;
	bool strict; /* equal neighbours are disorders, too (-u) */
};

/* The size of a record, or of an item. */
static inline uint64_t order_record_nbytes(const struct layout *layout, bool are_items)
{
	return are_items ? layout->item_nbytes : layout->record_nbytes;
}

struct order_check_result {
	uint64_t n_disorders;
	uint64_t first_disorder; /* index of the first record out of order; n: none */
	uint64_t n_equal;        /* records with the same key as the one before */
	struct digest digest;    /* of the n records, or of the items' bodies */
	uint64_t counts_sum;     /* sum of the items' counts; n if they have none */
};

void order_check(const struct order_check_params *params, struct order_check_result *ret_result);
