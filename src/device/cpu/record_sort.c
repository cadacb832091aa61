/*
 * record_sort.c - sort a chunk of records and merge slices of items (see cpu_ops.h)
 *
 * Records are too wide to be moved log(n) times. So elements are sorted instead: the first bytes of
 * the key and the record's number, which makes all elements distinct and the sort stable.
 *
 *	records --make--> items --index--> elements --select, sort--> ties --gather--> items
 *	                  slices --index--> elements of slices --merge--> ties --gather--> items
 *
 * Numbers count through all slices (gather.h), so merging elements merges stably, and both
 * operations end in the same way. Only elements that tie are compared by their records; other
 * records are not read before they are gathered.
 *
 * A sort chooses the element format that suits the keys (element_format.h). If that turns out to be
 * wrong, it starts again with the format for any keys. So does a merge.
 *
 * The scratch, for n items:
 *
 *	sort	[ items, unless records are items ][ elements ][ for the sort ][ for ties ]
 *	merge	[ elements ][ merged ][ for the merge ][ slices ][ ... ]
 *
 * Narrow elements take half of the space for wide ones; groups of ties use the other half.
 */
#include "src/device/cpu/cpu_ops.h"

#include <stdlib.h>

#include "src/base/cancellation.h"
#include "src/base/int_math.h"
#include "src/base/scratch.h"
#include "src/device/cpu/cpu_merge.h"
#include "src/device/cpu/cpu_sort.h"
#include "src/device/cpu/gather.h"

/*
 * --- the first elements ---
 *
 * If only the first few elements are needed, one pass moves those that are not above a bound to the
 * front. The bound is an element of a sample. Its rank is slightly higher than the limit requires,
 * so that nearly always enough elements are moved. If there are too few, all elements are sorted: a
 * misleading sample only costs time.
 *
 * The comparison with the bound ignores the numbers of the elements. So elements that tie with it
 * are moved, too, and the elements behind the front are never needed to break ties.
 */

enum {
	SAMPLE_N = 256,
	/* The margin for random variation: MARGIN_N ranks and 1 / MARGIN_DIVISOR of the rank. */
	MARGIN_N = 8,
	MARGIN_DIVISOR = 4,
	MAX_LIMIT_DIVISOR = 4, /* for limits above n / MAX_LIMIT_DIVISOR all are sorted */
};

static int compare_keys(const void *a, const void *b)
{
	const uint128_t x = *(const uint128_t *)a, y = *(const uint128_t *)b;

	return (x > y) - (x < y);
}

struct top_k_op {
	const struct element_format *format;
	void *elements; /* n, in any order */
	uint64_t n;
	uint64_t limit;
};

static uint128_t choose_bound(const struct top_k_op *op)
{
	const uint64_t expected = (uint64_t)((uint128_t)op->limit * SAMPLE_N / op->n);
	uint128_t keys[SAMPLE_N];

	for (uint64_t i = 0; i < SAMPLE_N; i++)
		keys[i] = element_key(op->format, op->elements, i * (op->n / SAMPLE_N));
	qsort(keys, SAMPLE_N, sizeof keys[0], compare_keys);
	return keys[expected + expected / MARGIN_DIVISOR + MARGIN_N];
}

/*
 * Move the elements that are not above the bound to the front; return their number. Callers pass
 * format.element_nbytes as a constant.
 */
__attribute__((always_inline)) static inline uint64_t
move_below(const struct top_k_op *op, struct element_format format, uint128_t bound)
{
	char *const elements = op->elements;
	uint64_t n_below = 0;

	for (uint64_t i = 0; i < op->n; i++) {
		char *const from = elements + i * format.element_nbytes;
		char *const to = elements + n_below * format.element_nbytes;
		char element[16];

		if (element_key(&format, elements, i) > bound)
			continue;
		__builtin_memcpy(element, from, format.element_nbytes);
		__builtin_memmove(from, to, format.element_nbytes);
		__builtin_memcpy(to, element, format.element_nbytes);
		n_below++;
	}
	return n_below;
}

/*
 * Move elements to the front so that these include the first `limit` in sorted order. Returns the
 * number of elements at the front: at least `limit`, or n if fewer. Elements that tie are not
 * separated.
 */
