/*
 * cuda_records - the operations on records, on a GPU (see cuda_records.h)
 *
 *	sort	records --intake--> items --index--> elements --sort--> refine --gather--> items
 *	merge	slices  --index--> slices of elements --merge--> refine --gather--> items
 *
 * Small records with a small key need neither a number nor a gather: a pair is the key and the rest
 * of the record (kernels/pairs.cu), sorted or merged like elements. Only -u goes the long way.
 *
 * Intake is left out when records are items, refine when an element has room for the whole key.
 * Refining goes in rounds, and how many there are only the device knows: the host waits for the
 * number of ties after each.
 *
 * The scratch, for n items:
 *
 *	[ tables ][ items, if made here ][ elements ][ buffer 0 ][ buffer 1 ][ ties ][ firsts ] ...
 *
 * Buffer 0 is the scratch of the sort, or holds the elements of the slices, which are merged into
 * `elements` with buffer 1 as scratch. After that both are free, and refine takes turns with them:
 * the list of a round is made in one, and sorted with the other as scratch.
 */
#include "src/cuda_records.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT_NBYTES = 256, REFINED_ELEMENT_NBYTES = 16, PAIR_NBYTES = 16 };

/* The parts of the scratch; those that are not needed are empty. */
struct room {
	void *tables, *intake_tables;
	void *items;
	void *elements;
	void *buffers[2];
	void *ties;
	uint32_t *places[2]; /* of the elements of a refinement's list, in turns */
	void *firsts;
	uint64_t *counts;
};

/* What kernels leave for the host; of a merge, the items at the edges follow. */
struct findings {
	struct tie_counts ties; /* first: the host looks at these in between */
	uint32_t reach;
	struct digest read;
	struct gather_findings gathered;
};

/* An operation on its way. */
struct work {
	struct operation operation;
	cudaStream_t stream;
	const struct layout *layout;
	uint64_t n;
	struct room room;
	struct kernel_items items;
	struct findings *found; /* on the device */
	bool as_pairs;
	uint32_t element_nbytes;
};

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* The next nbytes from *offset on, of the scratch or, if that is NULL, of nothing. */
static void *take(char *scratch, size_t *offset, size_t nbytes)
{
	void *const taken = scratch ? scratch + *offset : NULL;

	*offset += (nbytes + ALIGNMENT_NBYTES - 1) / ALIGNMENT_NBYTES * ALIGNMENT_NBYTES;
	return taken;
}

/* May records be sorted as pairs? */
static bool fit_pairs(const struct layout *layout)
{
	const uint32_t key_nbytes = layout->item_keys.key_nbytes;

	return layout->intake.is_identity && layout->item_keys.n == 1 && key_nbytes <= 8 &&
	       layout->record_nbytes - key_nbytes <= 8;
}

/* Divide the scratch, of n items in k slices (0: a sort); returns how long it is. */
static size_t divide(const struct layout *layout, uint32_t k, uint64_t n, char *scratch,
		     struct room *ret_room)
{
	const uint32_t element_nbytes = fit_pairs(layout) ? PAIR_NBYTES : layout->element_nbytes;
	const bool refines = layout_needs_refining(layout);
	const size_t sort_nbytes =
		larger(kernel_sort_scratch_nbytes(n, element_nbytes),
		       fit_pairs(layout) ? kernel_sort_pairs_scratch_nbytes(n) : 0);
	const size_t merge_nbytes =
		larger(kernel_merge_scratch_nbytes(k, n, element_nbytes),
		       fit_pairs(layout) ? kernel_merge_pairs_scratch_nbytes(k, n) : 0);
	const size_t refine_nbytes =
		refines ? kernel_sort_scratch_nbytes(n, REFINED_ELEMENT_NBYTES) : 0;
	const bool makes_items = k == 0 && !layout->intake.is_identity;
	struct room *room = ret_room;
	size_t nbytes = 0;

