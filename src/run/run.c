/*
 * run - a sorted sequence of items, wherever it lives (see run.h)
 */
#include "src/run/run.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/run/run_ops.h"

int run_set_stride(struct run *run, uint64_t stride, struct run_strides *strides)
{
	strides->stride = stride;
	run->n_blocks = run->n_items / stride + (run->n_items % stride != 0);
	free(strides->first_keys);
	strides->first_keys = malloc((run->n_blocks + 1) * sizeof *strides->first_keys);
	if (!strides->first_keys)
		return fail(-ENOMEM, "no memory for the first keys of %" PRIu64 " blocks",
			    run->n_blocks);
	return 0;
}

void run_close(struct run *run)
{
	if (run)
		run->kind->close(run);
}

void run_remove(struct run *run)
{
	if (run && run->kind->give_back)
		run->kind->give_back(run);
	run_close(run);
}

void run_set_level(struct run *run, uint32_t level)
{
	run->level = level;
}

uint32_t run_level(const struct run *run)
{
	return run->level;
}

void run_set_origin(struct run *run, struct ledger origin)
{
	run->origin = origin;
}

struct ledger run_origin(const struct run *run)
{
	return run->origin;
}

bool run_is_resident(const struct run *run)
{
	return run->kind->memory;
}

struct run_file *run_stored_file(const struct run *run)
{
	return run->kind->file ? run->kind->file(run) : NULL;
}

uint64_t run_n_items(const struct run *run)
{
	return run->n_items;
}

uint64_t runs_n_items(struct run *const *runs, size_t n)
{
	uint64_t n_items = 0;

	for (size_t i = 0; i < n; i++)
		n_items += run_n_items(runs[i]);
	return n_items;
}

size_t runs_n_resident(struct run *const *runs, size_t n)
{
	size_t n_resident = 0;

	for (size_t i = 0; i < n; i++)
		n_resident += run_is_resident(runs[i]);
	return n_resident;
}

size_t runs_n_reached(const struct job *job, struct run *const *runs, size_t n)
{
	size_t n_reached = 0;

	for (size_t i = 0; i < n; i++)
		n_reached += run_is_reached(job, runs[i]);
	return n_reached;
}

uint64_t run_n_blocks(const struct run *run)
{
	return run->n_blocks;
}

const void *run_memory(const struct run *run)
{
	return run->kind->memory ? run->kind->memory(run) : NULL;
}

uint32_t run_worker(const struct run *run)
{
	return run->kind->worker(run);
}

bool run_is_reached(const struct job *job, const struct run *run)
{
	return run_is_resident(run) && job_reaches(job, run_worker(run));
}

int run_sample(struct run *run, struct lane *lane, uint64_t stride)
{
	return run->kind->sample ? run->kind->sample(run, lane, stride) : 0;
}

code_t run_first_key(const struct run *run, uint64_t i)
{
	return run->kind->first_key(run, i);
}

uint64_t run_n_blocks_before(const struct run *run, uint64_t lo, uint64_t hi, code_t key,
			     bool or_equal)
{
	while (lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		const code_t first = run_first_key(run, i);

		if (first < key || (or_equal && first == key))
			lo = i + 1;
		else
			hi = i;
	}
	return lo;
}

uint64_t run_seek(const struct run *run, code_t key)
{
	const uint64_t n = run_n_blocks_before(run, 0, run->n_blocks, key, false);

	return n ? n - 1 : 0;
}

/* Room for an item and a key, one behind the other. */
static int compare_item(struct run *run, uint64_t i, const struct run_cut_at *at, char *room,
			int *ret_order)
{
	char *key = room + at->layout->item_nbytes;
	int r = run_read_item(run, i, room);

	if (r < 0)
		return r;
	run_item_key(run, at->layout, room, key);
	*ret_order = layout_compare_keys(at->layout, key, at->key);
	return 0;
}