static uint64_t move_top_k(const struct top_k_op *op)
{
	struct element_format format = *op->format;
	uint128_t bound;
	uint64_t n_below;

	if (op->n < SAMPLE_N || op->limit > op->n / MAX_LIMIT_DIVISOR)
		return op->n;
	bound = choose_bound(op);
	if (format.element_nbytes == 8) {
		format.element_nbytes = 8;
		n_below = move_below(op, format, bound);
	} else {
		format.element_nbytes = 16;
		n_below = move_below(op, format, bound);
	}
	return n_below < op->limit ? op->n : n_below;
}

/*
 * --- ties ---
 *
 * A group is a range of elements that tie in some leading bytes of their keys. These bytes are no
 * longer needed, so the next twelve replace them, and the group is sorted like the whole array.
 * Elements that tie again form new groups:
 *
 *	key      aaaaaaaaaaaa bbbbbbbbbbbb 1	elements   a..a 0  a..a 1  a..a 2
 *	         aaaaaaaaaaaa cccccccccccc 2	           c..c 1  b..b 0  b..b 2	next bytes
 *	         aaaaaaaaaaaa bbbbbbbbbbbb 0	           b..b 0  b..b 2  c..c 1	sorted
 *	                                 	           "1"  0  "0"  2		next bytes
 *	                                 	           "0"  2  "1"  0  c..c 1
 *
 * Keys with long common prefixes would take many rounds, each of which reads all records. So a
 * round first finds the length of the common prefix of the group, which is cheap: the first key is
 * compared with the others, each only up to the shortest match so far. Without a long common prefix
 * this ends at once. A group of equal keys takes one pass.
 *
 * Small groups are sorted by insertion, which compares keys in place.
 *
 * Pending groups are disjoint and larger than SMALL_N, which limits their number.
 *
 * Groups are sorted as wide elements (element_format.h). Wide elements are changed in place. A
 * group of narrow elements is copied to be sorted, and only its numbers are copied back. Narrow
 * elements are used only where few ties are expected, so the space for copies is limited.
 */

enum {
	SMALL_N = 16,              /* largest group that is sorted by insertion */
	TIE_BREAK_PREFETCH_N = 16, /* elements whose items are prefetched */
};

/* The format of groups, for elements of any format: twelve bytes of the key, four of the number. */
static const struct element_format wide_format = { .element_nbytes = 16, .number_bits = 32 };
enum { WIDE_KEY_NBYTES = 12 };

struct tie_break_op {
	const struct key_fields *keys;
	const struct item_lookup *items;
	const struct element_format *format;
	void *elements; /* n, sorted */
	uint64_t n;
	/* For narrow elements: space for wide_buffer_n wide ones, aligned to 16 bytes. */
	uint128_t *wide_buffer;
	uint64_t wide_buffer_n;
	void *sort_scratch;                      /* cpu_sort_scratch_nbytes(n, 16) */
	const struct cancellation *cancellation; /* as for cpu_sort() */
	void *scratch;                           /* tie_break_scratch_nbytes(n) */
};

struct tie_group {
	uint32_t start, n;
	uint32_t n_equal_nbytes; /* leading bytes of the key that are equal in the group */
};

struct tie_break_state {
	const struct tie_break_op *op;
	struct tie_group *pending;
	uint64_t n_pending;
};

/* Return the size in bytes of the scratch for n elements; it must be aligned to 16 bytes. */
static size_t tie_break_scratch_nbytes(uint64_t n)
{
	return (n / (SMALL_N + 1) + 1) * sizeof(struct tie_group);
}

static uint32_t number_at(const struct tie_break_state *state, uint64_t i)
{
	return element_number(state->op->format, state->op->elements, i);
}

static const unsigned char *item_at(const struct tie_break_state *state, uint64_t i)
{
	return item_lookup_get(state->op->items, number_at(state, i));
}

/* Prefetch the part of element i's item that is read next. */
static void prefetch_key(const struct tie_break_state *state, uint64_t i, uint32_t n_equal)
{
	const struct key_fields *const keys = state->op->keys;
	const uint32_t skipped = key_tail_is_bytes(keys) ? n_equal : 0;

	__builtin_prefetch(item_at(state, i) + keys->fields[0].offset + skipped);
}

/* Prefetch a later item of the group, for a loop over its elements that is at element i. */
static void prefetch_group_item(const struct tie_break_state *state, const struct tie_group *group,
				uint64_t i)
{
	if (i + TIE_BREAK_PREFETCH_N < (uint64_t)group->start + group->n)
		prefetch_key(state, i + TIE_BREAK_PREFETCH_N, group->n_equal_nbytes);
}

