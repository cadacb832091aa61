/*
 * records - sort a chunk of records, merge slices of items (see records.h)
 *
 * Records are too wide to be moved log(n) times, so elements are sorted in their place: the first
 * bytes of the key, and the record's number, which makes all elements different and the sort
 * stable.
 *
 *	records --make--> items --index--> elements --sort--> refine --gather--> items
 *	                  slices --index--> slices of elements --merge--> refine --gather--> items
 *
 * Numbers go through all slices (sequence.h), so that merging elements is merging stably, and both
 * operations end the same way. Elements that tie in their part of the key are refined, and that
 * looks at the records; others never are before they are gathered.
 *
 * The scratch, for n items:
 *
 *	sort	[ items, unless records are items ][ elements ][ of the sort ][ of the refinement ]
 *	merge	[ parts ][ buckets ][ slices ][ elements ][ merged ][ of the merge ][ ... ]
 */
#include "src/cpu/records.h"

#include "src/cpu/gather.h"
#include "src/cpu/hash.h"
#include "src/cpu/key_prefix.h"
#include "src/cpu/merge.h"
#include "src/cpu/refine.h"
#include "src/cpu/sort.h"

enum {
	ALIGNMENT = 16,
	NUMBER_BITS = 8 * RECORD_NUMBER_NBYTES,
	/* Slices of a window are short: the processor's prefetcher comes to know them too late. */
	AHEAD_NBYTES = 4096,
};

/* The parts of the scratch. */
struct room {
	void *items, *elements, *merged;
	void *sort, *merge, *refine; /* scratch of these */
	struct slice *slices;
	struct sequence_part *parts;
	uint32_t *buckets;
};

/* The next nbytes from *offset on, of the scratch or, if that is NULL, of nothing. */
static void *take(char *scratch, size_t *offset, size_t nbytes)
{
	void *const taken = scratch ? scratch + *offset : NULL;

	*offset += (nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	return taken;
}

/* Divide the scratch; returns how long it is. */
static size_t divide(const struct layout *layout, uint32_t k, uint64_t n, char *scratch,
		     struct room *ret_room)
{
	const size_t elements_nbytes = n * layout->element_nbytes;
	struct room *room = ret_room;
	size_t nbytes = 0;

	*room = (struct room){ 0 };
	if (k == 0 && !layout->intake.is_identity)
		room->items = take(scratch, &nbytes, n * layout->item_nbytes);
	room->elements = take(scratch, &nbytes, elements_nbytes);
	if (k == 0)
		room->sort =
			take(scratch, &nbytes, cpu_sort_scratch_nbytes(n, layout->element_nbytes));
	if (k > 0) {
		room->merged = take(scratch, &nbytes, elements_nbytes);
		room->merge =
			take(scratch, &nbytes, cpu_merge_scratch_nbytes(k, layout->element_nbytes));
		room->slices = take(scratch, &nbytes, k * sizeof *room->slices);
	}
	room->parts = take(scratch, &nbytes, sequence_n_parts(k + 1) * sizeof *room->parts);
	room->buckets = take(scratch, &nbytes, sequence_n_buckets(k + 1) * sizeof *room->buckets);
	if (layout_needs_refining(layout))
		room->refine = take(scratch, &nbytes, refine_scratch_nbytes(n));
	return nbytes;
}

size_t cpu_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	struct room room;

	return divide(layout, k, n, NULL, &room);
}

static void make_items(const struct sort_records_op *op, unsigned char *items)
{
	const struct layout *layout = op->layout;
	const unsigned char *record = op->records;

	for (uint64_t i = 0; i < op->n; i++, record += layout->record_nbytes)
		layout_make_item(layout, record, op->position + i, items + i * layout->item_nbytes);
}

/* The element of an item. */
static void put_element(void *elements, uint32_t element_nbytes, uint64_t i, uint128_t prefix,
			uint64_t number)
{
	if (element_nbytes == 8)
		((uint64_t *)elements)[i] =
			(uint64_t)(prefix >> (64 + NUMBER_BITS)) << NUMBER_BITS | number;
	else
		((uint128_t *)elements)[i] = prefix >> NUMBER_BITS << NUMBER_BITS | number;
}

