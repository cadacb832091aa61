/*
 * passes - fewer and longer runs (see passes.h)
 */
#include "src/merge/passes.h"

#include "io/spill/run_file.h"
#include "src/base/diagnostics.h"
#include "src/merge/checkpoint_hooks.h"
#include "src/merge/partitions.h"

/* Of all windows of a merge: ranges first, there are fewer of them than 2^24. */
static uint64_t sequence_of(const struct merged *merged)
{
	return (uint64_t)merged->range << 40 | merged->number;
}

static int write_run(void *context, const struct merged *merged)
{
	if (merged->packed_nbytes)
		return run_file_write_packed(context, sequence_of(merged), merged->items,
					     merged->packed_nbytes, merged->n_items,
					     merged->first_keys);
	return run_file_write(context, sequence_of(merged), merged->items, merged->n_items,
			      merged->first_keys);
}

static int merge_into_file(const struct job *job, struct run *const *runs, size_t n,
			   uint64_t memory_nbytes, struct run_file *file, uint32_t block_n_items,
			   struct merge_result *ret_result)
{
	struct sink sink = {
		.context = file,
		.takes_records = layout_is_plain(job->layout) && !job->layout->stores_elements,
		.takes_packed = job->plan.packs,
		.block_n_items = block_n_items,
		.stage = STAGE_SPILL,
		.item_nbytes = job->layout->item_nbytes,
		.write = write_run,
		.counts_by_range = true,
		.is_run = true,
	};
	int r;

	if (job->keeper)
		sink.ranges = job->keeper->ranges(job->keeper->context, &sink.n_ranges);
	r = merge_in_ranges(job, runs, (uint32_t)n, memory_nbytes, &sink, ret_result);
	return r < 0 ? r : run_file_finish(file);
}

/* What the run was made of that n neighbours were merged into. */
static struct ledger add_origins(struct run *const *runs, size_t n, struct ledger of_merge)
{
	for (size_t i = 0; i < n; i++)
		ledger_add(&of_merge, run_origin(runs[i]));
	return of_merge;
}

int merge_to_run(const struct job *job, struct run_store *store, size_t first, size_t n,
		 uint64_t memory_nbytes, struct ledger *ledger)
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
	r = merge_into_file(job, store->runs + first, n, memory_nbytes, file, block_n_items,
			    &result);
	if (r < 0) {
		run_file_close(file);
		return r;
	}
	result.ledger.written = (struct digest){ 0 }; /* to a run, and not to the output */
	ledger_add(ledger, result.ledger);
	r = run_open_stored(file, STORED_ITEMS, &run);
	if (r < 0)
		return r;
	run_set_origin(run, add_origins(store->runs + first, n, result.ledger));
	if (job->keeper)
		r = job->keeper->run_stored(job->keeper->context, store, first, n, run);
	run_store_replace(store, first, n, run);
	return r;
}

/*
 * Of the stored runs (they come first in the store), the n neighbours with the fewest items; where
 * several have as few, the first from `from` on. So runs that stay as short however often they are
 * merged (--limit) take turns, and not the same ones are merged again and again.
 */
static size_t find_smallest(const struct run_store *store, size_t n_stored, size_t n, size_t from)
{
	uint64_t sum = runs_n_items(store->runs, n), smallest = sum;
	size_t at = 0;

	for (size_t first = 1; first + n <= n_stored; first++) {
		sum += run_n_items(store->runs[first + n - 1]);
		sum -= run_n_items(store->runs[first - 1]);
		if (sum < smallest || (sum == smallest && at < from && first >= from)) {
			smallest = sum;
			at = first;
		}
	}
	return at;
}

/* The most merges that any record of n runs went through. */
static uint32_t highest_level(struct run *const *runs, size_t n)
{
	uint32_t highest = 0;

	for (size_t i = 0; i < n; i++)
		if (run_level(runs[i]) > highest)
			highest = run_level(runs[i]);
	return highest;
}

int merge_passes(const struct job *job, struct run_store *store, uint64_t memory_nbytes,
		 struct ledger *ledger, uint32_t *ret_n_passes)
{
	const size_t fan_in = job->plan.fan_in;
	size_t n_stored = run_store_n_stored(store), next = 0;

	for (; n_stored > fan_in; n_stored = run_store_n_stored(store)) {
		/* Each full merge takes away fan_in - 1 runs; the first takes what those do not. */
		const size_t excess = (n_stored - fan_in) % (fan_in - 1);
		const size_t n = excess ? excess + 1 : fan_in;
		const size_t first = find_smallest(store, n_stored, n, next);
		const uint32_t level = highest_level(store->runs + first, n) + 1;
		int r = merge_to_run(job, store, first, n, memory_nbytes, ledger);

		if (r < 0)
			return r;
		run_set_level(store->runs[first], level);
		next = first + 1;
	}
	*ret_n_passes = highest_level(store->runs, store->n);
	return 0;
}