/*
 * Sort a small group by insertion. It is stable, because the elements are in the order of their
 * numbers.
 */
static void sort_small_group(const struct tie_break_state *state, const struct tie_group *group)
{
	const unsigned char *items[SMALL_N];
	uint32_t numbers[SMALL_N];

	for (uint32_t i = 0; i < group->n; i++) {
		const uint32_t number = number_at(state, group->start + i);
		const unsigned char *const item = item_lookup_get(state->op->items, number);
		uint32_t at = i;

		for (; at > 0 && key_tail_compare(state->op->keys, group->n_equal_nbytes,
						  items[at - 1], item) > 0;
		     at--) {
			items[at] = items[at - 1];
			numbers[at] = numbers[at - 1];
		}
		items[at] = item;
		numbers[at] = number;
	}
	for (uint32_t i = 0; i < group->n; i++)
		element_set_number(state->op->format, state->op->elements, group->start + i,
				   numbers[i]);
}

/* Return the number of leading bytes that all keys of the group share, in whole words. */
static uint32_t count_equal(const struct tie_break_state *state, const struct tie_group *group)
{
	const struct key_fields *const keys = state->op->keys;
	const unsigned char *const first = item_at(state, group->start);
	uint32_t end = keys->key_nbytes;

	for (uint64_t i = group->start + 1;
	     i < (uint64_t)group->start + group->n && end > group->n_equal_nbytes; i++) {
		const unsigned char *const item = item_at(state, i);
		uint32_t at = group->n_equal_nbytes;

		prefetch_group_item(state, group, i);
		while (at < end && key_tail_word(keys, first, at) == key_tail_word(keys, item, at))
			at += 8;
		end = at < end ? at : end;
	}
	return end;
}

/* Make wide elements of the next bytes of the keys of a group, and sort them. */
static void sort_group(const struct tie_break_state *state, const struct tie_group *group,
		       uint128_t *buffer)
{
	const struct tie_break_op *op = state->op;

	for (uint64_t i = 0; i < group->n; i++) {
		const uint32_t number = number_at(state, group->start + i);
		const unsigned char *const item = item_lookup_get(op->items, number);
		const uint64_t word = key_tail_word(op->keys, item, group->n_equal_nbytes);
		const uint64_t next = key_tail_word(op->keys, item, group->n_equal_nbytes + 8);

		prefetch_group_item(state, group, group->start + i);
		element_put(&wide_format, buffer, i, (uint128_t)word << 64 | next, number);
	}
	cpu_sort(&(struct sort_elements_op){ .elements = buffer,
					     .n = group->n,
					     .scratch = op->sort_scratch,
					     .element_nbytes = wide_format.element_nbytes,
					     .cancellation = op->cancellation });
}

/* Return whether an element ties with the previous one. */
static bool elements_tie(const struct element_format *format, const void *elements, uint64_t i)
{
	return element_key(format, elements, i - 1) == element_key(format, elements, i);
}

/*
 * Find groups of ties among the sorted elements of the parent, which begin at `elements`. Sort
 * small groups, and push the others for later.
 */
static void find_groups(struct tie_break_state *state, const struct tie_group *parent,
			const struct element_format *format, const void *elements)
{
	uint64_t start = 0;

	for (uint64_t i = 1; i <= parent->n; i++) {
		struct tie_group group;

		if (i + TIE_BREAK_PREFETCH_N < parent->n &&
		    elements_tie(format, elements, i + TIE_BREAK_PREFETCH_N)) {
			prefetch_key(state, parent->start + i + TIE_BREAK_PREFETCH_N - 1,
				     parent->n_equal_nbytes);
			prefetch_key(state, parent->start + i + TIE_BREAK_PREFETCH_N,
				     parent->n_equal_nbytes);
		}
		if (i < parent->n && elements_tie(format, elements, i))
			continue;
		group = (struct tie_group){ parent->start + (uint32_t)start, (uint32_t)(i - start),
					    parent->n_equal_nbytes };
		start = i;
		if (group.n > SMALL_N)
			state->pending[state->n_pending++] = group;
		else if (group.n > 1)
			sort_small_group(state, &group);
	}
}