/* The elements of a slice of items, the first of which has the number `start`. */
static void index_items(const struct layout *layout, const struct slice *slice, uint64_t start,
			void *elements, struct digest *digest)
{
	const uint64_t ahead_n = AHEAD_NBYTES / layout->item_nbytes + 1;
	const unsigned char *item = slice->elements;
	struct key_prefix prefix;

	key_prefix_make(&layout->item_keys, layout->item_nbytes, &prefix);
	for (uint64_t i = 0; i < slice->n; i++, item += layout->item_nbytes) {
		if (i + ahead_n < slice->n)
			__builtin_prefetch(item + ahead_n * layout->item_nbytes);
		put_element(elements, layout->element_nbytes, i, key_prefix_load(&prefix, item),
			    start + i);
		if (digest)
			digest->sum += hash_bytes(item + layout->body_offset, layout->body_nbytes);
	}
	if (digest)
		digest->n_records += slice->n;
}

static void refine(const struct layout *layout, const struct sequence *items, void *elements,
		   void *scratch)
{
	if (layout_needs_refining(layout))
		cpu_refine(&(struct refine_op){ .keys = &layout->item_keys,
						.items = items,
						.elements = elements,
						.n = items->n,
						.scratch = scratch });
}

void cpu_sort_records(const struct sort_records_op *op)
{
	const struct layout *layout = op->layout;
	struct slice slice = { .elements = op->records, .n = op->n };
	struct sequence items;
	struct room room;

	divide(layout, 0, op->n, op->scratch, &room);
	if (room.items) {
		make_items(op, room.items);
		slice.elements = room.items;
	}
	*op->ret_read = (struct digest){ 0 };
	index_items(layout, &slice, 0, room.elements, op->ret_read);
	sequence_make(&slice, 1, layout->item_nbytes, room.parts, room.buckets, &items);
	cpu_sort(&(struct sort_op){ .elements = room.elements,
				    .n = op->n,
				    .scratch = room.sort,
				    .element_nbytes = layout->element_nbytes });
	refine(layout, &items, room.elements, room.refine);
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = room.elements,
					.out = op->items,
					.unique = op->unique,
					.limit = op->limit,
					.ret = op->ret });
}

/* The elements of all slices, merged; NULL if there is nothing to be merged. */
static void *merge_elements(const struct merge_records_op *op, const struct sequence *items,
			    const struct room *room)
{
	const uint32_t element_nbytes = op->layout->element_nbytes;
	char *elements = room->elements;
	uint64_t start = 0;

	if (items->n_parts <= 1)
		return NULL;
	for (uint32_t i = 0; i < op->k; i++) {
		index_items(op->layout, &op->slices[i], start, elements, NULL);
		room->slices[i] = (struct slice){ elements, op->slices[i].n };
		start += op->slices[i].n;
		elements += op->slices[i].n * element_nbytes;
	}
	cpu_merge(&(struct merge_op){ .slices = room->slices,
				      .k = op->k,
				      .element_nbytes = element_nbytes,
				      .out = room->merged,
				      .scratch = room->merge });
	refine(op->layout, items, room->merged, room->refine);
	return room->merged;
}

static uint64_t count_items(const struct slice *slices, uint32_t k)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < k; i++)
		n += slices[i].n;
	return n;
}

void cpu_merge_records(const struct merge_records_op *op)
{
	const struct layout *layout = op->layout;
	struct sequence items;
	struct room room;

	divide(layout, op->k, count_items(op->slices, op->k), op->scratch, &room);
	sequence_make(op->slices, op->k, layout->item_nbytes, room.parts, room.buckets, &items);
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = merge_elements(op, &items, &room),
					.out = op->out,
					.for_output = op->for_output,
					.unique = op->unique,
					.limit = op->limit,
					.ret_first = op->ret_first,
					.ret_last = op->ret_last,
					.ret = op->ret });
}
