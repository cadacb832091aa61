/*
 * layout_indirect - layouts of records that stay where they are
 *
 * Elements are as those of records, but numbered through the whole input: they hold all of the key,
 * and no two are equal, so to runs and merges they are codes.
 */
#include "src/record/layout_ops.h"

/*
 * Of a random place in memory at least a cache line or two are fetched. Of 400 MB on two cores,
 * records of 24 bytes took about as long either way, and those of 32 half as long.
 */
enum { MIN_INDIRECT_NBYTES = 32 };

bool layout_make_indirect(const struct layout *records, struct layout *ret_layout)
{
	if (records->kind != LAYOUT_RECORDS || !records->projection.is_identity ||
	    layout_needs_refining(records) || records->record_nbytes < MIN_INDIRECT_NBYTES)
		return false;
	*ret_layout = *records;
	ret_layout->kind = LAYOUT_INDIRECT;
	ret_layout->resident_nbytes = records->element_nbytes;
	return true;
}

const struct layout_ops layout_ops_indirect = {
	.keys = &key_ops_encoded,
	.has_elements = true,
	.is_indirect = true,
};
