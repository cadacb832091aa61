/*
 * cuda_record_op - the state of an operation on records (see cuda_record_op.h)
 */
#include "src/device/cuda/cuda_record_op.h"

#include "src/base/scratch.h"

enum { TIE_BREAK_ELEMENT_NBYTES = 16, PAIR_NBYTES = 16 };

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

bool cuda_can_use_pairs(const struct layout *layout)
{
	const uint32_t key_nbytes = layout->item_keys.key_nbytes;

	return layout->projection.is_identity && layout->item_keys.n == 1 && key_nbytes <= 8 &&
	       key_field_is_decodable(layout->item_keys.fields) &&
	       layout->record_nbytes - key_nbytes <= 8;
}

/* Divide the scratch for n items in k slices (0: a sort); return its size. */
static size_t divide_op_scratch(const struct layout *layout, uint32_t k, uint64_t n, char *scratch,
				struct record_op_scratch *ret_areas)
{
	const uint32_t element_nbytes = cuda_can_use_pairs(layout) ? PAIR_NBYTES :
								     layout->element_nbytes;
	const bool needs_tie_break = layout_needs_refining(layout);
	const size_t sort_nbytes =
		larger(kernel_sort_scratch_nbytes(n, element_nbytes),
		       cuda_can_use_pairs(layout) ? kernel_sort_pairs_scratch_nbytes(n) : 0);
	const size_t merge_nbytes =
		larger(kernel_merge_scratch_nbytes(k, n, element_nbytes),
		       cuda_can_use_pairs(layout) ? kernel_merge_pairs_scratch_nbytes(k, n) : 0);
	const size_t tie_break_nbytes =
		needs_tie_break ? kernel_sort_scratch_nbytes(n, TIE_BREAK_ELEMENT_NBYTES) : 0;
	const bool makes_items = k == 0 && !layout->projection.is_identity;
	struct record_op_scratch *areas = ret_areas;
	size_t nbytes = 0;

	areas->tables = scratch_allocate(scratch, &nbytes,
					 kernel_items_nbytes(k ? k : 1, layout->item_keys.n));
	areas->projection_tables = scratch_allocate(
		scratch, &nbytes,
		makes_items ? kernel_projection_nbytes(layout->projection.n_copies) : 0);
	areas->items =
		scratch_allocate(scratch, &nbytes, makes_items ? n * layout->item_nbytes : 0);
	areas->elements = scratch_allocate(scratch, &nbytes, n * element_nbytes);
	areas->buffers[0] = scratch_allocate(
		scratch, &nbytes, larger(k ? n * element_nbytes : sort_nbytes, tie_break_nbytes));
	areas->buffers[1] =
		scratch_allocate(scratch, &nbytes, larger(k ? merge_nbytes : 0, tie_break_nbytes));
	areas->ties = scratch_allocate(scratch, &nbytes,
				       needs_tie_break ? kernel_ties_scratch_nbytes(n) : 0);
	for (unsigned i = 0; i < 2; i++)
		areas->positions[i] = scratch_allocate(
			scratch, &nbytes, needs_tie_break ? n * sizeof *areas->positions[i] : 0);
	areas->head_flags = scratch_allocate(scratch, &nbytes, kernel_head_flags_nbytes(n));
	areas->counts = scratch_allocate(
		scratch, &nbytes, layout->projection.has_count ? n * sizeof *areas->counts : 0);
	return nbytes;
}

size_t cuda_record_op_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	struct record_op_scratch areas;

	return divide_op_scratch(layout, k, n, NULL, &areas);
}

struct kernel_items cuda_describe_items(const struct layout *layout)
{
	return (struct kernel_items){ .item_nbytes = (uint32_t)layout->item_nbytes,
				      .body_offset = (uint32_t)layout->body_offset,
				      .body_nbytes = (uint32_t)layout->body_nbytes,
				      .keys = layout->item_keys };
}

int cuda_record_op_begin(struct cuda_record_op *record_op, struct device_queue *queue,
			 enum stage stage, uint32_t k, void *scratch, size_t edges_nbytes)
{
	const uint64_t nbytes = record_op->n * record_op->layout->item_nbytes;
	int r = cuda_operation_begin(queue, stage, nbytes, sizeof *record_op->result + edges_nbytes,
				     &record_op->operation);

	record_op->stream = cuda_queue(queue)->stream;
	record_op->result = record_op->operation.result;
	record_op->items = cuda_describe_items(record_op->layout);
	record_op->element_nbytes = record_op->use_pairs ? PAIR_NBYTES :
							   record_op->layout->element_nbytes;
	divide_op_scratch(record_op->layout, k, record_op->n, scratch, &record_op->areas);
	return r;
}

int cuda_record_op_end(struct cuda_record_op *record_op, int r, const char *what)
{
	if (r < 0)
		return cuda_operation_abort(&record_op->operation, r);
	return cuda_operation_submit(&record_op->operation, cudaSuccess, what);
}
