/*
 * merge - k runs to one sorted sequence, window by window (see merge.h)
 */
#include "src/merge/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/bounded_queue.h"
#include "src/base/thread.h"
#include "src/merge/placement.h"
#include "src/merge/window_input.h"
#include "src/merge/window.h"

struct merge {
	const struct job *job;
	const struct sink *sink;
	struct window_pool pool;
	struct placement placement;
	struct ring *queue; /* of windows that are being merged, in order */
	pthread_t *writers;
	uint32_t n_writers;

	/* The caller's thread */
	uint64_t n_left;        /* until the limit */
	uint64_t n_since_point; /* items in windows */
	uint64_t n_cut; /* items in all windows so far, and those that were written before */
};

/* The first failure wins; nobody waits any longer. */
static void merge_fail(struct merge *merge, int r)
{
	placement_fail(&merge->placement, r);
	window_pool_fail(&merge->pool, r);
	ring_fail(merge->queue, r);
	if (merge->sink->cancel)
		merge->sink->cancel(merge->sink->context);
}

static int write_window(struct merge *merge, struct window *window)
{
	const struct sink *sink = merge->sink;
	struct merged merged = {
		.number = window->number,
		.items = window->host,
		.first_keys = window->first_keys,
		.packed_nbytes = window->packed_nbytes,
	};
	struct span span = stats_begin(sink->stage, window->number);
	int r = window_finish(window);

	if (r == 0)
		r = placement_settle(&merge->placement, window, &merged.position);
	stats_waited(merge->job->stats, span);
	if (r < 0)
		return r;
	stats_pass(merge->job->stats, sink->stage,
		   (window->n_items - window->found.n) * sink->item_nbytes);
	if (window->found.n == 0)
		return 0;
	merged.n_items = window->found.n;
	merged.digest = window->found.digest;
	span = stats_begin(sink->stage, window->number);
	r = sink->write(sink->context, &merged);
	stats_end(merge->job->stats, span, merged.n_items * sink->item_nbytes);
	return r;
}

static void *writer_main(void *argument)
{
	struct merge *merge = argument;
	void *window;
	int r;

	while ((r = ring_pop(merge->queue, &window)) == 0) {
		r = write_window(merge, window);
		if (r < 0)
			break;
		window_let_go(window);
	}
	if (r != -ENODATA)
		merge_fail(merge, r);
	return NULL;
}

/* With -u only the merge tells how many records the window keeps. */
static int count_towards_limit(struct merge *merge, struct window *window)
{
	uint64_t n = window->n_items;
	int r = 0;

	if (merge->n_left == UINT64_MAX)
		return 0;
	if (merge->job->unique) {
		r = window_wait_merged(window);
		n = window->found.n;
	}
	merge->n_left -= n < merge->n_left ? n : merge->n_left;
	return r;
}

/* Queue the window behind those before it; empty ones go no further. */
static int submit(struct merge *merge, struct window *window, uint64_t *n_submitted)
{
	int r;

	if (window->n_items == 0) {
		window_let_go(window);
		return 0;
	}
	if (window->n_items > merge->pool.plan.capacity_records)
		return fail(-EIO,
			    "internal error: a window of %" PRIu64 " records has room for %" PRIu64
			    "; the output was not written",
			    window->n_items, merge->pool.plan.capacity_records);
	window->number = (*n_submitted)++;
	window->limit = merge->n_left;
	r = window_merge(window);
	if (r == 0)
		r = count_towards_limit(merge, window);
	return r == 0 ? ring_push(merge->queue, window) : r;
}

/* Is the window to end so that the merge could be taken up behind it? */
static void ask_clean_cut(struct merge *merge, struct slices *fetch)
{
	if (merge->sink->point && merge->n_since_point >= merge->sink->point_interval)
		slices_ask_clean_cut(fetch);
}

/* Remember where it ends, if it does. */
static void note_clean_cut(struct merge *merge, struct window *window, const struct slices *fetch)
{
	const struct splitter *splitter = slices_clean_cut(fetch);

	merge->n_since_point += window->n_items;
	window->is_clean = merge->sink->point && splitter && window->n_items &&
			   merge->n_since_point >= merge->sink->point_interval;
	if (!window->is_clean)
		return;
	merge->n_since_point = 0;
	memcpy(window->clean_cut, splitter->key, layout_key_nbytes(merge->job->layout));
}

/* Fetch the next window, and queue its merge. */
static int feed_window(struct merge *merge, struct slices *fetch, struct window *window,
		       uint64_t *n_submitted, bool *ret_last)
{
	int r;

	ask_clean_cut(merge, fetch);
	window_align(window, merge->n_cut);
	r = slices_next(fetch,
			&(struct supply_memory){ window->buffers.in, window->out,
						 window->buffers.scratch },
			window->slices, &window->n_items, ret_last);
	if (r < 0)
		return r;
	merge->n_cut += window->n_items;
	note_clean_cut(merge, window, fetch);
	return submit(merge, window, n_submitted);
}

