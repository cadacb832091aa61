/*
 * cuda_records - the operations on records, on a GPU (see cuda_records.h)
 *
 *	sort	records --intake--> items --index--> elements --sort--> refine --gather--> items
 *	merge	slices  --index--> slices of elements --merge--> refine --gather--> items
 *
 * Small records with a small key need neither a number nor a gather: a pair is the key and the rest
 * of the record (pairs.cu), sorted or merged like elements. Only -u goes the long way.
 *
 * Intake is left out when records are items, refine when an element has room for the whole key.
 */
#include "src/device/cuda/cuda_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/device/cuda/cuda_tie_break.h"
#include "src/device/cuda/cuda_record_op.h"

size_t cuda_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	return cuda_work_scratch_nbytes(layout, k, n);
}

/* --- Pairs --- */

static struct pair_shape shape_pairs(const struct layout *layout)
{
	const struct key_field *field = layout->item_keys.fields;
	struct code_map map = key_field_code_map(field);

	map.element_nbytes = 8;
	return (struct pair_shape){ .map = map, .key_offset = field->offset };
}

/* --- Sorting and merging --- */

/* What the last step needs besides the work. */
struct arrangement {
	bool unique, for_output;
	uint64_t limit;
	void *out;
	void *first, *last; /* on the device; may be NULL */
};

/* The pairs are in order: make records of them. */
static int unmake_pairs(struct work *work, const struct arrangement *arrangement)
{
	const struct unmake_pairs_task task = { .shape = shape_pairs(work->layout),
						.record_nbytes =
							(uint32_t)work->layout->record_nbytes,
						.pairs = work->room.elements,
						.n = work->n,
						.limit = arrangement->limit,
						.out = arrangement->out,
						.findings = &work->found->gathered,
						.first = arrangement->first,
						.last = arrangement->last };

	return cuda_status(launch_unmake_pairs(&task, work->stream), "gather");
}

/* The elements are in order: put the items in theirs. */
static int arrange(struct work *work, const struct arrangement *arrangement)
{
	const struct layout *layout = work->layout;
	struct gather_task task = {
		.items = work->items,
		.elements = work->room.elements,
		.element_nbytes = work->element_nbytes,
		.n = work->n,
		.limit = arrangement->limit,
		.out_offset = arrangement->for_output ? (uint32_t)layout->output_offset : 0,
		.out_nbytes = (uint32_t)(arrangement->for_output ? layout->output_nbytes :
								   layout->item_nbytes),
		.out = arrangement->out,
		.has_count = layout->intake.has_count,
		.count_is_be = layout->intake.count_is_be,
		.counts = work->room.counts,
		.findings = &work->found->gathered,
		.first = arrangement->first,
		.last = arrangement->last,
	};
	int r = 0;

	if (work->as_pairs)
		return unmake_pairs(work, arrangement);
	if (arrangement->unique)
		r = cuda_status(launch_find_firsts(&work->items, task.elements, task.element_nbytes,
						   task.n, work->room.firsts, &task.firsts,
						   work->stream),
				"unique");
	return r < 0 ? r : cuda_status(launch_gather(&task, work->stream), "gather");
}

static struct arranged arranged_of(const struct gather_findings *found)
{
	return (struct arranged){ .n = found->n,
				  .n_counted = found->n_counted,
				  .n_disorders = found->n_disorders,
				  .digest = found->digest,
				  .dropped = found->dropped };
}

static void deliver_sorted(const struct delivery *delivery)
{
	const struct findings *found = delivery->from;

	*(struct digest *)delivery->to[0] = found->read;
	*(struct arranged *)delivery->to[1] = arranged_of(&found->gathered);
}

_Static_assert(sizeof(struct intake_piece) == sizeof(struct kernel_piece) &&
		       offsetof(struct intake_piece, to) == offsetof(struct kernel_piece, to) &&
		       offsetof(struct intake_piece, nbytes) ==
			       offsetof(struct kernel_piece, nbytes),
	       "pieces are handed to the kernels as they are");

