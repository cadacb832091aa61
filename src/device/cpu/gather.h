/*
 * gather - items in their order, checked on the way
 */
#pragma once

#include "src/device/cpu/element_format.h"
#include "src/device/cpu/item_lookup.h"

struct gather_op {
	const struct layout *layout;
	const struct item_lookup *items;
	/* n, in the order wanted; NULL: the items are in order, and these are all of them. */
	const void *elements;
	uint64_t n;
	uint64_t n_ordered;                  /* so many; all behind these are beyond the limit */
	const struct element_format *format; /* of the elements */
	void *out;
	bool for_output, unique;
	bool scattered; /* neighbours in order are no neighbours in memory: a hint */
	/*
	 * Somebody may be writing the items meanwhile: all that is reported is told of what is in
	 * `out`, where equal keys out of the order of their numbers are disorder, too. There are
	 * elements then, scattered, whole items are written, and none is dropped or counted.
	 */
	bool may_change;
	uint64_t limit;
	void *ret_first, *ret_last; /* item_nbytes; may be NULL */
	struct sort_op_result *ret;
};

/* See sort_op and merge_op. `out` overlaps nothing else. */
void cpu_gather(const struct gather_op *op);
