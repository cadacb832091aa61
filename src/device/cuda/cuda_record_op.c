/*
 * cuda_record_op - an operation on records on its way (see cuda_record_op.h)
 */
#include "src/device/cuda/cuda_record_op.h"

#include "src/base/scratch.h"

enum { REFINED_ELEMENT_NBYTES = 16, PAIR_NBYTES = 16 };

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

bool cuda_fit_pairs(const struct layout *layout)
{
	const uint32_t key_nbytes = layout->item_keys.key_nbytes;

	return layout->intake.is_identity && layout->item_keys.n == 1 && key_nbytes <= 8 &&
	       key_field_is_code(layout->item_keys.fields) &&
	       layout->record_nbytes - key_nbytes <= 8;
}

/* Divide the scratch, of n items in k slices (0: a sort); returns how long it is. */
static size_t divide(const struct layout *layout, uint32_t k, uint64_t n, char *scratch,
		     struct room *ret_room)
{
	const uint32_t element_nbytes = cuda_fit_pairs(layout) ? PAIR_NBYTES :
								 layout->element_nbytes;
	const bool refines = layout_needs_refining(layout);
	const size_t sort_nbytes =
		larger(kernel_sort_scratch_nbytes(n, element_nbytes),
		       cuda_fit_pairs(layout) ? kernel_sort_pairs_scratch_nbytes(n) : 0);
	const size_t merge_nbytes =
		larger(kernel_merge_scratch_nbytes(k, n, element_nbytes),
		       cuda_fit_pairs(layout) ? kernel_merge_pairs_scratch_nbytes(k, n) : 0);
	const size_t refine_nbytes =
		refines ? kernel_sort_scratch_nbytes(n, REFINED_ELEMENT_NBYTES) : 0;
	const bool makes_items = k == 0 && !layout->intake.is_identity;
	struct room *room = ret_room;
	size_t nbytes = 0;

	room->tables =
		scratch_take(scratch, &nbytes, kernel_items_nbytes(k ? k : 1, layout->item_keys.n));
	room->intake_tables = scratch_take(
		scratch, &nbytes, makes_items ? kernel_intake_nbytes(layout->intake.n_pieces) : 0);
	room->items = scratch_take(scratch, &nbytes, makes_items ? n * layout->item_nbytes : 0);
	room->elements = scratch_take(scratch, &nbytes, n * element_nbytes);
	room->buffers[0] = scratch_take(
		scratch, &nbytes, larger(k ? n * element_nbytes : sort_nbytes, refine_nbytes));
	room->buffers[1] =
		scratch_take(scratch, &nbytes, larger(k ? merge_nbytes : 0, refine_nbytes));
	room->ties = scratch_take(scratch, &nbytes, refines ? kernel_ties_scratch_nbytes(n) : 0);
	for (unsigned i = 0; i < 2; i++)
		room->places[i] =
			scratch_take(scratch, &nbytes, refines ? n * sizeof *room->places[i] : 0);
	room->firsts = scratch_take(scratch, &nbytes, kernel_firsts_nbytes(n));
	room->counts = scratch_take(scratch, &nbytes,
				    layout->intake.has_count ? n * sizeof *room->counts : 0);
	return nbytes;
}

size_t cuda_work_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	struct room room;

	return divide(layout, k, n, NULL, &room);
}

struct kernel_items cuda_describe_items(const struct layout *layout)
{
	return (struct kernel_items){ .item_nbytes = (uint32_t)layout->item_nbytes,
				      .body_offset = (uint32_t)layout->body_offset,
				      .body_nbytes = (uint32_t)layout->body_nbytes,
				      .keys = layout->item_keys };
}

int cuda_work_begin(struct work *work, struct lane *lane, enum stage stage, uint32_t k,
		    void *scratch, size_t edges_nbytes)
{
	const uint64_t nbytes = work->n * work->layout->item_nbytes;
	int r = cuda_operation_begin(lane, stage, nbytes, sizeof *work->found + edges_nbytes,
				     &work->operation);

	work->stream = cuda_lane(lane)->stream;
	work->found = work->operation.result;
	work->items = cuda_describe_items(work->layout);
	work->element_nbytes = work->as_pairs ? PAIR_NBYTES : work->layout->element_nbytes;
	divide(work->layout, k, work->n, scratch, &work->room);
	return r;
}

int cuda_work_end(struct work *work, int r, const char *what)
{
	if (r < 0)
		return cuda_operation_fail(&work->operation, r);
	return cuda_operation_queue(&work->operation, cudaSuccess, what);
}
