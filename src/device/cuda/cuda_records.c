/*
 * cuda_records.c - operations on records on a GPU (see cuda_queue.h)
 *
 *	sort	records --project--> items --index--> elements --sort--> ties --gather--> items
 *	merge	slices  --index--> slices of elements --merge--> ties --gather--> items
 *
 * Small records with a small key need neither numbers nor a gather: a pair is the key and the rest
 * of the record (pairs.cu), and is sorted or merged like an element. -u does not use pairs.
 *
 * If records are items, there is no projection. If an element holds the whole key, there are no
 * ties.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/int_math.h"
#include "src/base/scratch.h"
#include "src/device/cuda/cuda_queue.h"
#include "src/record/key_layout.h"

/* --- Breaking ties --- */

/* The list of a round. */
struct tie_round {
	const void *list; /* n elements; in the first round, all of them */
	const uint32_t *positions;
	uint64_t n;
	uint64_t key_offset;   /* tied keys are equal up to this byte */
	unsigned buffer_index; /* the buffer and positions of the next list */
};

/* Wait for the queued kernels and read the results so far. */
static int read_result(const struct cuda_ties *ties, const struct cuda_tie_result **ret_result)
{
	const void *result;
	int r = cuda_operation_peek(ties->operation, sizeof **ret_result, &result);

	*ret_result = result;
	return r;
}

static cudaStream_t stream_of(const struct cuda_ties *ties)
{
	return ties->operation->queue->stream;
}

static int count_ties(const struct cuda_ties *ties, const struct tie_round *round, uint32_t *ret_n)
{
	const struct cuda_tie_result *result;
	int r = cuda_status(launch_count_ties(ties->keys, round->list, round->n, ties->scratch,
					      &ties->result->counts, stream_of(ties)),
			    "ties");

	if (r == 0)
		r = read_result(ties, &result);
	if (r == 0)
		*ret_n = result->counts.n_elements;
	return r;
}

/* Continue where the keys of the list first differ. For a list that ties as a whole. */
static int skip_common_prefix(const struct cuda_ties *ties, struct tie_round *round)
{
	const struct cuda_tie_result *result;
	int r = cuda_status(
		launch_find_common_prefix(ties->keys, round->list, round->n, round->key_offset,
					  &ties->result->common_nbytes, stream_of(ties)),
		"break ties");

	if (r == 0)
		r = read_result(ties, &result);
	if (r == 0)
		round->key_offset = result->common_nbytes;
	return r;
}

/* Break n_ties ties of the list. The tied elements become the list of the next round. */
static int break_round_ties(const struct cuda_ties *ties, struct tie_round *round, uint32_t n_ties)
{
	const struct tie_break_task task = { .elements = ties->elements,
					     .list = round->list,
					     .positions = round->positions,
					     .n = round->n,
					     .ties_scratch = ties->scratch,
					     .n_ties = n_ties,
					     .at = round->key_offset,
					     .next = ties->buffers[round->buffer_index],
					     .next_positions = ties->positions[round->buffer_index],
					     .sort_scratch =
						     ties->buffers[round->buffer_index ^ 1] };

	*round = (struct tie_round){ .list = task.next,
				     .positions = task.next_positions,
				     .n = n_ties,
				     .key_offset = round->key_offset +
						   (ties->keys.lines ? LINE_WORD_NBYTES :
								       ITEM_TIE_WORD_NBYTES),
				     .buffer_index = round->buffer_index ^ 1 };
	return cuda_status(launch_break_ties(ties->keys, &task, stream_of(ties)), "break ties");
}

int cuda_ties_break(const struct cuda_ties *ties, uint64_t key_offset, uint64_t key_nbytes)
{
	struct tie_round round = { .list = ties->elements, .n = ties->n, .key_offset = key_offset };
	uint32_t n_ties = 0;
	int r = 0;

	while (r == 0 && round.key_offset < key_nbytes) {
		r = count_ties(ties, &round, &n_ties);
		if (r < 0 || n_ties == 0)
			break;
		if (n_ties == round.n)
			r = skip_common_prefix(ties, &round);
		if (r == 0 && round.key_offset < key_nbytes)
			r = break_round_ties(ties, &round, n_ties);
	}
	return r;
}

