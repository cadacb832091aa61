/*
 * passes.c - merge neighbouring runs into fewer and longer spilled runs
 *
 * When more runs are spilled than can be merged at once (plan.fan_in), some are merged first. Each
 * merge takes neighbours, so that the result can replace them in the order of ties. It takes the
 * neighbours with the fewest items, to move few items. A merge of fan_in runs reduces the number of
 * runs by fan_in - 1. Only the first merge has fewer runs, because runs are shortest then (Knuth,
 * The Art of Computer Programming, vol. 3, 5.4.9). Example, 8 runs of length 1 and a fan-in of 4:
 *
 *	1 1 1 1 1 1 1 1		8 = 4 + 1 + 3: the first merge takes 2 runs, the others 4
 *	  2   1 1 1 1 1 1	moved: 2
 *	  2     4     1 1	moved: 4; 4 runs are left for the final merge
 *
 * Runs are also merged during run generation, if the input turns out to be so long that the index
 * of its blocks does not fit its memory. The blocks of the new runs are four times as long, so a
 * record takes part in few such merges.
 */
#include "src/merge/merge.h"

#include "io/spill/run_file.h"
#include "src/base/int_math.h"

static int write_run(void *context, const struct merged_window *merged)
{
	/* Windows are ordered by their numbers. There are less than 2^24 partitions. */
	return run_file_write(context, (uint64_t)merged->partition << 40 | merged->number,
			      merged->items, merged->packed_nbytes, merged->n_items,
			      merged->first_keys);
}

static int merge_into_file(const struct job *job, struct run *const *runs, size_t n,
			   uint64_t memory_nbytes, struct run_file *file, uint32_t block_n_items,
			   struct merge_result *ret_result)
{
	const struct sink sink = {
		.context = file,
		.takes_records = layout_is_key_only(job->layout) && !job->layout->stores_elements,
		.takes_packed = job->plan.packs_on_device,
		.block_n_items = block_n_items,
		.stage = STAGE_SPILL,
		.item_nbytes = job->layout->item_nbytes,
		.write = write_run,
		.positions_per_partition = true,
		.is_spilled_run = true,
	};
	const int r = merge_in_partitions(job, runs, (uint32_t)n, memory_nbytes, &sink, ret_result);

	if (r == 0)
		run_file_finish(file);
	return r;
}

int merge_to_run(const struct job *job, struct run_list *list, size_t first, size_t n,
		 uint64_t memory_nbytes, struct record_totals *totals)
{
	const struct layout *layout = job->layout;
	const uint32_t block_n_items =
		run_file_block_n_items(job->plan.block_nbytes, (uint32_t)layout->resident_nbytes);
	struct merge_result result;
	struct run_file *file;
	struct run *run;
	int r;

	r = run_file_open(job->spill, job->compression, (uint32_t)layout->item_nbytes,
			  block_n_items, &file);
	if (r < 0)
		return r;
	r = merge_into_file(job, list->runs + first, n, memory_nbytes, file, block_n_items,
			    &result);
	if (r < 0) {
		run_file_close(file);
		return r;
	}
	result.totals.written = (struct digest){ 0 }; /* to a run, not to the output */
	record_totals_add(totals, result.totals);
	r = run_open_spilled(file, SPILLED_ITEMS, &run);
	if (r < 0)
		return r;
	run->origin.totals = result.totals;
	for (size_t i = first; i < first + n; i++)
		run_origin_add(&run->origin, &list->runs[i]->origin);
	if (job->checkpoint_hooks)
		r = job->checkpoint_hooks->on_run_spilled(job->checkpoint_hooks->context, list,
							  first, n, run);
	run_list_replace(list, first, n, run);
	return r;
}

/*
 * Return the first of the n neighbours with the fewest items among the spilled runs, which come
 * first in the list. On ties, prefer the first from `start` on: then runs that stay short in spite
 * of merges (--limit) take turns, instead of the same runs being merged again and again.
 */
static size_t find_smallest_runs(const struct run_list *list, size_t n_spilled, size_t n,
				 size_t start)
{
	uint64_t sum = runs_n_items(list->runs, n), smallest = sum;
	size_t best = 0;

	for (size_t first = 1; first + n <= n_spilled; first++) {
		sum += list->runs[first + n - 1]->n_items;
		sum -= list->runs[first - 1]->n_items;
		if (sum < smallest || (sum == smallest && best < start && first >= start)) {
			smallest = sum;
			best = first;
		}
	}
	return best;
}

/* Return the maximum number of merges that any record of the runs went through. */
static uint32_t highest_level(struct run *const *runs, size_t n)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < n; i++)
		if (runs[i]->level > highest)
			highest = runs[i]->level;
	return highest;
}

/* Call merge_to_run(), and count the merge in the level of the run. */
static int merge_neighbours(const struct job *job, struct run_list *list, size_t first, size_t n,
			    uint64_t memory_nbytes, struct record_totals *totals)
{
	const uint32_t level = highest_level(list->runs + first, n) + 1;
	int r = merge_to_run(job, list, first, n, memory_nbytes, totals);

	if (r == 0)
		list->runs[first]->level = level;
	return r;
}

int merge_shrink_index(struct job *job, struct run_list *list, uint64_t memory_nbytes,
		       struct record_totals *totals)
{
	struct plan *plan = &job->plan;
	uint64_t n_blocks;

	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN)
		return 0;
	while ((n_blocks = run_list_n_stored_blocks(list)) > plan->max_stored_blocks) {
		if (!plan_lengthen_blocks(&job->plan_request, plan))
			return plan_check_unknown_input(&job->plan_request, plan,
							n_blocks * plan->block_nbytes);
		for (size_t i = 0; i < run_list_n_spilled(list); i++) {
			const size_t n = u64_min(run_list_n_spilled(list) - i, plan->fan_in);
			int r = merge_neighbours(job, list, i, n, memory_nbytes, totals);

			if (r < 0)
				return r;
		}
	}
	return 0;
}

int merge_passes(const struct job *job, struct run_list *list, uint64_t memory_nbytes,
		 struct record_totals *totals, uint32_t *ret_n_passes)
{
	const size_t fan_in = job->plan.fan_in;
	size_t n_spilled = run_list_n_spilled(list), next = 0;

	for (; n_spilled > fan_in; n_spilled = run_list_n_spilled(list)) {
		/* Full merges remove fan_in - 1 runs each; the first removes the remainder. */
		const size_t excess = (n_spilled - fan_in) % (fan_in - 1);
		const size_t n = excess ? excess + 1 : fan_in;
		const size_t first = find_smallest_runs(list, n_spilled, n, next);
		int r = merge_neighbours(job, list, first, n, memory_nbytes, totals);

		if (r < 0)
			return r;
		next = first + 1;
	}
	*ret_n_passes = highest_level(list->runs, list->n);
	return 0;
}
