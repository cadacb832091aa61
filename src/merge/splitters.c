/*
 * splitters - where the ranges of a merge begin (see splitters.h)
 *
 * The blocks of all runs are in the order of (first key, run, number in the run), though nobody has
 * put them into it. Of this sequence the last block is selected (multiseq_selection.h) before which there
 * are at most so many items.
 */
#include "src/merge/splitters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/merge/resident_split.h"
#include "src/run/multiseq_selection.h"

/* A block by its place in the order of all blocks. */
struct place {
	code_t key;
	uint32_t run;
	uint64_t block;
};

struct splitters {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	bool at_keys;
	struct selection blocks;
	struct resident_cuts residents;
	void *key; /* of the splitter; layout_key_nbytes() */
};

/* How many items are in blocks before the place; `before` is set to how many blocks are. */
static uint64_t count_before(struct splitters *splitters, const struct place *place)
{
	struct selection *blocks = &splitters->blocks;
	uint64_t n_items = 0;

	for (uint32_t i = 0; i < splitters->n_runs; i++) {
		const struct run *run = splitters->runs[i];

		blocks->before[i] = i == place->run ?
					    place->block :
					    run_n_blocks_before(run, blocks->lo[i], blocks->hi[i],
								place->key, i < place->run);
		n_items += run_block_start(run, blocks->before[i]);
	}
	return n_items;
}

/* The last block before which there are at most n_items. */
static struct place find_place(struct splitters *splitters, uint64_t n_items)
{
	struct selection *blocks = &splitters->blocks;
	struct place place, found = { 0 };

	for (uint32_t i = 0; i < splitters->n_runs; i++) {
		blocks->lo[i] = 0;
		blocks->hi[i] = run_n_blocks(splitters->runs[i]);
	}
	while (selection_draw(blocks, &place.run, &place.block)) {
		place.key = run_first_key(splitters->runs[place.run], place.block);
		if (count_before(splitters, &place) > n_items) {
			selection_go_before(blocks);
			continue;
		}
		selection_go_to(blocks);
		blocks->lo[place.run]++;
		found = place;
	}
	return found;
}

/* Cut the runs at the key: equal items of runs before number `run` come before it. */
static int cut_at_key(struct splitters *splitters, const void *key, uint32_t run,
		      uint64_t *ret_cuts)
{
	int r = resident_cuts_find(&splitters->residents, key, run, ret_cuts);

	for (uint32_t i = 0; i < splitters->n_runs && r == 0; i++)
		if (!run_is_resident(splitters->runs[i]))
			r = run_cut(splitters->runs[i],
				    &(struct run_cut_at){ splitters->job->layout, key, i < run },
				    &ret_cuts[i]);
	return r;
}

/*
 * Cut the runs at a block: equal items of earlier runs come before it, those of later ones behind
 * it; at keys, all behind it. Where blocks do not say all of their first keys, all items that begin
 * like it come behind.
 */
static int cut_at(struct splitters *splitters, const struct place *place, uint64_t *ret_cuts)
{
	const struct layout *layout = splitters->job->layout;
	const bool is_exact = !splitters->at_keys && layout_key_nbytes(layout) <= sizeof(code_t);
	const uint32_t run = is_exact ? place->run : 0;
	const code_t begins = splitters->at_keys ? layout_first_alike(layout, place->key) :
						   place->key;
	int r;

	memset(splitters->key, 0, layout_key_nbytes(layout));
	layout_begin_key(layout, begins, splitters->key);
	r = cut_at_key(splitters, splitters->key, run, ret_cuts);
	if (r == 0 && is_exact)
		ret_cuts[run] = run_block_start(splitters->runs[run], place->block);
	return r;
}

/* What is not in order, which shows when it is read, may not be cut in order either. */
static void keep_order(const uint64_t *before, uint64_t *cuts, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (cuts[i] < before[i])
			cuts[i] = before[i];
}

static int cut_all(struct splitters *splitters, uint32_t n_ranges, void *const *ret_keys,
		   uint64_t *cuts)
{
	const uint32_t n_runs = splitters->n_runs;
	uint64_t n_items = 0;
	int r = 0;

	memset(cuts, 0, n_runs * sizeof *cuts);
	for (uint32_t i = 0; i < n_runs; i++) {
		cuts[(size_t)n_ranges * n_runs + i] = run_n_items(splitters->runs[i]);
		n_items += run_n_items(splitters->runs[i]);
	}
	if (n_items > splitters->job->limit)
		n_items = splitters->job->limit;
	for (uint32_t range = 1; range < n_ranges && r == 0; range++) {
		const uint64_t n_wanted = (uint64_t)((uint128_t)n_items * range / n_ranges);
		const struct place place = find_place(splitters, n_wanted);

		r = cut_at(splitters, &place, &cuts[(size_t)range * n_runs]);
		keep_order(&cuts[(size_t)(range - 1) * n_runs], &cuts[(size_t)range * n_runs],
			   n_runs);
		if (r == 0 && ret_keys)
			memcpy(ret_keys[range], splitters->key,
			       layout_key_nbytes(splitters->job->layout));
	}
	return r;
}

static int open_splitters(struct splitters *splitters)
{
	const struct job *job = splitters->job;
	const uint32_t n_runs = splitters->n_runs;
	int r = selection_open(n_runs, &splitters->blocks);

	if (r < 0)
		return r;
	splitters->key = malloc(layout_key_nbytes(job->layout));
	if (!splitters->key)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	return resident_cuts_open(job, splitters->runs, n_runs, &splitters->residents);
}

static void close_splitters(struct splitters *splitters)
{
	resident_cuts_close(&splitters->residents);
	selection_close(&splitters->blocks);
	free(splitters->key);
}

int splitters_cut(const struct job *job, struct run *const *runs, uint32_t n_runs,
		  uint32_t n_ranges, bool at_keys, void *const *ret_keys, uint64_t *ret_cuts)
{
	struct splitters splitters = {
		.job = job, .runs = runs, .n_runs = n_runs, .at_keys = at_keys
	};
	int r = open_splitters(&splitters);

	if (r == 0)
		r = cut_all(&splitters, n_ranges, ret_keys, ret_cuts);
	close_splitters(&splitters);
	return r;
}

int splitters_cut_at(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     const void *const *keys, uint32_t n, uint64_t *ret_cuts)
{
	struct splitters splitters = { .job = job, .runs = runs, .n_runs = n_runs };
	int r = open_splitters(&splitters);

	memset(ret_cuts, 0, (size_t)n * n_runs * sizeof *ret_cuts);
	for (uint32_t k = 0; k < n && r == 0; k++) {
		uint64_t *cuts = &ret_cuts[(size_t)k * n_runs];

		if (keys[k])
			r = cut_at_key(&splitters, keys[k], 0, cuts);
		if (k > 0)
			keep_order(cuts - n_runs, cuts, n_runs);
	}
	close_splitters(&splitters);
	return r;
}
