/*
 * merge.c - merge k sorted runs into one sorted sequence, window by window
 *
 * Runs are longer than memory, so they are merged piece by piece. A piece is a window: all items
 * between two points of the merged order. The caller's thread cuts one window after the other out
 * of all runs, a device merges each of them, and writers give them to the sink:
 *
 *	forecast -> read and cut -> merge, drop duplicates, decode -> write
 *	|_ the caller's thread _|   |______ device queue _________|   |_ writer threads _|
 *
 * so that reading, merging and writing overlap. At most plan.n_windows are in flight (window.h).
 *
 * Where a window ends. A stored run is read in blocks, and the first key of every block of every
 * run is in memory. A merge needs the blocks in the order of their first keys (on ties: of the
 * earlier run first), so the whole schedule of reads is known before the first block is read: this
 * is called forecasting (Knuth, The Art of Computer Programming, vol. 3, 5.4.9). It also tells
 * where a window can end. Take blocks in this order as long as they hold no more items than a
 * window should have. The first key of the next block is the splitter: all items below it are in
 * the blocks taken so far, because every other block begins at the splitter or above it. So cut all
 * runs at the splitter and merge what is before it. Example, with windows of 9 items:
 *
 *	run 0   [ 1 4 6 | 8 8 9 | 9 9 9 ]
 *	run 1   [ 2 3 | 3 5 7 8 | 8 8 9 ]
 *
 *	blocks in order   0:[1..]  1:[2..]  1:[3..]  0:[8..]  1:[8..]  0:[9..]
 *	items so far         3        5        9       12
 *
 * The first three blocks make a window; the splitter is the 8 of run 0. What comes before it is 1 4
 * 6 of run 0 and 2 3 3 5 7 of run 1. The 8 of run 1 does not (see below), and is left over:
 *
 *	window 0   1 2 3 3 4 5 6 7			left over: 8 of run 1
 *	window 1   8 8 8 8 8 9 9 9 9 9			from 0:[8..] 1:[8..] 0:[9..]
 *
 * Less than a block of each run is left over, so a window never needs more room than its share of
 * new items and one block of each run. Nothing is read before it is needed, and a run is only
 * searched for a cut where it has been read.
 *
 * Why the merge is stable. Runs are consecutive parts of the input, in its order, and each run is
 * stable. The tie rule does the rest: of two items with equal keys, the one of the earlier run
 * comes first. Every step follows it: merging compares (key, run); the forecast orders blocks by
 * (first key, run); and a splitter is not a key but a point (key, run): equal items of earlier runs
 * come before it and those of later runs after it. In the example the five 8s come out as 8 8 of
 * run 0, then 8 8 8 of run 1, although the first 8 of run 1 was read a window earlier. Merging
 * neighbouring runs gives a run that takes their place, so the rule holds over several passes; and
 * partitions (partitions.c) are cut by the same rule, so it does not matter how many there are.
 */
#include "src/merge/merge.h"

#include <errno.h>
#include <inttypes.h>

#include "src/base/diagnostics.h"
#include "src/base/thread_pool.h"
#include "src/merge/window.h"

struct merge_pipeline {
	const struct job *job;
	const struct sink *sink;
	struct window_pool pool;
	struct window_order order;
	struct bounded_queue *queue; /* windows that are being merged, in order */
	struct thread_group writers;

	/* Of the caller's thread */
	uint64_t n_until_limit; /* items that the limit leaves */
	uint64_t next_position; /* items in earlier windows */
};

/* Make all threads of the merge stop. The merge returns the first error. */
static void merge_pipeline_fail(struct merge_pipeline *merge, int r)
{
	window_order_fail(&merge->order, r);
	window_pool_fail(&merge->pool, r);
	bounded_queue_fail(merge->queue, r);
	if (merge->sink->cancel)
		merge->sink->cancel(merge->sink->context);
}

static int write_window(struct merge_pipeline *merge, struct window *window)
{
	const struct sink *sink = merge->sink;
	struct merged_window merged = {
		.number = window->number,
		.partition = sink->partition,
		.items = window->host,
		.first_keys = window->first_keys,
		.packed_nbytes = window->packed_nbytes,
	};
	struct span span = stats_begin(sink->stage, window->number);
	int r = window_finish(window);

	if (r == 0)
		r = window_order_assign(&merge->order, window, &merged.position);
	stats_end_wait(merge->job->stats, span);
	if (r < 0)
		return r;
	stats_skip(merge->job->stats, sink->stage,
		   (window->n_items - window->result.n) * sink->item_nbytes);
	if (window->result.n == 0)
		return 0;
	merged.position += sink->base_position;
	merged.n_items = window->result.n;
	merged.digest = window->result.digest;
	span = stats_begin(sink->stage, window->number);
	r = sink->write(sink->context, &merged);
	stats_end(merge->job->stats, span, merged.n_items * sink->item_nbytes);
	return r;
}

static void *writer_main(void *argument)
{
	struct merge_pipeline *merge = argument;
	void *window;
	int r;

	while ((r = bounded_queue_pop(merge->queue, &window)) == 0) {
		r = write_window(merge, window);
		if (r < 0)
			break;
		window_release(window);
	}
	if (r != -ENODATA)
		merge_pipeline_fail(merge, r);
	return NULL;
}

/* Subtract the items that the window keeps from the limit. With -u, wait for their number. */
static int count_towards_limit(struct merge_pipeline *merge, struct window *window)
{
	uint64_t n = window->n_items;
	int r = 0;

	if (merge->n_until_limit == UINT64_MAX)
		return 0;
	if (merge->job->unique) {
		r = window_wait_merged(window);
		n = window->result.n;
	}
	merge->n_until_limit -= n < merge->n_until_limit ? n : merge->n_until_limit;
	return r;
}