/* Sort a group by the next bytes in which it differs, if there are any. */
static void break_group_ties(struct tie_break_state *state, struct tie_group group)
{
	const struct tie_break_op *op = state->op;
	const bool is_wide = op->format->element_nbytes == wide_format.element_nbytes;
	uint128_t *const buffer = is_wide ? (uint128_t *)op->elements + group.start :
					    op->wide_buffer;

	group.n_equal_nbytes = count_equal(state, &group);
	if (group.n_equal_nbytes >= op->keys->key_nbytes)
		return;
	sort_group(state, &group, buffer);
	if (cancellation_is_requested(op->cancellation))
		return; /* the numbers in the buffer are undefined */
	for (uint64_t i = 0; i < group.n && !is_wide; i++)
		element_set_number(op->format, op->elements, group.start + i,
				   element_number(&wide_format, buffer, i));
	group.n_equal_nbytes += WIDE_KEY_NBYTES;
	if (group.n_equal_nbytes < op->keys->key_nbytes)
		find_groups(state, &group, &wide_format, buffer);
}

/*
 * Sort elements that tie by the rest of the key, and equal keys by their numbers. Afterwards only
 * the numbers of the elements are valid, not their keys. Returns false if wide_buffer was too
 * small; the order is then undefined.
 */
static bool break_all_ties(const struct tie_break_op *op)
{
	const bool is_wide = op->format->element_nbytes == wide_format.element_nbytes;
	struct tie_break_state state = { .op = op, .pending = op->scratch };
	const struct tie_group whole = { 0, (uint32_t)op->n,
					 element_format_tied_nbytes(op->format) };

	find_groups(&state, &whole, op->format, op->elements);
	while (state.n_pending > 0 && !cancellation_is_requested(op->cancellation)) {
		const struct tie_group group = state.pending[--state.n_pending];

		if (!is_wide && group.n > op->wide_buffer_n)
			return false;
		break_group_ties(&state, group);
	}
	return true;
}

/* --- sort and merge --- */

/* The parts of the scratch. */
struct record_sort_scratch {
	void *items, *elements, *merged;
	void *sort, *merge, *tie_break; /* scratch of these steps */
	struct slice *slices;
	struct item_lookup_entry *lookup_entries;
	uint32_t *buckets;
	size_t elements_nbytes;
	const struct cancellation *cancellation; /* NULL: never */
};

/* Divide the scratch; return its size in bytes. scratch == NULL: only compute the size. */
static size_t divide_sort_scratch(const struct layout *layout, uint32_t k, uint64_t n,
				  char *scratch, struct record_sort_scratch *ret_areas)
{
	const size_t elements_nbytes = n * layout->element_nbytes;
	struct record_sort_scratch *areas = ret_areas;
	size_t nbytes = 0;

	*areas = (struct record_sort_scratch){ .elements_nbytes = elements_nbytes };
	if (k == 0 && !layout->projection.is_identity)
		areas->items = scratch_allocate(scratch, &nbytes, n * layout->item_nbytes);
	areas->elements = scratch_allocate(scratch, &nbytes, elements_nbytes);
	if (k > 0) {
		areas->merged = scratch_allocate(scratch, &nbytes, elements_nbytes);
		areas->merge = scratch_allocate(
			scratch, &nbytes, cpu_merge_scratch_nbytes(k, n, layout->element_nbytes));
		areas->slices = scratch_allocate(scratch, &nbytes, k * sizeof *areas->slices);
	}
	areas->lookup_entries =
		scratch_allocate(scratch, &nbytes, (k + 1) * sizeof *areas->lookup_entries);
	areas->buckets = scratch_allocate(scratch, &nbytes,
					  item_lookup_n_buckets(k + 1) * sizeof *areas->buckets);
	areas->sort = scratch_allocate(scratch, &nbytes,
				       u64_max(cpu_sort_scratch_nbytes(n, 8),
					       cpu_sort_scratch_nbytes(n, 16)));
	areas->tie_break = scratch_allocate(scratch, &nbytes, tie_break_scratch_nbytes(n));
	return nbytes;
}

size_t cpu_records_scratch_nbytes(const struct layout *layout, uint32_t k, uint64_t n)
{
	struct record_sort_scratch areas;

	return divide_sort_scratch(layout, k, n, NULL, &areas);
}