/*
 * --- The state of an operation ---
 *
 * The scratch, for n items:
 *
 *	[ tables ][ items, if made here ][ elements ][ buffer 0 ][ buffer 1 ][ ties ][ heads ] ...
 *
 * Buffer 0 is the scratch of the sort, or holds the elements of the slices, which are merged into
 * `elements` with buffer 1 as scratch. Then both are free, and tie breaking alternates between
 * them: one holds the list of a round, the other is the scratch of its sort.
 */

/* The parts of the scratch. Those that are not needed are empty. */
struct record_op_scratch {
	void *tables, *projection_tables;
	void *items;
	void *elements;
	void *buffers[2];
	void *ties;
	uint32_t *positions[2]; /* of the tied elements, for alternate rounds */
	void *head_flags;
	uint64_t *counts;
};

/* Results of the kernels for the host; a merge appends its first and last item. */
struct record_op_result {
	struct cuda_tie_result ties; /* first, because the host reads it between rounds */
	struct digest input_digest;
	struct kernel_gather_result gathered;
};

/* The state of an operation. */
struct cuda_record_op {
	struct cuda_operation operation;
	cudaStream_t stream;
	const struct layout *layout;
	uint64_t n;
	struct record_op_scratch areas;
	struct kernel_items items;
	struct record_op_result *result; /* on the device */
	bool use_pairs;                  /* see can_use_pairs() */
	uint32_t element_nbytes;
};

enum { TIE_BREAK_ELEMENT_NBYTES = 16, PAIR_NBYTES = 16 };

/* Return whether records can be sorted as pairs. */
static bool can_use_pairs(const struct layout *layout)
{
	const uint32_t key_nbytes = layout->item_keys.key_nbytes;

	return layout->projection.is_identity && layout->item_keys.n == 1 && key_nbytes <= 8 &&
	       key_field_is_decodable(layout->item_keys.fields) &&
	       layout->record_nbytes - key_nbytes <= 8;
}

/* Divide the scratch (NULL: do not) for n items in k slices (0: a sort); return its size. */
static size_t divide_op_scratch(const struct layout *layout, uint32_t k, uint64_t n, char *scratch,
				struct record_op_scratch *ret_areas)
{
	const uint32_t element_nbytes = can_use_pairs(layout) ? PAIR_NBYTES :
								layout->element_nbytes;
	const bool needs_tie_break = layout_needs_refining(layout);
	const size_t sort_nbytes =
		u64_max(kernel_sort_scratch_nbytes(n, element_nbytes),
			can_use_pairs(layout) ? kernel_sort_pairs_scratch_nbytes(n) : 0);
	const size_t merge_nbytes =
		u64_max(kernel_merge_scratch_nbytes(k, n, element_nbytes),
			can_use_pairs(layout) ? kernel_merge_pairs_scratch_nbytes(k, n) : 0);
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
		scratch, &nbytes, u64_max(k ? n * element_nbytes : sort_nbytes, tie_break_nbytes));
	areas->buffers[1] =
		scratch_allocate(scratch, &nbytes, u64_max(k ? merge_nbytes : 0, tie_break_nbytes));
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

size_t cuda_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	struct record_op_scratch areas;

	return divide_op_scratch(layout, k, n, NULL, &areas);
}

/* Describe the items of a layout to the kernels. launch_prepare_items() adds the slices. */
static struct kernel_items describe_items(const struct layout *layout)
{
	return (struct kernel_items){ .item_nbytes = (uint32_t)layout->item_nbytes,
				      .body_offset = (uint32_t)layout->body_offset,
				      .body_nbytes = (uint32_t)layout->body_nbytes,
				      .keys = layout->item_keys };
}

/*
 * Begin to queue an operation on k slices (0: a sort), with edges_nbytes after the other results.
 * Requires layout, n and use_pairs to be set, and the rest zeroed. Returns like
 * cuda_operation_begin().
 */
static int record_op_begin(struct cuda_record_op *record_op, struct device_queue *queue,
			   enum stage stage, uint32_t k, void *scratch, size_t edges_nbytes)
{
	struct cuda_operation *operation = &record_op->operation;
	int r;