	room->tables = take(scratch, &nbytes, kernel_items_nbytes(k ? k : 1, layout->item_keys.n));
	room->intake_tables = take(scratch, &nbytes,
				   makes_items ? kernel_intake_nbytes(layout->intake.n_pieces) : 0);
	room->items = take(scratch, &nbytes, makes_items ? n * layout->item_nbytes : 0);
	room->elements = take(scratch, &nbytes, n * element_nbytes);
	room->buffers[0] =
		take(scratch, &nbytes, larger(k ? n * element_nbytes : sort_nbytes, refine_nbytes));
	room->buffers[1] = take(scratch, &nbytes, larger(k ? merge_nbytes : 0, refine_nbytes));
	room->ties = take(scratch, &nbytes, refines ? kernel_ties_scratch_nbytes(n) : 0);
	for (unsigned i = 0; i < 2; i++)
		room->places[i] = take(scratch, &nbytes, refines ? n * sizeof *room->places[i] : 0);
	room->firsts = take(scratch, &nbytes, kernel_firsts_nbytes(n));
	room->counts =
		take(scratch, &nbytes, layout->intake.has_count ? n * sizeof *room->counts : 0);
	return nbytes;
}

size_t cuda_records_scratch_nbytes(const struct device *device, const struct layout *layout,
				   uint32_t k, uint64_t n)
{
	struct room room;

	(void)device;
	return divide(layout, k, n, NULL, &room);
}

static struct kernel_items describe_items(const struct layout *layout)
{
	return (struct kernel_items){ .item_nbytes = (uint32_t)layout->item_nbytes,
				      .body_offset = (uint32_t)layout->body_offset,
				      .body_nbytes = (uint32_t)layout->body_nbytes,
				      .keys = layout->item_keys };
}

static uint64_t count_items(const struct slice *slices, uint32_t k)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < k; i++)
		n += slices[i].n;
	return n;
}

/* Begin to queue; always to be followed by work_end(). */
static int work_begin(struct work *work, struct lane *lane, enum stage stage, size_t edges_nbytes)
{
	const uint64_t nbytes = work->n * work->layout->item_nbytes;
	int r = cuda_operation_begin(lane, stage, nbytes, sizeof *work->found + edges_nbytes,
				     &work->operation);

	work->stream = lane->stream;
	work->found = work->operation.result;
	work->items = describe_items(work->layout);
	work->element_nbytes = work->as_pairs ? PAIR_NBYTES : work->layout->element_nbytes;
	return r;
}

static int work_end(struct work *work, int r, const char *what)
{
	if (r < 0)
		return cuda_operation_fail(&work->operation, r);
	return cuda_operation_queue(&work->operation, cudaSuccess, what);
}

/* --- Refining --- */

/* The list of a round. */
struct round {
	const void *list; /* n; the elements at first */
	const uint32_t *places;
	uint64_t n;
	uint32_t at;   /* keys agree up to there where the list ties */
	unsigned turn; /* which buffer and places the next list is made in */
};

/* What of the findings is known so far, on the host. */
static int look_at_findings(struct work *work, const struct findings **ret_found)
{
	const void *found;
	int r = cuda_operation_peek(&work->operation, offsetof(struct findings, read), &found);

	*ret_found = found;
	return r;
}

static int count_ties(struct work *work, const struct round *round, uint32_t *ret_n)
{
	const struct findings *found;
	int r = cuda_status(launch_count_ties(round->list, round->n, work->room.ties,
					      &work->found->ties, work->stream),
			    "ties");

	if (r == 0)
		r = look_at_findings(work, &found);
	if (r == 0)
		*ret_n = found->ties.n_elements;
	return r;
}