static int make_items(struct work *work, const struct sort_op *op)
{
	const struct intake *intake = &work->layout->intake;
	const struct intake_task task = {
		.records = op->records,
		.items = work->room.items,
		.n = op->n,
		.position = op->position,
		.record_nbytes = (uint32_t)work->layout->record_nbytes,
		.item_nbytes = (uint32_t)work->layout->item_nbytes,
		.pieces = (const struct kernel_piece *)intake->pieces,
		.n_pieces = intake->n_pieces,
		.has_count = intake->has_count,
		.count_is_be = intake->count_is_be,
		.has_position = intake->has_position,
		.tables = work->room.intake_tables,
	};

	return cuda_status(launch_intake(&task, work->stream), "intake");
}

/* Of all items, in the order of their numbers; a CUDA error code. */
static int make_elements(struct work *work, void *elements, struct digest *digest)
{
	const struct pair_shape shape = work->as_pairs ? shape_pairs(work->layout) :
							 (struct pair_shape){ 0 };

	return work->as_pairs ? launch_make_pairs(&work->items, &shape, work->n, elements, digest,
						  work->stream) :
				launch_index(&work->items, work->n, work->element_nbytes, elements,
					     digest, work->stream);
}

/* The elements of a chunk, sorted by their part of the key. */
static int sort_elements(struct work *work, const struct sort_op *op)
{
	const bool is_identity = work->layout->intake.is_identity;
	const struct kernel_slice all = { is_identity ? op->records : work->room.items, op->n };
	void *elements = work->room.elements;
	int r = is_identity ? 0 : make_items(work, op);

	if (r < 0)
		return r;
	r = launch_view_items(&work->items, &all, 1, work->room.tables, work->stream);
	if (!r)
		r = make_elements(work, elements, &work->found->read);
	if (!r)
		r = work->as_pairs ? launch_sort_pairs(elements, op->n, work->room.buffers[0],
						       work->stream) :
				     launch_sort(elements, op->n, work->element_nbytes,
						 work->room.buffers[0], work->stream);
	return cuda_status(r, "sort");
}

int cuda_sort_records(struct lane *lane, const struct sort_op *op)
{
	const struct arrangement arrangement = { .unique = op->unique,
						 .limit = op->limit,
						 .out = op->items };
	struct work work = { .layout = op->layout,
			     .n = op->n,
			     .as_pairs = cuda_fit_pairs(op->layout) && !op->unique };
	int r = cuda_work_begin(&work, lane, STAGE_SORT, 0, op->scratch, 0);

	if (r == 0)
		r = sort_elements(&work, op);
	if (r == 0)
		r = cuda_refine(&work);
	if (r == 0)
		r = arrange(&work, &arrangement);
	if (r == 0) {
		work.operation.delivery->to[0] = op->ret_read;
		work.operation.delivery->to[1] = op->ret;
		work.operation.delivery->deliver = deliver_sorted;
	}
	return cuda_work_end(&work, r, "sort");
}

static void deliver_merged(const struct delivery *delivery)
{
	const struct findings *found = delivery->from;
	const char *edges = (const char *)(found + 1);

	*(struct arranged *)delivery->to[0] = arranged_of(&found->gathered);
	if (found->gathered.n == 0 || !delivery->to[1])
		return;
	memcpy(delivery->to[1], edges, delivery->n);
	memcpy(delivery->to[2], edges + delivery->n, delivery->n);
}

/* The elements of the slices, merged by their part of the key. */
static int merge_elements(struct work *work, const struct merge_op *op)
{
	struct kernel_slice *slices = malloc((op->k + 1) * sizeof *slices);
	char *elements = work->room.buffers[0];
	int r;

	if (!slices)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->k; i++) {
		slices[i] = (struct kernel_slice){ elements, op->slices[i].n };
		elements += slices[i].n * work->element_nbytes;
	}
	r = launch_view_items(&work->items, cuda_slices(op->slices), op->k, work->room.tables,
			      work->stream);
	if (!r)
		r = make_elements(work, work->room.buffers[0], NULL);
	if (!r)
		r = work->as_pairs ?
			    launch_merge_pairs(slices, op->k, work->room.elements,
					       work->room.buffers[1], work->stream) :
			    launch_merge(slices, op->k, work->element_nbytes, work->room.elements,
					 work->room.buffers[1], work->stream);
	free(slices);
	return cuda_status(r, "merge");
}

