/*
 * reference_records - what the operations on records must come to (see reference.h)
 *
 * A merge sort of pointers to items compares whole keys. Then one loop over the sorted items makes
 * the output and the statistics.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/backend/reference.h"

typedef const unsigned char *item_t;

struct keyed_item {
	uint64_t first_word; /* of the key */
	item_t item;
};

/* What has to be made of sorted items. */
struct output_params {
	const struct layout *layout;
	unsigned char *out;
	uint64_t offset, nbytes; /* of an item, what is written */
	bool unique;
	uint64_t limit;
	struct sort_op_result *ret;
};

static struct keyed_item make_keyed_item(const struct key_fields *keys, item_t item)
{
	return (struct keyed_item){ key_word(keys, item, 0), item };
}

static int compare_items(const struct key_fields *keys, const struct keyed_item *a,
			 const struct keyed_item *b)
{
	if (a->first_word != b->first_word)
		return a->first_word < b->first_word ? -1 : 1;
	return key_compare(keys, a->item, b->item);
}

static void sort_items(const struct key_fields *keys, struct keyed_item *items,
		       struct keyed_item *scratch, uint64_t n)
{
	const uint64_t half = n / 2;
	uint64_t a = 0, b = half;

	if (n < 2)
		return;
	sort_items(keys, items, scratch, half);
	sort_items(keys, items + half, scratch, n - half);
	if (compare_items(keys, &items[half - 1], &items[half]) <= 0)
		return;
	for (uint64_t i = 0; i < n; i++) {
		if (b == n || (a < half && compare_items(keys, &items[a], &items[b]) <= 0))
			scratch[i] = items[a++];
		else
			scratch[i] = items[b++];
	}
	memcpy(items, scratch, n * sizeof *items);
}

static void add_hash(struct digest *digest, const struct layout *layout, item_t item)
{
	digest_add(digest, (struct digest){ 1, layout_item_hash(layout, item) });
}

/* Keep a copy of one of the items [first, end), which are equal or one, with the sum of counts. */
static void keep(const struct output_params *arrangement, const struct keyed_item *first,
		 const struct keyed_item *end, unsigned char *kept)
{
	const struct layout *layout = arrangement->layout;
	const struct keyed_item *const chosen = layout->keep_last ? end - 1 : first;
	uint64_t count = 0;

	for (const struct keyed_item *i = first; i < end; i++) {
		count += layout_item_count(layout, i->item);
		add_hash(i == chosen ? &arrangement->ret->digest : &arrangement->ret->dropped,
			 layout, i->item);
	}
	memcpy(kept, chosen->item, layout->item_nbytes);
	if (layout->projection.has_count)
		layout_set_item_count(layout, kept, count);
	memcpy(arrangement->out + arrangement->ret->n * arrangement->nbytes,
	       kept + arrangement->offset, arrangement->nbytes);
	arrangement->ret->n++;
	arrangement->ret->n_counted += count;
}

/* ret_first and ret_last: item_nbytes each. */
static void arrange(const struct output_params *arrangement, const struct keyed_item *items,
		    uint64_t n, unsigned char *ret_first, unsigned char *ret_last)
{
	const struct layout *layout = arrangement->layout;
	struct sort_op_result *ret = arrangement->ret;
	uint64_t i = 0;

	*ret = (struct sort_op_result){ 0 };
	while (i < n && ret->n < arrangement->limit) {
		uint64_t end = i + 1;

		while (arrangement->unique && end < n &&
		       compare_items(&layout->item_keys, &items[i], &items[end]) == 0)
			end++;
		keep(arrangement, items + i, items + end, ret_last);
		if (ret->n == 1)
			memcpy(ret_first, ret_last, layout->item_nbytes);
		i = end;
	}
	for (; i < n; i++)
		add_hash(&ret->dropped, layout, items[i].item);
}

void plain_sort_records(const struct sort_op *op)
{
	const struct layout *layout = op->layout;
	const struct output_params arrangement = { .layout = layout,
						   .out = op->items,
						   .nbytes = layout->item_nbytes,
						   .unique = op->unique,
						   .limit = op->limit,
						   .ret = op->ret };
	unsigned char *made = malloc((op->n + 2) * layout->item_nbytes);
	struct keyed_item *items = malloc((2 * op->n + 1) * sizeof *items);

	*op->ret_input_digest = (struct digest){ 0 };
	for (uint64_t i = 0; i < op->n; i++) {
		unsigned char *item = made + (i + 2) * layout->item_nbytes;

		layout_project_record(layout, (item_t)op->records + i * layout->record_nbytes,
				      op->position + i, item);
		add_hash(op->ret_input_digest, layout, item);
		items[i] = make_keyed_item(&layout->item_keys, item);
	}
	sort_items(&layout->item_keys, items, items + op->n, op->n);
	arrange(&arrangement, items, op->n, made, made + layout->item_nbytes);
	free(made);
	free(items);
}

void plain_merge_records(const struct merge_op *op)
{
	const struct layout *layout = op->layout;
	const struct output_params arrangement = {
		.layout = layout,
		.out = op->out,
		.offset = op->for_output ? layout->output_offset : 0,
		.nbytes = op->for_output ? layout->output_nbytes : layout->item_nbytes,
		.unique = op->unique,
		.limit = op->limit,
		.ret = op->ret,
	};
	const uint64_t n = slices_n(op->slices, op->k);
	struct keyed_item *items = malloc((2 * n + 1) * sizeof *items);
	uint64_t at = 0;

	for (uint32_t i = 0; i < op->k; i++)
		for (uint64_t j = 0; j < op->slices[i].n; j++)
			items[at++] = make_keyed_item(&layout->item_keys,
						      (item_t)op->slices[i].elements +
							      j * layout->item_nbytes);
	sort_items(&layout->item_keys, items, items + n, n);
	arrange(&arrangement, items, n, op->ret_first, op->ret_last);
	free(items);
}

void plain_cut_items(const struct cut_op *op)
{
	for (uint32_t i = 0; i < op->k; i++) {
		const struct slice *slice = &op->slices[i];
		uint64_t n = 0;

		for (uint64_t j = 0; j < slice->n; j++) {
			const int order = key_compare_normalised(
				&op->layout->item_keys,
				(item_t)slice->elements + j * op->layout->item_nbytes, op->key);

			n += order < 0 || (order == 0 && i < op->slice);
		}
		op->ret_cuts[i] = n;
	}
}

void plain_sample_items(const struct sample_op *op)
{
	encoded_key_t *key = op->ret_keys;

	for (uint64_t i = 0; i < op->n; i++)
		if (i % op->stride == 0)
			*key++ = layout_key_prefix(&op->layout->item_keys,
						   (item_t)op->items + i * op->layout->item_nbytes);
}