/* Of the blocks [lo, hi), which say too little of their first keys, how many begin before it. */
static int seek_whole(struct run *run, uint64_t lo, uint64_t hi, const struct run_cut_at *at,
		      uint64_t *ret_n)
{
	char *room = malloc(at->layout->item_nbytes + layout_key_nbytes(at->layout));
	int r = room ? 0 : fail(-ENOMEM, "no memory for a record");

	while (r == 0 && lo < hi) {
		const uint64_t i = lo + (hi - lo) / 2;
		int order = 0;

		r = compare_item(run, run_block_start(run, i), at, room, &order);
		if (order < 0 || (order == 0 && at->behind_equals))
			lo = i + 1;
		else
			hi = i;
	}
	free(room);
	*ret_n = lo;
	return r;
}

int run_cut(struct run *run, const struct run_cut_at *at, uint64_t *ret_cut)
{
	const code_t beginning = layout_key_beginning(at->layout, at->key);
	const bool is_whole = layout_key_nbytes(at->layout) <= sizeof(code_t);
	uint64_t n = run_n_blocks_before(run, 0, run->n_blocks, beginning,
					 is_whole && at->behind_equals);
	int r = 0;

	if (!is_whole)
		r = seek_whole(run, n, run_n_blocks_before(run, n, run->n_blocks, beginning, true),
			       at, &n);
	if (r < 0)
		return r;
	*ret_cut = 0;
	return n > 0 ? run->kind->cut_block(run, n - 1, at, ret_cut) : 0;
}

int run_open_part(const struct layout *layout, struct run *run, uint64_t begin, uint64_t end,
		  struct run **ret_part)
{
	assert(begin < end && end <= run->n_items);
	return run->kind->open_part(layout, run, begin, end, ret_part);
}

uint64_t run_block_start(const struct run *run, uint64_t i)
{
	return i == run->n_blocks ? run->n_items : run->kind->block_start(run, i);
}

int run_read(struct run *run, uint64_t first, uint64_t n, void *items, struct digest *ret_digest)
{
	return run->kind->read(run, first, n, items, ret_digest);
}

int run_read_item(struct run *run, uint64_t i, void *item)
{
	return run->kind->read_item(run, i, item);
}

int run_read_first_item(struct run *run, uint64_t i, void *item)
{
	return run_read_item(run, run_block_start(run, i), item);
}

void run_item_key(const struct run *run, const struct layout *layout, const void *item, void *key)
{
	if (layout_has_elements(layout) && !run_holds_records(run, layout))
		layout_begin_key(layout, element_get(item, layout->element_nbytes, 0), key);
	else
		layout_item_key(layout, item, key);
}

bool run_is_packed(const struct run *run)
{
	return run->kind->is_packed && run->kind->is_packed(run);
}

size_t run_packed_nbytes(const struct run *run, uint64_t first, uint64_t n)
{
	size_t nbytes = 0;

	for (uint64_t i = first; i < first + n; i++)
		nbytes += run->kind->packed_nbytes(run, i);
	return nbytes;
}

int run_read_packed(struct run *run, uint64_t first, uint64_t n, void *packed)
{
	return run->kind->read_packed(run, first, n, packed);
}

int run_fail_packed(const struct run *run, uint64_t i)
{
	return run->kind->fail_packed(run, i);
}

bool run_holds_records(const struct run *run, const struct layout *layout)
{
	return run_holds_duplicates(run) || (!run_is_resident(run) && !layout->stores_elements);
}

bool run_holds_duplicates(const struct run *run)
{
	return run->kind->is_as_it_came;
}

void run_discard_before(struct run *run, uint64_t end)
{
	if (run->kind->discard_before)
		run->kind->discard_before(run, end);
}

void run_discard_between(struct run *run, uint64_t first, uint64_t end)
{
	if (run->kind->discard_between)
		run->kind->discard_between(run, first, end);
}

void run_discard_slice(struct run *run, const struct slice *slice)
{
	if (run->kind->discard_slice)
		run->kind->discard_slice(run, slice);
}