static void make_items(const struct sort_op *op, unsigned char *items)
{
	const struct layout *layout = op->layout;
	const unsigned char *record = op->records;

	for (uint64_t i = 0; i < op->n; i++, record += layout->record_nbytes)
		layout_project_record(layout, record, op->position + i,
				      items + i * layout->item_nbytes);
}

/* Break ties of the first n elements. Returns false if there is not enough space. */
static bool break_ties(const struct layout *layout, const struct item_lookup *items,
		       const struct element_format *format, void *elements, uint64_t n,
		       const struct record_sort_scratch *areas)
{
	const size_t elements_nbytes = (items->n * format->element_nbytes + sizeof(uint128_t) - 1) /
				       sizeof(uint128_t) * sizeof(uint128_t);

	if (!element_format_needs_tie_break(format, &layout->item_keys))
		return true;
	return break_all_ties(&(struct tie_break_op){
		.keys = &layout->item_keys,
		.items = items,
		.format = format,
		.elements = elements,
		.n = n,
		.wide_buffer = (uint128_t *)((char *)elements + elements_nbytes),
		.wide_buffer_n =
			areas->elements_nbytes > elements_nbytes ?
				(areas->elements_nbytes - elements_nbytes) / sizeof(uint128_t) :
				0,
		.sort_scratch = areas->sort,
		.scratch = areas->tie_break,
		.cancellation = areas->cancellation,
	});
}

/* Make the elements of all records in the best format, and the digest of the records. */
static struct element_format make_record_elements(const struct sort_op *op, struct slice items,
						  const struct record_sort_scratch *areas)
{
	struct element_format format = element_format_default(op->layout);
	struct make_elements_op index = { .layout = op->layout,
					  .format = &format,
					  .items = items,
					  .elements = areas->elements,
					  .digest = op->ret_input_digest };
	struct element_sample sample;
	struct key_prefix prefix;
	unsigned common_bits;

	if (op->n == 0)
		return format;
	key_prefix_make(&op->layout->item_keys, op->layout->item_nbytes, &prefix);
	element_sample_collect(&prefix, items.elements, op->n, &sample);
	common_bits = element_sample_common_bits(&sample);
	format = element_format_choose(op->layout, &sample, common_bits, op->n);
	common_bits = key_prefix_common_bits(cpu_make_elements(&index));
	if (format.skipped_bits > common_bits) {
		format = element_format_choose(op->layout, &sample, common_bits, op->n);
		index.digest = NULL;
		cpu_make_elements(&index);
	}
	return format;
}

/*
 * Move elements that can be within the limit to the front; return their number. With -u all
 * elements are needed, because any number of equal records may precede the limit.
 */
static uint64_t select_top_k(const struct sort_op *op, const struct element_format *format,
			     const struct record_sort_scratch *areas)
{
	if (op->unique)
		return op->n;
	return move_top_k(&(struct top_k_op){
		.format = format, .elements = areas->elements, .n = op->n, .limit = op->limit });
}

/*
 * Sort the first n elements and break ties. Returns false if there are too many ties for this
 * format. After a cancellation the elements are undefined.
 */
static bool sort_elements(const struct layout *layout, const struct item_lookup *items,
			  const struct element_format *format, uint64_t n,
			  const struct record_sort_scratch *areas)
{
	cpu_sort(&(struct sort_elements_op){ .elements = areas->elements,
					     .n = n,
					     .scratch = areas->sort,
					     .element_nbytes = format->element_nbytes,
					     .cancellation = areas->cancellation });
	return cancellation_is_requested(areas->cancellation) ||
	       break_ties(layout, items, format, areas->elements, n, areas);
}