	operation->stage = stage;
	operation->nbytes = record_op->n * record_op->layout->item_nbytes;
	operation->result_nbytes = sizeof *record_op->result + edges_nbytes;
	r = cuda_operation_begin(operation, queue);
	if (r < 0)
		return r;
	record_op->stream = operation->stream;
	record_op->result = operation->result;
	record_op->items = describe_items(record_op->layout);
	record_op->element_nbytes = record_op->use_pairs ? PAIR_NBYTES :
							   record_op->layout->element_nbytes;
	divide_op_scratch(record_op->layout, k, record_op->n, scratch, &record_op->areas);
	return 0;
}

static int break_ties(struct cuda_record_op *record_op)
{
	const struct cuda_ties ties = {
		.keys = { .items = &record_op->items },
		.operation = &record_op->operation,
		.result = &record_op->result->ties,
		.elements = record_op->areas.elements,
		.n = record_op->n,
		.buffers = { record_op->areas.buffers[0], record_op->areas.buffers[1] },
		.positions = { record_op->areas.positions[0], record_op->areas.positions[1] },
		.scratch = record_op->areas.ties,
	};

	if (record_op->use_pairs || !layout_needs_refining(record_op->layout))
		return 0;
	return cuda_ties_break(&ties, layout_prefix_nbytes(record_op->layout),
			       record_op->items.keys.key_nbytes);
}

/* --- Pairs --- */

static struct pair_shape shape_pairs(const struct layout *layout)
{
	const struct key_field *field = layout->item_keys.fields;
	struct key_encoding encoding = key_field_encoding(field);

	encoding.element_nbytes = 8;
	return (struct pair_shape){ .encoding = encoding, .key_offset = field->offset };
}

/* --- Sorting and merging --- */

/* Parameters of the gather, the last step. */
struct gather_params {
	bool unique, for_output;
	uint64_t limit;
	void *out;
	void *first, *last; /* on the device; may be NULL */
};

/* Convert the sorted pairs to records. */
static int unpack_pair_records(struct cuda_record_op *record_op, const struct gather_params *params)
{
	const struct unpack_pairs_task task = { .shape = shape_pairs(record_op->layout),
						.record_nbytes =
							(uint32_t)record_op->layout->record_nbytes,
						.pairs = record_op->areas.elements,
						.n = record_op->n,
						.limit = params->limit,
						.out = params->out,
						.result = &record_op->result->gathered,
						.first = params->first,
						.last = params->last };

	return cuda_status(launch_unpack_pairs(&task, record_op->stream), "gather");
}

/* Gather the items in the order of the elements. */
static int gather_output(struct cuda_record_op *record_op, const struct gather_params *params)
{
	const struct layout *layout = record_op->layout;
	struct gather_task task = {
		.items = record_op->items,
		.elements = record_op->areas.elements,
		.element_nbytes = record_op->element_nbytes,
		.n = record_op->n,
		.limit = params->limit,
		.out_offset = params->for_output ? (uint32_t)layout->output_offset : 0,
		.out_nbytes = (uint32_t)(params->for_output ? layout->output_nbytes :
							      layout->item_nbytes),
		.out = params->out,
		.has_count = layout->projection.has_count,
		.count_is_big_endian = layout->projection.count_is_big_endian,
		.counts = record_op->areas.counts,
		.result = &record_op->result->gathered,
		.first = params->first,
		.last = params->last,
	};
	int r = 0;

	if (record_op->use_pairs)
		return unpack_pair_records(record_op, params);
	if (params->unique)
		r = cuda_status(launch_flag_heads(&record_op->items, task.elements,
						  task.element_nbytes, task.n, layout->keep_last,
						  record_op->areas.head_flags, &task.heads,
						  record_op->stream),
				"unique");
	return r < 0 ? r : cuda_status(launch_gather(&task, record_op->stream), "gather");
}

static struct sort_op_result make_sort_op_result(const struct kernel_gather_result *result)
{
	return (struct sort_op_result){ .n = result->n,
					.n_counted = result->n_counted,
					.n_disorders = result->n_disorders,
					.digest = result->digest,
					.dropped = result->dropped };
}

static void deliver_sorted(const struct result_delivery *delivery)
{
	const struct record_op_result *result = delivery->from;

	*(struct digest *)delivery->to[0] = result->input_digest;
	*(struct sort_op_result *)delivery->to[1] = make_sort_op_result(&result->gathered);
}

