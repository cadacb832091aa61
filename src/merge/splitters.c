/*
 * splitters - where the ranges of a merge begin (see splitters.h)
 *
 * The blocks of all runs are in the order of (first key, run, number in the run), though nobody has
 * put them into it. Of this sequence the last block is selected (multiseq_selection.h) before
 * which there are at most so many items.
 */
#include "src/merge/splitters.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/merge/resident_split.h"
#include "src/run/multiseq_selection.h"

/* A block by its place in the order of all blocks. */
struct block_position {
	encoded_key_t key;
	uint32_t run;
	uint64_t block;
};

struct splitters {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	bool at_key_boundaries;
	struct selection selection;
	struct resident_split resident_split;
	void *key; /* of the splitter; layout_key_nbytes() */
};

/* How many items are in blocks before the place; `before` is set to how many blocks are. */
static uint64_t count_items_before_block(struct splitters *splitters,
					 const struct block_position *position)
{
	struct selection *selection = &splitters->selection;
	uint64_t n_items = 0;

	for (uint32_t i = 0; i < splitters->n_runs; i++) {
		const struct run *run = splitters->runs[i];

		selection->n_before[i] =
			i == position->run ?
				position->block :
				run_n_blocks_before(run, selection->lo[i], selection->hi[i],
						    position->key, i < position->run);
		n_items += run_block_start(run, selection->n_before[i]);
	}
	return n_items;
}

/* The last block before which there are at most n_items. */
static struct block_position find_splitter_block(struct splitters *splitters, uint64_t n_items)
{
	struct selection *selection = &splitters->selection;
	struct block_position position, best = { 0 };

	for (uint32_t i = 0; i < splitters->n_runs; i++) {
		selection->lo[i] = 0;
		selection->hi[i] = run_n_blocks(splitters->runs[i]);
	}
	while (selection_draw(selection, &position.run, &position.block)) {
		position.key = run_first_key(splitters->runs[position.run], position.block);
		if (count_items_before_block(splitters, &position) > n_items) {
			selection_set_upper(selection);
			continue;
		}
		selection_set_lower(selection);
		selection->lo[position.run]++;
		best = position;
	}
	return best;
}

/* Cut the runs at the key: equal items of runs before number `run` come before it. */
static int cut_runs_at_key(struct splitters *splitters, const void *key, uint32_t run,
			   uint64_t *ret_cuts)
{
	int r = resident_split_find(&splitters->resident_split, key, run, ret_cuts);

	for (uint32_t i = 0; i < splitters->n_runs && r == 0; i++)
		if (!run_is_resident(splitters->runs[i]))
			r = run_count_before(splitters->runs[i],
					     &(struct run_bound){ splitters->job->layout, key,
								  i < run },
					     &ret_cuts[i]);
	return r;
}

/*
 * Cut the runs at a block: equal items of earlier runs come before it, those of later ones behind
 * it; at keys, all behind it. Where blocks do not say all of their first keys, all items that begin
 * like it come behind.
 */
static int cut_runs_at_block(struct splitters *splitters, const struct block_position *position,
			     uint64_t *ret_cuts)
{
	const struct layout *layout = splitters->job->layout;
	const bool is_exact = !splitters->at_key_boundaries &&
			      layout_key_nbytes(layout) <= sizeof(encoded_key_t);
	const uint32_t run = is_exact ? position->run : 0;
	const encoded_key_t key_prefix = splitters->at_key_boundaries ?
						 layout_first_equal(layout, position->key) :
						 position->key;
	int r;

	memset(splitters->key, 0, layout_key_nbytes(layout));
	layout_key_from_prefix(layout, key_prefix, splitters->key);
	r = cut_runs_at_key(splitters, splitters->key, run, ret_cuts);
	if (r == 0 && is_exact)
		ret_cuts[run] = run_block_start(splitters->runs[run], position->block);
	return r;
}

/* What is not in order, which shows when it is read, may not be cut in order either. */
static void enforce_order(const uint64_t *previous, uint64_t *cuts, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (cuts[i] < previous[i])
			cuts[i] = previous[i];
}

static int cut_partitions(struct splitters *splitters, uint32_t n_partitions, uint64_t *cuts)
{
	const uint32_t n_runs = splitters->n_runs;
	uint64_t n_items = 0;
	int r = 0;

	memset(cuts, 0, n_runs * sizeof *cuts);
	for (uint32_t i = 0; i < n_runs; i++) {
		cuts[(size_t)n_partitions * n_runs + i] = run_n_items(splitters->runs[i]);
		n_items += run_n_items(splitters->runs[i]);
	}
	if (n_items > splitters->job->limit)
		n_items = splitters->job->limit;
	for (uint32_t partition = 1; partition < n_partitions && r == 0; partition++) {
		const uint64_t target_rank =
			(uint64_t)((uint128_t)n_items * partition / n_partitions);
		const struct block_position position = find_splitter_block(splitters, target_rank);

		r = cut_runs_at_block(splitters, &position, &cuts[(size_t)partition * n_runs]);
		enforce_order(&cuts[(size_t)(partition - 1) * n_runs],
			      &cuts[(size_t)partition * n_runs], n_runs);
	}
	return r;
}

static int open_splitters(struct splitters *splitters)
{
	const struct job *job = splitters->job;
	const uint32_t n_runs = splitters->n_runs;
	int r = selection_open(n_runs, &splitters->selection);

	if (r < 0)
		return r;
	splitters->key = malloc(layout_key_nbytes(job->layout));
	if (!splitters->key)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	return resident_split_open(job, splitters->runs, n_runs, &splitters->resident_split);
}

static void close_splitters(struct splitters *splitters)
{
	resident_split_close(&splitters->resident_split);
	selection_close(&splitters->selection);
	free(splitters->key);
}

int splitters_cut(const struct job *job, struct run *const *runs, uint32_t n_runs,
		  uint32_t n_partitions, bool at_key_boundaries, uint64_t *ret_cuts)
{
	struct splitters splitters = {
		.job = job, .runs = runs, .n_runs = n_runs, .at_key_boundaries = at_key_boundaries
	};
	int r = open_splitters(&splitters);

	if (r == 0)
		r = cut_partitions(&splitters, n_partitions, ret_cuts);
	close_splitters(&splitters);
	return r;
}