int cuda_merge_records(struct lane *lane, const struct merge_op *op)
{
	const uint64_t item_nbytes = op->layout->item_nbytes;
	struct arrangement arrangement = { .unique = op->unique,
					   .for_output = op->for_output,
					   .limit = op->limit,
					   .out = op->out };
	struct work work = { .layout = op->layout,
			     .n = slices_n(op->slices, op->k),
			     .as_pairs = cuda_fit_pairs(op->layout) && !op->unique };
	int r = cuda_work_begin(&work, lane, STAGE_MERGE, op->k, op->scratch, 2 * item_nbytes);

	if (r == 0) {
		arrangement.first = work.found + 1;
		arrangement.last = (char *)arrangement.first + item_nbytes;
		r = merge_elements(&work, op);
	}
	if (r == 0)
		r = cuda_refine(&work);
	if (r == 0)
		r = arrange(&work, &arrangement);
	if (r == 0) {
		work.operation.delivery->to[0] = op->ret;
		work.operation.delivery->to[1] = op->ret_first;
		work.operation.delivery->to[2] = op->ret_last;
		work.operation.delivery->n = item_nbytes;
		work.operation.delivery->deliver = deliver_merged;
	}
	return cuda_work_end(&work, r, "merge");
}

/* --- Cuts and samples --- */

int cuda_cut_items(struct lane *lane, const struct cut_op *op)
{
	const uint32_t key_nbytes = (op->layout->item_keys.key_nbytes + 7) / 8 * 8;
	const size_t tables_nbytes = kernel_items_nbytes(op->k, op->layout->item_keys.n);
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	struct cut_items_task task = { .items = cuda_describe_items(op->layout),
				       .n = slices_n(op->slices, op->k),
				       .key = op->key,
				       .key_nbytes = key_nbytes,
				       .slice = op->slice };
	struct operation operation = { 0 };
	void *tables;
	int r = cuda_operation_begin(lane, STAGE_CUT, 0, nbytes, &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane, tables_nbytes + key_nbytes, &tables);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	task.cuts = operation.result;
	task.scratch = (char *)tables + tables_nbytes;
	operation.delivery->to[0] = op->ret_cuts;
	operation.delivery->n = nbytes;
	operation.delivery->deliver = cuda_deliver_bytes;
	r = launch_view_items(&task.items, cuda_slices(op->slices), op->k, tables,
			      operation.lane->stream);
	if (!r)
		r = launch_cut_items(&task, operation.lane->stream);
	return cuda_operation_queue(&operation, r, "cut");
}

int cuda_sample_items(struct lane *lane, const struct sample_op *op)
{
	const uint64_t n_keys = op->n / op->stride + (op->n % op->stride != 0);
	const struct kernel_slice all = { op->items, op->n };
	struct kernel_items items = cuda_describe_items(op->layout);
	struct operation operation = { 0 };
	void *tables;
	int r = cuda_operation_begin(lane, STAGE_CUT, 0, n_keys * sizeof(struct kernel_key),
				     &operation);

	if (r == 0)
		r = cuda_lane_scratch(operation.lane, kernel_items_nbytes(1, items.keys.n),
				      &tables);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	operation.delivery->to[0] = op->ret_keys;
	operation.delivery->n = n_keys;
	operation.delivery->deliver = cuda_deliver_keys;
	r = launch_view_items(&items, &all, 1, tables, operation.lane->stream);
	if (!r)
		r = launch_sample_items(&items, op->n, op->stride, operation.result,
					operation.lane->stream);
	return cuda_operation_queue(&operation, r, "sample");
}