/* Go on where keys differ: all of the list ties. */
static int skip_what_agrees(struct work *work, struct round *round)
{
	const struct findings *found;
	int r = cuda_status(launch_find_reach(&work->items, round->list, round->n, round->at,
					      &work->found->reach, work->stream),
			    "refine");

	if (r == 0)
		r = look_at_findings(work, &found);
	if (r == 0)
		round->at = found->reach;
	return r;
}

/* Refine n_ties of the list; they become the list. */
static int refine_once(struct work *work, struct round *round, uint32_t n_ties)
{
	struct room *room = &work->room;
	const struct refine_task task = { .items = &work->items,
					  .elements = room->elements,
					  .list = round->list,
					  .places = round->places,
					  .n = round->n,
					  .ties_scratch = room->ties,
					  .n_ties = n_ties,
					  .at = round->at,
					  .next = room->buffers[round->turn],
					  .next_places = room->places[round->turn],
					  .sort_scratch = room->buffers[round->turn ^ 1] };

	*round = (struct round){ .list = task.next,
				 .places = task.next_places,
				 .n = n_ties,
				 .at = round->at + 8,
				 .turn = round->turn ^ 1 };
	return cuda_status(launch_refine(&task, work->stream), "refine");
}

static int refine(struct work *work)
{
	struct round round = { .list = work->room.elements,
			       .n = work->n,
			       .at = layout_prefix_nbytes(work->layout) };
	uint32_t n_ties = 0;
	int r = 0;

	if (work->as_pairs || !layout_needs_refining(work->layout))
		return 0;
	while (r == 0 && round.at < work->items.keys.key_nbytes) {
		r = count_ties(work, &round, &n_ties);
		if (r < 0 || n_ties == 0)
			break;
		if (n_ties == round.n)
			r = skip_what_agrees(work, &round);
		if (r == 0 && round.at < work->items.keys.key_nbytes)
			r = refine_once(work, &round, n_ties);
	}
	return r;
}

/* --- Pairs --- */

static struct pair_shape shape_pairs(const struct layout *layout)
{
	const struct key_field *field = layout->item_keys.fields;
	const uint64_t sign = UINT64_C(1) << (8 * field->nbytes - 1);
	const uint64_t all = sign | (sign - 1);