void cpu_sort_records(const struct sort_op *op, const struct cancellation *cancellation)
{
	const struct layout *layout = op->layout;
	struct slice slice = { .elements = op->records, .n = op->n };
	struct element_format format;
	struct item_lookup items;
	struct record_sort_scratch areas;
	uint64_t n_ordered;

	divide_sort_scratch(layout, 0, op->n, op->scratch, &areas);
	areas.cancellation = cancellation;
	if (areas.items) {
		make_items(op, areas.items);
		slice.elements = areas.items;
	}
	item_lookup_init(&slice, 1, layout->item_nbytes, areas.lookup_entries, areas.buckets,
			 &items);
	*op->ret_input_digest = (struct digest){ 0 };
	format = make_record_elements(op, slice, &areas);
	n_ordered = select_top_k(op, &format, &areas);
	if (!sort_elements(layout, &items, &format, n_ordered, &areas)) {
		format = element_format_default(layout);
		cpu_make_elements(&(struct make_elements_op){ .layout = layout,
							      .format = &format,
							      .items = slice,
							      .elements = areas.elements });
		n_ordered = select_top_k(op, &format, &areas);
		sort_elements(layout, &items, &format, n_ordered, &areas);
	}
	if (cancellation_is_requested(cancellation))
		return;
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = areas.elements,
					.n = items.n,
					.n_ordered = n_ordered,
					.format = &format,
					.out = op->items,
					.unique = op->unique,
					.scattered = true,
					.limit = op->limit,
					.cancellation = cancellation,
					.ret = op->ret });
}

/*
 * Choose the format for a merge. Slices are sorted, so their first and last keys show which bits
 * all keys share. Narrow elements need no more scratch than those of the layout.
 */
static struct element_format choose_merge_format(const struct layout *layout,
						 const struct item_lookup *items)
{
	const uint32_t n = items->n < ELEMENT_SAMPLE_N ? (uint32_t)items->n : ELEMENT_SAMPLE_N;
	struct element_sample sample = { .n = n };
	struct key_prefix prefix;
	uint128_t differences = 0;

	key_prefix_make(&layout->item_keys, layout->item_nbytes, &prefix);
	for (uint64_t i = 0; i < n; i++)
		sample.prefixes[i] =
			key_prefix_load(&prefix, item_lookup_get(items, i * items->n / n));
	for (uint32_t i = 0; i < items->n_entries; i++) {
		const struct item_lookup_entry *entry = &items->entries[i];
		const unsigned char *last =
			entry->items + (entry->end - entry->start - 1) * layout->item_nbytes;

		differences |= key_prefix_load(&prefix, entry->items) ^ sample.prefixes[0];
		differences |= key_prefix_load(&prefix, last) ^ sample.prefixes[0];
	}
	qsort(sample.prefixes, n, sizeof sample.prefixes[0], compare_keys);
	return element_format_choose(layout, &sample, key_prefix_common_bits(differences),
				     items->n);
}

/* Merge the elements of all slices. Returns false if there are too many ties for this format. */
static bool merge_elements(const struct merge_op *op, const struct item_lookup *items,
			   const struct element_format *format,
			   const struct record_sort_scratch *areas)
{
	char *elements = areas->elements;
	uint64_t start = 0;

	for (uint32_t i = 0; i < op->k; i++) {
		const uint64_t n = op->slices[i].n;

		cpu_make_elements(&(struct make_elements_op){ .layout = op->layout,
							      .format = format,
							      .items = op->slices[i],
							      .first_number = start,
							      .elements = elements });
		areas->slices[i] = (struct slice){ elements, n };
		start += n;
		elements += n * format->element_nbytes;
	}
	cpu_merge(&(struct merge_elements_op){ .slices = areas->slices,
					       .k = op->k,
					       .element_nbytes = format->element_nbytes,
					       .out = areas->merged,
					       .scratch = areas->merge });
	return break_ties(op->layout, items, format, areas->merged, items->n, areas);
}

void cpu_merge_records(const struct merge_op *op)
{
	const struct layout *layout = op->layout;
	struct element_format format = element_format_default(layout);
	struct item_lookup items;
	struct record_sort_scratch areas;
	bool is_merged;

	divide_sort_scratch(layout, op->k, slices_n(op->slices, op->k), op->scratch, &areas);
	item_lookup_init(op->slices, op->k, layout->item_nbytes, areas.lookup_entries,
			 areas.buckets, &items);
	is_merged = items.n_entries > 1;
	if (is_merged)
		format = choose_merge_format(layout, &items);
	if (is_merged && !merge_elements(op, &items, &format, &areas)) {
		format = element_format_default(layout);
		merge_elements(op, &items, &format, &areas);
	}
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = is_merged ? areas.merged : NULL,
					.n = items.n,
					.n_ordered = items.n,
					.format = &format,
					.out = op->out,
					.for_output = op->for_output,
					.unique = op->unique,
					.limit = op->limit,
					.ret_first = op->ret_first,
					.ret_last = op->ret_last,
					.ret = op->ret });
}