/* The caller's thread: cut one window after the other. */
static int feed(struct merge *merge, struct slices *fetch)
{
	struct window *previous = NULL;
	uint64_t n_submitted = 0;
	bool last = false;

	while (!last) {
		struct span span = stats_begin(STAGE_FETCH, n_submitted);
		struct window *window;
		int r = window_pool_take(&merge->pool, &window);

		stats_waited(merge->job->stats, span);
		if (r == 0)
			r = cancellation_check(merge->job->cancellation);
		if (r == 0)
			r = feed_window(merge, fetch, window, &n_submitted, &last);
		if (r < 0)
			return r;
		if (previous)
			window_let_go(previous);
		previous = window;
	}
	return 0;
}

static int start_writers(struct merge *merge)
{
	char limits[THREAD_LIMITS_NBYTES];
	const uint32_t n = merge->job->plan.n_writers;
	int r = 0;

	merge->writers = calloc(n, sizeof *merge->writers);
	if (!merge->writers)
		return fail(-ENOMEM, "no memory for %u writers", n);
	for (; merge->n_writers < n && r == 0; merge->n_writers += r == 0)
		r = thread_start(writer_main, merge, 0, &merge->writers[merge->n_writers]);
	return r < 0 ? fail_hint(r, HINT_LESS_MEMORY_OR_THREADS, 0,
				 "cannot start a writer thread: %m%s", thread_limits(r, limits)) :
		       0;
}

static int merge_open(struct merge *merge)
{
	int r = placement_open(&merge->placement);

	if (r == 0 && ring_open(merge->pool.plan.n_windows, &merge->queue) < 0)
		r = fail(-ENOMEM, "no memory for a merge of %u runs", merge->pool.n_runs);
	if (r == 0)
		r = window_pool_open(&merge->pool);
	return r == 0 ? start_writers(merge) : r;
}

static void join_writers(struct merge *merge)
{
	for (uint32_t i = 0; i < merge->n_writers; i++)
		pthread_join(merge->writers[i], NULL);
	merge->n_writers = 0;
}

/* Writers that were started before something failed wait for the queue. */
static void merge_close(struct merge *merge)
{
	if (merge->n_writers)
		ring_finish(merge->queue);
	join_writers(merge);
	free(merge->writers);
	window_pool_close(&merge->pool);
	ring_close(merge->queue);
	placement_close(&merge->placement);
}

/* Feed the writers, and wait for them. */
static int merge_run(struct merge *merge, struct slices *fetch)
{
	int r = feed(merge, fetch);

	if (r < 0)
		merge_fail(merge, r);
	else
		ring_finish(merge->queue);
	join_writers(merge);
	return merge->placement.error;
}

static uint64_t left_to_limit(const struct job *job, const struct sink *sink)
{
	if (job->limit == UINT64_MAX || !sink->start)
		return job->limit;
	return job->limit - sink->start->result.n_items;
}

/* What was found out in placing the windows, and before that in reading. */
static void collect_result(const struct merge *merge, const struct slices *fetch,
			   struct merge_result *ret_result)
{
	const struct job *job = merge->job;

	*ret_result = merge->placement.result;
	ledger_add(&ret_result->ledger, slices_ledger(fetch));
	stats_add_device(job->stats, job->workers[job->worker].place,
			 &(struct device_totals){
				 .n_ranges = 1,
				 .merged_nbytes = runs_n_items(merge->placement.runs,
							       merge->placement.n_runs) *
						  job->layout->resident_nbytes,
			 });
}

int merge_runs(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       uint64_t memory_nbytes, const struct sink *sink, struct merge_result *ret_result)
{
	const uint32_t n_stored = n_runs - (uint32_t)runs_n_resident(runs, n_runs);
	const bool reads = runs_n_reached(job, runs, n_runs) < n_runs;
	struct merge merge = {
		.job = job,
		.sink = sink,
		.pool = { .job = job, .sink = sink, .n_runs = n_runs, .reads = reads },
		.placement = { .job = job, .sink = sink, .runs = runs, .n_runs = n_runs },
		.n_left = left_to_limit(job, sink),
		.n_cut = sink->start ? sink->start->result.n_items : 0,
	};
	struct window_plan *plan = &merge.pool.plan;
	struct slices *fetch = NULL;
	int r;

	plan_windows(&job->plan, &job->request, memory_nbytes, runs_n_items(runs, n_runs),
		     n_runs - n_stored, n_stored, plan);
	r = slices_open(job, runs, n_runs, plan, &fetch);
	if (r < 0)
		return r;
	r = merge_open(&merge);
	if (r == 0)
		r = merge_run(&merge, fetch);
	if (r == 0)
		collect_result(&merge, fetch, ret_result);
	slices_close(fetch);
	merge_close(&merge);
	return r;
}
