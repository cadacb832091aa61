/*
 * record_sort - sort a chunk of records, merge slices of items (see record_sort.h)
 *
 * Records are too wide to be moved log(n) times, so elements are sorted in their place: the first
 * bytes of the key, and the record's number, which makes all elements different and the sort
 * stable.
 *
 *	records --make--> items --index--> elements --select, sort--> refine --gather--> items
 *	                  slices --index--> slices of elements --merge--> refine --gather--> items
 *
 * Numbers go through all slices (item_lookup.h), so that merging elements is merging stably, and both
 * operations end the same way. Elements that tie in their part of the key are refined, and that
 * looks at the records; others never are before they are gathered.
 *
 * Sorting takes the form of elements that suits the keys (element_format.h), and should it not
 * suit them after all, starts again with the one that suits any. Merging takes that at once: there
 * elements are moved few times.
 *
 * The scratch, for n items:
 *
 *	sort	[ items, unless records are items ][ elements ][ of the sort ][ of the refinement ]
 *	merge	[ elements ][ merged ][ of the merge ][ slices ][ ... ]
 *
 * and where the items of the slices lie. Narrow elements take half of the room for wide ones; the
 * other half is for groups that are refined.
 */
#include "src/device/cpu/record_sort.h"

#include "src/base/scratch.h"
#include "src/device/cpu/gather.h"
#include "src/device/cpu/make_elements.h"
#include "src/device/cpu/merge.h"
#include "src/device/cpu/tie_break.h"
#include "src/device/cpu/top_k.h"
#include "src/device/cpu/sort.h"

/* The parts of the scratch. */
struct room {
	void *items, *elements, *merged;
	void *sort, *merge, *refine; /* scratch of these */
	struct slice *slices;
	struct sequence_part *parts;
	uint32_t *buckets;
	size_t elements_nbytes;
};

static size_t sort_scratch_nbytes(uint64_t n)
{
	const size_t narrow = cpu_sort_scratch_nbytes(n, 8), wide = cpu_sort_scratch_nbytes(n, 16);

	return narrow > wide ? narrow : wide;
}

/* Divide the scratch; returns how long it is. */
static size_t divide(const struct layout *layout, uint32_t k, uint64_t n, char *scratch,
		     struct room *ret_room)
{
	const size_t elements_nbytes = n * layout->element_nbytes;
	struct room *room = ret_room;
	size_t nbytes = 0;

	*room = (struct room){ .elements_nbytes = elements_nbytes };
	if (k == 0 && !layout->intake.is_identity)
		room->items = scratch_take(scratch, &nbytes, n * layout->item_nbytes);
	room->elements = scratch_take(scratch, &nbytes, elements_nbytes);
	if (k > 0) {
		room->merged = scratch_take(scratch, &nbytes, elements_nbytes);
		room->merge = scratch_take(scratch, &nbytes,
					   cpu_merge_scratch_nbytes(k, n, layout->element_nbytes));
		room->slices = scratch_take(scratch, &nbytes, k * sizeof *room->slices);
	}
	room->parts = scratch_take(scratch, &nbytes, sequence_n_parts(k + 1) * sizeof *room->parts);
	room->buckets =
		scratch_take(scratch, &nbytes, sequence_n_buckets(k + 1) * sizeof *room->buckets);
	room->sort = scratch_take(scratch, &nbytes, sort_scratch_nbytes(n));
	room->refine = scratch_take(scratch, &nbytes, refine_scratch_nbytes(n));
	return nbytes;
}

size_t cpu_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	struct room room;

	return divide(layout, k, n, NULL, &room);
}

static void make_items(const struct sort_op *op, unsigned char *items)
{
	const struct layout *layout = op->layout;
	const unsigned char *record = op->records;

	for (uint64_t i = 0; i < op->n; i++, record += layout->record_nbytes)
		layout_make_item(layout, record, op->position + i, items + i * layout->item_nbytes);
}

/* The first n elements; false if refining takes more room than there is. */
static bool refine(const struct layout *layout, const struct sequence *items,
		   const struct element_form *form, void *elements, uint64_t n,
		   const struct room *room)
{
	const size_t used = (items->n * form->element_nbytes + sizeof(uint128_t) - 1) /
			    sizeof(uint128_t) * sizeof(uint128_t);

	if (!element_form_needs_refining(form, &layout->item_keys))
		return true;
	return cpu_refine(&(struct refine_op){
		.keys = &layout->item_keys,
		.items = items,
		.form = form,
		.elements = elements,
		.n = n,
		.room = (uint128_t *)((char *)elements + used),
		.room_n = room->elements_nbytes > used ?
				  (room->elements_nbytes - used) / sizeof(uint128_t) :
				  0,
		.sort_scratch = room->sort,
		.scratch = room->refine,
	});
}