_Static_assert(sizeof(struct projection_copy) == sizeof(struct kernel_projection_copy) &&
		       offsetof(struct projection_copy, item_offset) ==
			       offsetof(struct kernel_projection_copy, item_offset) &&
		       offsetof(struct projection_copy, nbytes) ==
			       offsetof(struct kernel_projection_copy, nbytes),
	       "copies are handed to the kernels as they are");

static int make_items(struct cuda_record_op *record_op, const struct sort_op *op)
{
	const struct projection *projection = &record_op->layout->projection;
	const struct projection_task task = {
		.records = op->records,
		.items = record_op->areas.items,
		.n = op->n,
		.position = op->position,
		.record_nbytes = (uint32_t)record_op->layout->record_nbytes,
		.item_nbytes = (uint32_t)record_op->layout->item_nbytes,
		.copies = (const struct kernel_projection_copy *)projection->copies,
		.n_copies = projection->n_copies,
		.has_count = projection->has_count,
		.count_is_big_endian = projection->count_is_big_endian,
		.has_position = projection->has_position,
		.tables = record_op->areas.projection_tables,
	};

	return cuda_status(launch_project(&task, record_op->stream), "project records");
}

/* Make the elements of all items, in the order of their numbers; returns a CUDA error code. */
static int make_elements(struct cuda_record_op *record_op, void *elements, struct digest *digest)
{
	const struct pair_shape shape = record_op->use_pairs ? shape_pairs(record_op->layout) :
							       (struct pair_shape){ 0 };

	return record_op->use_pairs ? launch_make_pairs(&record_op->items, &shape, record_op->n,
							elements, digest, record_op->stream) :
				      launch_make_elements(&record_op->items, record_op->n,
							   record_op->element_nbytes, elements,
							   digest, record_op->stream);
}

/* Make the elements of a chunk and sort them by their prefix. */
static int sort_elements(struct cuda_record_op *record_op, const struct sort_op *op)
{
	const bool is_identity = record_op->layout->projection.is_identity;
	const struct kernel_slice slice = { is_identity ? op->records : record_op->areas.items,
					    op->n };
	void *elements = record_op->areas.elements;
	int r = is_identity ? 0 : make_items(record_op, op);

	if (r < 0)
		return r;
	r = launch_prepare_items(&record_op->items, &slice, 1, record_op->areas.tables,
				 record_op->stream);
	if (!r)
		r = make_elements(record_op, elements, &record_op->result->input_digest);
	if (!r)
		r = record_op->use_pairs ?
			    launch_sort_pairs(elements, op->n, record_op->areas.buffers[0],
					      record_op->stream) :
			    launch_sort(elements, op->n, record_op->element_nbytes,
					record_op->areas.buffers[0], record_op->stream);
	return cuda_status(r, "sort");
}

int cuda_sort_records(struct device_queue *queue, const struct sort_op *op)
{
	const struct gather_params params = { .unique = op->unique,
					      .limit = op->limit,
					      .out = op->items };
	struct cuda_record_op record_op = {
		.operation.delivery = { .deliver = deliver_sorted,
					.to = { op->ret_input_digest, op->ret } },
		.layout = op->layout,
		.n = op->n,
		.use_pairs = can_use_pairs(op->layout) && !op->unique,
	};
	int r = record_op_begin(&record_op, queue, STAGE_SORT, 0, op->scratch, 0);

	if (r < 0)
		return r;
	r = sort_elements(&record_op, op);
	if (r == 0)
		r = break_ties(&record_op);
	if (r == 0)
		r = gather_output(&record_op, &params);
	return cuda_operation_end(&record_op.operation, r);
}

static void deliver_merged(const struct result_delivery *delivery)
{
	const struct record_op_result *result = delivery->from;
	const char *edges = (const char *)(result + 1);

	*(struct sort_op_result *)delivery->to[0] = make_sort_op_result(&result->gathered);
	if (result->gathered.n == 0 || !delivery->to[1])
		return;
	memcpy(delivery->to[1], edges, delivery->n);
	memcpy(delivery->to[2], edges + delivery->n, delivery->n);
}