/* Queue the merge of the window, then the window for the writers. Empty windows are dropped. */
static int submit(struct merge_pipeline *merge, struct window *window, uint64_t *n_submitted)
{
	int r;

	if (window->n_items == 0) {
		window_release(window);
		return 0;
	}
	if (window->n_items > merge->pool.plan.capacity_records)
		return fail(-EIO,
			    "internal error: a window of %" PRIu64 " records has room for %" PRIu64
			    "; the output was not written",
			    window->n_items, merge->pool.plan.capacity_records);
	window->number = (*n_submitted)++;
	window->limit = merge->n_until_limit;
	r = window_merge(window);
	if (r == 0)
		r = count_towards_limit(merge, window);
	return r == 0 ? bounded_queue_push(merge->queue, window) : r;
}

/* Fetch the next window and submit it. */
static int feed_window(struct merge_pipeline *merge, struct window_input *input,
		       struct window *window, uint64_t *n_submitted, bool *ret_last)
{
	int r;

	window_align(window, merge->next_position);
	r = window_input_next(input, window, ret_last);
	if (r < 0)
		return r;
	merge->next_position += window->n_items;
	return submit(merge, window, n_submitted);
}

/* Cut one window after the other. The previous one is held until the next has been fetched. */
static int feed(struct merge_pipeline *merge, struct window_input *input)
{
	struct window *previous = NULL;
	uint64_t n_submitted = 0;
	bool last = false;

	while (!last) {
		struct span span = stats_begin(STAGE_FETCH, n_submitted);
		struct window *window;
		int r = window_pool_acquire(&merge->pool, &window);

		stats_end_wait(merge->job->stats, span);
		if (r == 0)
			r = cancellation_check(merge->job->cancellation);
		if (r == 0)
			r = feed_window(merge, input, window, &n_submitted, &last);
		if (r < 0)
			return r;
		if (previous)
			window_release(previous);
		previous = window;
	}
	return 0;
}

static int merge_pipeline_open(struct merge_pipeline *merge)
{
	int r = window_order_open(&merge->order);

	if (r == 0 && bounded_queue_open(merge->pool.plan.n_windows, &merge->queue) < 0)
		r = fail(-ENOMEM, "no memory for a merge of %u runs", merge->pool.n_runs);
	if (r == 0)
		r = window_pool_open(&merge->pool);
	return r < 0 ? r :
		       thread_group_start(&merge->writers, merge->job->plan.n_writers, writer_main,
					  merge, "a writer thread");
}

/* Close the merge. After an error, writers may still be waiting for the queue. */
static void merge_pipeline_close(struct merge_pipeline *merge)
{
	if (merge->writers.n_threads)
		bounded_queue_finish(merge->queue);
	thread_group_join(&merge->writers);
	window_pool_close(&merge->pool);
	bounded_queue_close(merge->queue);
	window_order_close(&merge->order);
}

/* Feed the writers and wait for them. */
static int merge_pipeline_run(struct merge_pipeline *merge, struct window_input *input)
{
	int r = feed(merge, input);

	if (r < 0)
		merge_pipeline_fail(merge, r);
	else
		bounded_queue_finish(merge->queue);
	thread_group_join(&merge->writers);
	return merge->order.error;
}

/* Set the results of the windows and of reading. */
static void collect_result(const struct merge_pipeline *merge, const struct window_input *input,
			   struct merge_result *ret_result)
{
	const struct job *job = merge->job;

	if (merge->sink->edges)
		merge_edges_append(job->layout, false, merge->sink->edges, &merge->order.edges);
	*ret_result = merge->order.result;
	record_totals_add(&ret_result->totals, window_input_totals(input));
	stats_add_device(job->stats, job->devices[job->merge_device].stats_index,
			 &(struct device_totals){
				 .n_partitions = 1,
				 .merged_nbytes =
					 runs_n_items(merge->order.runs, merge->order.n_runs) *
					 job->layout->resident_nbytes,
			 });
}

int merge_runs(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       uint64_t memory_nbytes, const struct sink *sink, struct merge_result *ret_result)
{
	const uint32_t n_spilled = n_runs - (uint32_t)runs_n_resident(runs, n_runs);
	const bool reads = runs_n_peer_accessible(job, runs, n_runs) < n_runs;
	struct merge_pipeline merge = {
		.job = job,
		.sink = sink,
		.pool = { .job = job,
			  .sink = sink,
			  .n_runs = n_runs,
			  .has_input = reads,
			  .has_buckets = n_runs > 0 && runs[0]->bucket_starts },
		.order = { .job = job,
			   .runs = runs,
			   .n_runs = n_runs,
			   .discards_runs = !sink->is_spilled_run },
		.n_until_limit = job->limit,
	};
	struct window_plan *plan = &merge.pool.plan;
	struct window_input *input = NULL;
	int r;

	plan_windows(&job->plan, &job->plan_request, memory_nbytes, runs_n_items(runs, n_runs),
		     n_runs - n_spilled, n_spilled, plan);
	r = window_input_open(job, runs, n_runs, plan, &input);
	if (r < 0)
		return r;
	r = merge_pipeline_open(&merge);
	if (r == 0)
		r = merge_pipeline_run(&merge, input);
	if (r == 0)
		collect_result(&merge, input, ret_result);
	window_input_close(input);
	merge_pipeline_close(&merge);
	return r;
}