/* The elements of all records, in the form that suits them best; and the records' digest. */
static struct element_form index_records(const struct sort_op *op, struct slice items,
					 const struct room *room)
{
	struct element_form form = element_form_for_any(op->layout);
	struct index_op index = { .layout = op->layout,
				  .form = &form,
				  .items = items,
				  .elements = room->elements,
				  .digest = op->ret_read };
	struct element_sample sample;
	struct key_prefix prefix;
	unsigned common_bits;

	if (op->n == 0)
		return form;
	key_prefix_make(&op->layout->item_keys, op->layout->item_nbytes, &prefix);
	element_sample_take(&prefix, items.elements, op->n, &sample);
	common_bits = element_sample_common_bits(&sample);
	form = element_form_choose(op->layout, &sample, common_bits, op->n);
	common_bits = key_prefix_common_bits(cpu_index(&index));
	if (form.skipped_bits > common_bits) {
		form = element_form_choose(op->layout, &sample, common_bits, op->n);
		index.digest = NULL;
		cpu_index(&index);
	}
	return form;
}

/*
 * Of equal records of which -u keeps one, any number may stand before the limit-th: then all are
 * sorted.
 */
static uint64_t select_elements(const struct sort_op *op, const struct element_form *form,
				const struct room *room)
{
	if (op->unique)
		return op->n;
	return cpu_select(&(struct select_op){
		.form = form, .elements = room->elements, .n = op->n, .limit = op->limit });
}

/* Sort and refine the first n elements; false if they are too many to be refined in this form. */
static bool sort_elements(const struct layout *layout, const struct sequence *items,
			  const struct element_form *form, uint64_t n, const struct room *room)
{
	cpu_sort(&(struct sort_elements_op){ .elements = room->elements,
					     .n = n,
					     .scratch = room->sort,
					     .element_nbytes = form->element_nbytes });
	return refine(layout, items, form, room->elements, n, room);
}

void cpu_sort_records(const struct sort_op *op)
{
	const struct layout *layout = op->layout;
	struct slice slice = { .elements = op->records, .n = op->n };
	struct element_form form;
	struct sequence items;
	struct room room;
	uint64_t n_ordered;

	divide(layout, 0, op->n, op->scratch, &room);
	if (room.items) {
		make_items(op, room.items);
		slice.elements = room.items;
	}
	sequence_make(&slice, 1, layout->item_nbytes, room.parts, room.buckets, &items);
	*op->ret_read = (struct digest){ 0 };
	form = index_records(op, slice, &room);
	n_ordered = select_elements(op, &form, &room);
	if (!sort_elements(layout, &items, &form, n_ordered, &room)) {
		form = element_form_for_any(layout);
		cpu_index(&(struct index_op){ .layout = layout,
					      .form = &form,
					      .items = slice,
					      .elements = room.elements });
		n_ordered = select_elements(op, &form, &room);
		sort_elements(layout, &items, &form, n_ordered, &room);
	}
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = room.elements,
					.n = items.n,
					.n_ordered = n_ordered,
					.form = &form,
					.out = op->items,
					.unique = op->unique,
					.scattered = true,
					.limit = op->limit,
					.ret = op->ret });
}

/* The elements of all slices, merged; NULL if there is nothing to be merged. */
static void *merge_elements(const struct merge_op *op, const struct sequence *items,
			    const struct element_form *form, const struct room *room)
{
	char *elements = room->elements;
	uint64_t start = 0;

	if (items->n_parts <= 1)
		return NULL;
	for (uint32_t i = 0; i < op->k; i++) {
		const uint64_t n = op->slices[i].n;

		cpu_index(&(struct index_op){ .layout = op->layout,
					      .form = form,
					      .items = op->slices[i],
					      .first_number = start,
					      .elements = elements });
		room->slices[i] = (struct slice){ elements, n };
		start += n;
		elements += n * form->element_nbytes;
	}
	cpu_merge(&(struct merge_elements_op){ .slices = room->slices,
					       .k = op->k,
					       .element_nbytes = form->element_nbytes,
					       .out = room->merged,
					       .scratch = room->merge });
	refine(op->layout, items, form, room->merged, items->n, room);
	return room->merged;
}

void cpu_merge_records(const struct merge_op *op)
{
	const struct layout *layout = op->layout;
	const struct element_form form = element_form_for_any(layout);
	struct sequence items;
	struct room room;

	divide(layout, op->k, slices_n(op->slices, op->k), op->scratch, &room);
	sequence_make(op->slices, op->k, layout->item_nbytes, room.parts, room.buckets, &items);
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = merge_elements(op, &items, &form, &room),
					.n = items.n,
					.n_ordered = items.n,
					.form = &form,
					.out = op->out,
					.for_output = op->for_output,
					.unique = op->unique,
					.limit = op->limit,
					.ret_first = op->ret_first,
					.ret_last = op->ret_last,
					.ret = op->ret });
}
