/*
 * unique_part - what was read of an input run, without its duplicates (see unique_part.h)
 */
#include "src/merge/unique_part.h"

static int make_codes_unique(const struct engine *engine, struct lane *lane,
			     const struct slice *slice, struct arranged *ret_found)
{
	return lane_unique(lane, &(struct unique_op){
					 .elements = (void *)slice->elements,
					 .n = slice->n,
					 .element_nbytes = engine->layout->element_nbytes,
					 .layout = engine->layout,
					 .ret_n = &ret_found->n,
					 .ret_dropped = &ret_found->dropped,
				 });
}

/* A merge of one slice, by way of other memory. */
static int make_records_unique(const struct engine *engine, struct lane *lane,
			       const struct slice *slice, const struct supply_memory *memory,
			       void *const edges[2], struct arranged *ret_found)
{
	int r = lane_merge_records(lane, &(struct merge_records_op){
						 .layout = engine->layout,
						 .slices = slice,
						 .k = 1,
						 .out = memory->other,
						 .unique = true,
						 .limit = UINT64_MAX,
						 .scratch = memory->scratch,
						 .ret_first = edges[0],
						 .ret_last = edges[1],
						 .ret = ret_found,
					 });

	if (r < 0)
		return r;
	return lane_copy(lane, (void *)slice->elements, memory->other,
			 slice->n * engine->layout->item_nbytes);
}

int unique_part(const struct engine *engine, struct lane *lane, const struct slice *slice,
		const struct supply_memory *memory, void *const edges[2],
		struct arranged *ret_found)
{
	*ret_found = (struct arranged){ .n = slice->n };
	if (slice->n == 0)
		return 0;
	return engine->layout->kind == LAYOUT_RECORDS ?
		       make_records_unique(engine, lane, slice, memory, edges, ret_found) :
		       make_codes_unique(engine, lane, slice, ret_found);
}
