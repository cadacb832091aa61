/*
 * run.c - what all kinds of runs have in common
 */
#include "src/run/run.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/array.h"
#include "src/base/diagnostics.h"

int run_set_stride(struct run *run, uint64_t stride, struct run_samples *samples)
{
	samples->stride = stride;
	run->n_blocks = run->n_items / stride + (run->n_items % stride != 0);
	free(samples->first_keys);
	samples->first_keys = malloc((run->n_blocks + 1) * sizeof *samples->first_keys);
	if (!samples->first_keys)
		return fail(-ENOMEM, "no memory for the first keys of %" PRIu64 " blocks",
			    run->n_blocks);
	return 0;
}

void run_close(struct run *run)
{
	if (run)
		run->ops->close(run);
}

void run_remove(struct run *run)
{
	if (run && run->ops->remove)
		run->ops->remove(run);
	run_close(run);
}

uint64_t runs_n_items(struct run *const *runs, size_t n)
{
	uint64_t n_items = 0;

	for (size_t i = 0; i < n; i++)
		n_items += runs[i]->n_items;
	return n_items;
}

size_t runs_n_resident(struct run *const *runs, size_t n)
{
	size_t n_resident = 0;

	for (size_t i = 0; i < n; i++)
		n_resident += run_is_resident(runs[i]);
	return n_resident;
}

size_t runs_n_peer_accessible(const struct job *job, struct run *const *runs, size_t n)
{
	size_t n_accessible = 0;

	for (size_t i = 0; i < n; i++)
		n_accessible += run_is_peer_accessible(job, runs[i]);
	return n_accessible;
}

bool run_is_peer_accessible(const struct job *job, const struct run *run)
{
	return run_is_resident(run) && job_can_access(job, run->device_index);
}

encoded_key_t run_first_key(const struct run *run, uint64_t i)
{
	return run->ops->first_key(run, i);
}

uint64_t run_n_blocks_before(const struct run *run, uint64_t lo, uint64_t hi, encoded_key_t key,
			     bool or_equal)
{
	while (lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		const encoded_key_t first = run_first_key(run, i);

		if (first < key || (or_equal && first == key))
			lo = i + 1;
		else
			hi = i;
	}
	return lo;
}

/* Read item i and compare its key with the bound's. buffer: room for an item and a key. */
static int compare_item(struct run *run, uint64_t i, const struct run_bound *bound, char *buffer,
			int *ret_order)
{
	char *key = buffer + bound->layout->item_nbytes;
	int r = run_read_item(run, i, buffer);

	if (r < 0)
		return r;
	run_item_key(run, bound->layout, buffer, key);
	*ret_order = layout_compare_keys(bound->layout, key, bound->key);
	return 0;
}

/*
 * Count the items, or the blocks by their first items, that come before the bound. The count is
 * known to lie in [lo, hi]. Only the items that are compared are read.
 */
static int seek_bound(struct run *run, bool by_block, uint64_t lo, uint64_t hi,
		      const struct run_bound *bound, uint64_t *ret_n)
{
	char *buffer = malloc(bound->layout->item_nbytes + layout_key_nbytes(bound->layout));
	int r = buffer ? 0 : fail(-ENOMEM, "no memory for a record");

	while (r == 0 && lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		int order = 0;

		r = compare_item(run, by_block ? run_block_start(run, i) : i, bound, buffer,
				 &order);
		if (order < 0 || (order == 0 && bound->after_equals))
			lo = i + 1;
		else
			hi = i;
	}
	free(buffer);
	*ret_n = lo;
	return r;
}

