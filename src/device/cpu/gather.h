/*
 * gather - copy items in their order, with digests and a check of the order
 */
#pragma once

#include "src/device/cpu/element_format.h"
#include "src/device/cpu/item_lookup.h"

struct gather_op {
	const struct layout *layout;
	const struct item_lookup *items;
	/* n, in the desired order; NULL: the items are already in order. */
	const void *elements;
	uint64_t n;
	uint64_t n_ordered;                  /* the number of items before the limit */
	const struct element_format *format; /* of the elements */
	void *out;
	bool for_output, unique;
	bool scattered; /* hint: neighbours in order are not neighbours in memory */
	/*
	 * Another thread may be writing the items. All results are then computed from `out`, and
	 * equal keys out of the order of their numbers count as disorder. This requires elements,
	 * scattered, and whole items; nothing is dropped or counted.
	 */
	bool may_change;
	uint64_t limit;
	void *ret_first, *ret_last; /* item_nbytes; may be NULL */
	struct sort_op_result *ret;
};

/* See sort_op and merge_op. `out` does not overlap the other arrays. */
void cpu_gather(const struct gather_op *op);