	return (struct pair_shape){
		.map = { .record_nbytes = (uint8_t)field->nbytes,
			 .element_nbytes = 8,
			 .swap = !field->reversed && field->nbytes > 1,
			 .is_float = field->is_float,
			 .flip.lo = (field->has_sign ? sign : 0) ^ (field->descending ? all : 0) },
		.key_offset = field->offset,
	};
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

static int make_items(struct work *work, const struct sort_records_op *op)
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
static int sort_elements(struct work *work, const struct sort_records_op *op)
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

int cuda_sort_records(struct lane *lane, const struct sort_records_op *op)
{
	const struct arrangement arrangement = { .unique = op->unique,
						 .limit = op->limit,
						 .out = op->items };
	struct work work = { .layout = op->layout,
			     .n = op->n,
			     .as_pairs = fit_pairs(op->layout) && !op->unique };
	int r = work_begin(&work, lane, STAGE_SORT, 0);

	divide(op->layout, 0, op->n, op->scratch, &work.room);
	if (r == 0)
		r = sort_elements(&work, op);
	if (r == 0)
		r = refine(&work);
	if (r == 0)
		r = arrange(&work, &arrangement);
	if (r == 0) {
		work.operation.delivery->to[0] = op->ret_read;
		work.operation.delivery->to[1] = op->ret;
		work.operation.delivery->deliver = deliver_sorted;
	}
	return work_end(&work, r, "sort");
}

static void deliver_merged(const struct delivery *delivery)
{
	const struct findings *found = delivery->from;
	const char *edges = (const char *)(found + 1);

	*(struct arranged *)delivery->to[0] = arranged_of(&found->gathered);
	if (found->gathered.n == 0)
		return;
	memcpy(delivery->to[1], edges, delivery->n);
	memcpy(delivery->to[2], edges + delivery->n, delivery->n);
}

/* The elements of the slices, merged by their part of the key. */
static int merge_elements(struct work *work, const struct merge_records_op *op)
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

int cuda_merge_records(struct lane *lane, const struct merge_records_op *op)
{
	const uint64_t item_nbytes = op->layout->item_nbytes;
	struct arrangement arrangement = { .unique = op->unique,
					   .for_output = op->for_output,
					   .limit = op->limit,
					   .out = op->out };
	struct work work = { .layout = op->layout,
			     .n = count_items(op->slices, op->k),
			     .as_pairs = fit_pairs(op->layout) && !op->unique };
	int r = work_begin(&work, lane, STAGE_MERGE, 2 * item_nbytes);

	divide(op->layout, op->k, work.n, op->scratch, &work.room);
	if (r == 0) {
		arrangement.first = work.found + 1;
		arrangement.last = (char *)arrangement.first + item_nbytes;
		r = merge_elements(&work, op);
	}
	if (r == 0)
		r = refine(&work);
	if (r == 0)
		r = arrange(&work, &arrangement);
	if (r == 0) {
		work.operation.delivery->to[0] = op->ret;
		work.operation.delivery->to[1] = op->ret_first;
		work.operation.delivery->to[2] = op->ret_last;
		work.operation.delivery->n = item_nbytes;
		work.operation.delivery->deliver = deliver_merged;
	}
	return work_end(&work, r, "merge");
}

/* --- Cuts and samples --- */

int cuda_cut_records(struct lane *lane, const struct cut_records_op *op)
{
	const uint32_t key_nbytes = (op->layout->item_keys.key_nbytes + 7) / 8 * 8;
	const size_t tables_nbytes = kernel_items_nbytes(op->k, op->layout->item_keys.n);
	const size_t nbytes = op->k * sizeof *op->ret_cuts;
	struct cut_items_task task = { .items = describe_items(op->layout),
				       .n = count_items(op->slices, op->k),
				       .key = op->key,
				       .key_nbytes = key_nbytes,
				       .slice = op->slice };
	struct operation operation = { 0 };
	void *tables;
	int r = cuda_operation_begin(lane, STAGE_CUT, 0, nbytes, &operation);

	if (r == 0)
		r = cuda_lane_scratch(lane, tables_nbytes + key_nbytes, &tables);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	task.cuts = operation.result;
	task.scratch = (char *)tables + tables_nbytes;
	operation.delivery->to[0] = op->ret_cuts;
	operation.delivery->n = nbytes;
	operation.delivery->deliver = cuda_deliver_bytes;
	r = launch_view_items(&task.items, cuda_slices(op->slices), op->k, tables, lane->stream);
	if (!r)
		r = launch_cut_items(&task, lane->stream);
	return cuda_operation_queue(&operation, r, "cut");
}

int cuda_sample_records(struct lane *lane, const struct sample_records_op *op)
{
	const uint64_t n_keys = op->n / op->stride + (op->n % op->stride != 0);
	const struct kernel_slice all = { op->items, op->n };
	struct kernel_items items = describe_items(op->layout);
	struct operation operation = { 0 };
	void *tables;
	int r = cuda_operation_begin(lane, STAGE_CUT, 0, n_keys * sizeof(struct kernel_key),
				     &operation);

	if (r == 0)
		r = cuda_lane_scratch(lane, kernel_items_nbytes(1, items.keys.n), &tables);
	if (r < 0)
		return cuda_operation_fail(&operation, r);
	operation.delivery->to[0] = op->ret_keys;
	operation.delivery->n = n_keys;
	operation.delivery->deliver = cuda_deliver_keys;
	r = launch_view_items(&items, &all, 1, tables, lane->stream);
	if (!r)
		r = launch_sample_items(&items, op->n, op->stride, operation.result, lane->stream);
	return cuda_operation_queue(&operation, r, "sample");
}