int run_count_before(struct run *run, const struct run_bound *bound, uint64_t *ret_n_before)
{
	const encoded_key_t prefix = layout_get_key_prefix(bound->layout, bound->key);
	const bool is_exact = layout_key_nbytes(bound->layout) <= sizeof(encoded_key_t);
	uint64_t n =
		run_n_blocks_before(run, 0, run->n_blocks, prefix, is_exact && bound->after_equals);
	int r = 0;

	/* First keys tie on the 16 bytes that are in memory. */
	if (!is_exact)
		r = seek_bound(run, true, n,
			       run_n_blocks_before(run, n, run->n_blocks, prefix, true), bound, &n);
	*ret_n_before = 0;
	if (r < 0 || n == 0)
		return r;
	if (run->ops->count_in_block)
		return run->ops->count_in_block(run, n - 1, bound, ret_n_before);
	return seek_bound(run, false, run_block_start(run, n - 1), run_block_start(run, n), bound,
			  ret_n_before);
}

int run_open_subrun(const struct layout *layout, struct run *run, uint64_t begin, uint64_t end,
		    struct run **ret_subrun)
{
	assert(begin < end && end <= run->n_items);
	return run->ops->open_subrun(layout, run, begin, end, ret_subrun);
}

uint64_t run_block_start(const struct run *run, uint64_t i)
{
	return i == run->n_blocks ? run->n_items : run->ops->block_start(run, i);
}

int run_read(struct run *run, uint64_t first, uint64_t n, void *items, struct digest *ret_digest)
{
	return run->ops->read(run, first, n, items, ret_digest);
}

int run_read_item(struct run *run, uint64_t i, void *item)
{
	return run->ops->read_item(run, i, item);
}

void run_item_key(const struct run *run, const struct layout *layout, const void *item, void *key)
{
	if (layout_has_elements(layout) && !run_has_records(run, layout))
		layout_key_from_prefix(layout, element_get(item, layout->element_nbytes, 0), key);
	else
		layout_item_key(layout, item, key);
}

bool run_has_records(const struct run *run, const struct layout *layout)
{
	return run_may_have_duplicates(run) || (!run_is_resident(run) && !layout->stores_elements);
}

void run_discard_before(struct run *run, uint64_t end)
{
	if (run->ops->discard_before)
		run->ops->discard_before(run, end);
}

void run_discard_slice(struct run *run, const struct slice *slice)
{
	if (run->ops->discard_slice)
		run->ops->discard_slice(run, slice);
}

/* --- the origin of a run --- */

void run_origin_add(struct run_origin *total, const struct run_origin *addend)
{
	record_totals_add(&total->totals, addend->totals);
	total->nbytes += addend->nbytes;
	if (addend->max_record_nbytes > total->max_record_nbytes)
		total->max_record_nbytes = addend->max_record_nbytes;
}

/* --- lists of runs --- */

int run_list_add(struct run_list *list, struct run *run)
{
	if (!array_reserve(&list->runs, &list->n_allocated, list->n + 1, sizeof(struct run *))) {
		run_close(run);
		return fail(-ENOMEM, "no memory for a list of %zu runs", list->n + 1);
	}
	list->runs[list->n++] = run;
	return 0;
}

void run_list_replace(struct run_list *list, size_t first, size_t n, struct run *run)
{
	struct run **slot = list->runs + first;
	const size_t n_new = run ? 1 : 0;

	for (size_t i = 0; i < n; i++)
		run_close(slot[i]);
	memmove(slot + n_new, slot + n, (list->n - first - n) * sizeof *slot);
	if (run)
		*slot = run;
	list->n -= n - n_new;
}

size_t run_list_n_spilled(const struct run_list *list)
{
	return list->n - runs_n_resident(list->runs, list->n);
}

uint64_t run_list_n_stored_blocks(const struct run_list *list)
{
	uint64_t n_blocks = 0;

	for (size_t i = 0; i < list->n; i++)
		if (!run_is_resident(list->runs[i]))
			n_blocks += list->runs[i]->n_blocks;
	return n_blocks;
}

void run_list_free(struct run_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		run_close(list->runs[i]);
	free(list->runs);
	*list = (struct run_list){ 0 };
}