/* Make the elements of the slices and merge them by their prefix. */
static int merge_elements(struct cuda_record_op *record_op, const struct merge_op *op)
{
	struct kernel_slice *slices = malloc((op->k + 1) * sizeof *slices);
	char *elements = record_op->areas.buffers[0];
	int r;

	if (!slices)
		return -ENOMEM;
	for (uint32_t i = 0; i < op->k; i++) {
		slices[i] = (struct kernel_slice){ elements, op->slices[i].n };
		elements += slices[i].n * record_op->element_nbytes;
	}
	r = launch_prepare_items(&record_op->items, cuda_slices(op->slices), op->k,
				 record_op->areas.tables, record_op->stream);
	if (!r)
		r = make_elements(record_op, record_op->areas.buffers[0], NULL);
	if (!r)
		r = record_op->use_pairs ?
			    launch_merge_pairs(slices, op->k, record_op->areas.elements,
					       record_op->areas.buffers[1], record_op->stream) :
			    launch_merge(slices, op->k, record_op->element_nbytes,
					 record_op->areas.elements, record_op->areas.buffers[1],
					 record_op->stream);
	free(slices);
	return cuda_status(r, "merge");
}

int cuda_merge_records(struct device_queue *queue, const struct merge_op *op)
{
	const uint64_t item_nbytes = op->layout->item_nbytes;
	struct gather_params params = { .unique = op->unique,
					.for_output = op->for_output,
					.limit = op->limit,
					.out = op->out };
	struct cuda_record_op record_op = {
		.operation.delivery = { .deliver = deliver_merged,
					.to = { op->ret, op->ret_first, op->ret_last },
					.n = item_nbytes },
		.layout = op->layout,
		.n = slices_n(op->slices, op->k),
		.use_pairs = can_use_pairs(op->layout) && !op->unique,
	};
	int r = record_op_begin(&record_op, queue, STAGE_MERGE, op->k, op->scratch,
				2 * item_nbytes);

	if (r < 0)
		return r;
	params.first = record_op.result + 1;
	params.last = (char *)params.first + item_nbytes;
	r = merge_elements(&record_op, op);
	if (r == 0)
		r = break_ties(&record_op);
	if (r == 0)
		r = gather_output(&record_op, &params);
	return cuda_operation_end(&record_op.operation, r);
}

/* --- Cuts and samples --- */

int cuda_cut_items(struct device_queue *queue, const struct cut_op *op)
{
	const uint32_t key_nbytes = (op->layout->item_keys.key_nbytes + 7) / 8 * 8;
	const size_t tables_nbytes = kernel_items_nbytes(op->k, op->layout->item_keys.n);
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	struct cut_items_task task = { .items = describe_items(op->layout),
				       .n = slices_n(op->slices, op->k),
				       .key = op->key,
				       .key_nbytes = key_nbytes,
				       .slice = op->slice };
	struct cuda_operation operation = {
		.stage = STAGE_CUT,
		.result_nbytes = nbytes,
		.scratch_nbytes = tables_nbytes + key_nbytes,
		.delivery = { .deliver = cuda_deliver_bytes, .to = { op->ret_cuts }, .n = nbytes },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	task.cuts = operation.result;
	task.scratch = (char *)operation.scratch + tables_nbytes;
	r = launch_prepare_items(&task.items, cuda_slices(op->slices), op->k, operation.scratch,
				 operation.stream);
	if (!r)
		r = launch_cut_items(&task, operation.stream);
	return cuda_operation_end(&operation, cuda_status(r, "cut"));
}

int cuda_sample_items(struct device_queue *queue, const struct sample_op *op)
{
	const uint64_t n_keys = op->n / op->stride + (op->n % op->stride != 0);
	const struct kernel_slice slice = { op->items, op->n };
	struct kernel_items items = describe_items(op->layout);
	struct cuda_operation operation = {
		.stage = STAGE_CUT,
		.result_nbytes = n_keys * sizeof(struct kernel_key),
		.scratch_nbytes = kernel_items_nbytes(1, items.keys.n),
		.delivery = { .deliver = cuda_deliver_keys, .to = { op->ret_keys }, .n = n_keys },
	};
	int r = cuda_operation_begin(&operation, queue);

	if (r < 0)
		return r;
	r = launch_prepare_items(&items, &slice, 1, operation.scratch, operation.stream);
	if (!r)
		r = launch_sample_items(&items, op->n, op->stride, operation.result,
					operation.stream);
	return cuda_operation_end(&operation, cuda_status(r, "sample"));
}
