/*
 * record_sort - sort a chunk of records and merge slices of items (see record_sort.h)
 *
 * Records are too wide to be moved log(n) times. So elements are sorted instead: the first bytes of
 * the key and the record's number, which makes all elements distinct and the sort stable.
 *
 *	records --make--> items --index--> elements --select, sort--> ties --gather--> items
 *	                  slices --index--> elements of slices --merge--> ties --gather--> items
 *
 * Numbers count through all slices (item_lookup.h), so merging elements merges stably, and both
 * operations end in the same way. Only elements that tie are compared by their records; other
 * records are not read before they are gathered.
 *
 * A sort chooses the element format that suits the keys (element_format.h). If that turns out to be
 * wrong, it starts again with the format for any keys. A merge uses that at once, because it moves
 * elements only a few times.
 *
 * The scratch, for n items:
 *
 *	sort	[ items, unless records are items ][ elements ][ for the sort ][ for ties ]
 *	merge	[ elements ][ merged ][ for the merge ][ slices ][ ... ]
 *
 * Narrow elements take half of the space for wide ones; groups of ties use the other half.
 */
#include "src/device/cpu/record_sort.h"

#include "src/base/scratch.h"
#include "src/device/cpu/gather.h"
#include "src/device/cpu/make_elements.h"
#include "src/device/cpu/cpu_merge.h"
#include "src/device/cpu/tie_break.h"
#include "src/device/cpu/top_k.h"
#include "src/device/cpu/cpu_sort.h"

/* The parts of the scratch. */
struct record_sort_scratch {
	void *items, *elements, *merged;
	void *sort, *merge, *tie_break; /* scratch of these steps */
	struct slice *slices;
	struct item_lookup_entry *lookup_entries;
	uint32_t *buckets;
	size_t elements_nbytes;
};

static size_t max_sort_scratch_nbytes(uint64_t n)
{
	const size_t narrow = cpu_sort_scratch_nbytes(n, 8), wide = cpu_sort_scratch_nbytes(n, 16);

	return narrow > wide ? narrow : wide;
}

/* Divide the scratch; return its size. */
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
	areas->lookup_entries = scratch_allocate(
		scratch, &nbytes, item_lookup_n_entries(k + 1) * sizeof *areas->lookup_entries);
	areas->buckets = scratch_allocate(scratch, &nbytes,
					  item_lookup_n_buckets(k + 1) * sizeof *areas->buckets);
	areas->sort = scratch_allocate(scratch, &nbytes, max_sort_scratch_nbytes(n));
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

/* Break ties of the first n elements; false if there is not enough space. */
static bool break_ties(const struct layout *layout, const struct item_lookup *items,
		       const struct element_format *format, void *elements, uint64_t n,
		       const struct record_sort_scratch *areas)
{
	const size_t elements_nbytes = (items->n * format->element_nbytes + sizeof(uint128_t) - 1) /
				       sizeof(uint128_t) * sizeof(uint128_t);

	if (!element_format_needs_tie_break(format, &layout->item_keys))
		return true;
	return cpu_break_ties(&(struct tie_break_op){
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
 * Select the elements that can be among the first. With -u, any number of equal records may precede
 * the limit, so all are sorted.
 */
static uint64_t select_top_k(const struct sort_op *op, const struct element_format *format,
			     const struct record_sort_scratch *areas)
{
	if (op->unique)
		return op->n;
	return cpu_top_k(&(struct top_k_op){
		.format = format, .elements = areas->elements, .n = op->n, .limit = op->limit });
}

/* Sort the first n elements and break ties; false if there are too many ties for this format. */
static bool sort_elements(const struct layout *layout, const struct item_lookup *items,
			  const struct element_format *format, uint64_t n,
			  const struct record_sort_scratch *areas)
{
	cpu_sort(&(struct sort_elements_op){ .elements = areas->elements,
					     .n = n,
					     .scratch = areas->sort,
					     .element_nbytes = format->element_nbytes });
	return break_ties(layout, items, format, areas->elements, n, areas);
}

void cpu_sort_records(const struct sort_op *op)
{
	const struct layout *layout = op->layout;
	struct slice slice = { .elements = op->records, .n = op->n };
	struct element_format format;
	struct item_lookup items;
	struct record_sort_scratch areas;
	uint64_t n_ordered;

	divide_sort_scratch(layout, 0, op->n, op->scratch, &areas);
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
					.ret = op->ret });
}

/* Merge the elements of all slices; NULL if there is nothing to merge. */
static void *merge_elements(const struct merge_op *op, const struct item_lookup *items,
			    const struct element_format *format,
			    const struct record_sort_scratch *areas)
{
	char *elements = areas->elements;
	uint64_t start = 0;

	if (items->n_entries <= 1)
		return NULL;
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
	break_ties(op->layout, items, format, areas->merged, items->n, areas);
	return areas->merged;
}

void cpu_merge_records(const struct merge_op *op)
{
	const struct layout *layout = op->layout;
	const struct element_format format = element_format_default(layout);
	struct item_lookup items;
	struct record_sort_scratch areas;

	divide_sort_scratch(layout, op->k, slices_n(op->slices, op->k), op->scratch, &areas);
	item_lookup_init(op->slices, op->k, layout->item_nbytes, areas.lookup_entries,
			 areas.buckets, &items);
	cpu_gather(&(struct gather_op){ .layout = layout,
					.items = &items,
					.elements = merge_elements(op, &items, &format, &areas),
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
