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
#include "src/base/thread_pool.h"
#include "src/base/thread.h"
#include "src/merge/window_order.h"
#include "src/merge/window_input.h"
#include "src/merge/window.h"

struct merge_pipeline {
	const struct job *job;
	const struct sink *sink;
	struct window_pool pool;
	struct placement placement;
	struct bounded_queue *queue; /* of windows that are being merged, in order */
	pthread_t *writers;
	uint32_t n_writers;

	/* The caller's thread */
	uint64_t n_until_limit; /* items */
	uint64_t next_position; /* items in earlier windows */
};

/* The first failure wins; nobody waits any longer. */
static void merge_pipeline_fail(struct merge_pipeline *merge, int r)
{
	placement_fail(&merge->placement, r);
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
		.items = window->host,
		.first_keys = window->first_keys,
		.packed_nbytes = window->packed_nbytes,
	};
	struct span span = stats_begin(sink->stage, window->number);
	int r = window_finish(window);

	if (r == 0)
		r = placement_assign(&merge->placement, window, &merged.position);
	stats_end_wait(merge->job->stats, span);
	if (r < 0)
		return r;
	stats_skip(merge->job->stats, sink->stage,
		   (window->n_items - window->result.n) * sink->item_nbytes);
	if (window->result.n == 0)
		return 0;
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

/* With -u only the merge tells how many records the window keeps. */
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

/* Queue the window behind those before it; empty ones go no further. */
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

/* Fetch the next window, and queue its merge. */
static int feed_window(struct merge_pipeline *merge, struct window_input *input,
		       struct window *window, uint64_t *n_submitted, bool *ret_last)
{
	int r;

	window_align(window, merge->next_position);
	r = window_input_next(input,
			      &(struct run_buffers_memory){ window->buffers.in, window->out,
							    window->buffers.scratch },
			      window->slices, &window->n_items, ret_last);
	if (r < 0)
		return r;
	merge->next_position += window->n_items;
	return submit(merge, window, n_submitted);
}

/* The caller's thread: cut one window after the other. */
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

static int start_writers(struct merge_pipeline *merge)
{
	char limits[THREAD_LIMITS_NBYTES];
	const uint32_t n = merge->job->plan.n_writers;
	int r = 0;

	merge->writers = calloc(n, sizeof *merge->writers);
	if (!merge->writers)
		return fail(-ENOMEM, "no memory for %u writers", n);
	for (; merge->n_writers < n && r == 0; merge->n_writers += r == 0)
		r = thread_start(writer_main, merge, 0, &merge->writers[merge->n_writers]);
	return r < 0 ? fail(r, "cannot start a writer thread: %m%s; try a smaller -S or --parallel",
			    thread_format_limits(r, limits)) :
		       0;
}

static int merge_pipeline_open(struct merge_pipeline *merge)
{
	int r = placement_open(&merge->placement);

	if (r == 0 && bounded_queue_open(merge->pool.plan.n_windows, &merge->queue) < 0)
		r = fail(-ENOMEM, "no memory for a merge of %u runs", merge->pool.n_runs);
	if (r == 0)
		r = window_pool_open(&merge->pool);
	return r == 0 ? start_writers(merge) : r;
}

static void join_writers(struct merge_pipeline *merge)
{
	for (uint32_t i = 0; i < merge->n_writers; i++)
		pthread_join(merge->writers[i], NULL);
	merge->n_writers = 0;
}

/* Writers that were started before something failed wait for the queue. */
static void merge_pipeline_close(struct merge_pipeline *merge)
{
	if (merge->n_writers)
		bounded_queue_finish(merge->queue);
	join_writers(merge);
	free(merge->writers);
	window_pool_close(&merge->pool);
	bounded_queue_close(merge->queue);
	placement_close(&merge->placement);
}

/* Feed the writers, and wait for them. */
static int merge_pipeline_run(struct merge_pipeline *merge, struct window_input *input)
{
	int r = feed(merge, input);

	if (r < 0)
		merge_pipeline_fail(merge, r);
	else
		bounded_queue_finish(merge->queue);
	join_writers(merge);
	return merge->placement.error;
}

/* What was found out in placing the windows, and before that in reading. */
static void collect_result(const struct merge_pipeline *merge, const struct window_input *input,
			   struct merge_result *ret_result)
{
	const struct job *job = merge->job;

	*ret_result = merge->placement.result;
	record_totals_add(&ret_result->totals, window_input_totals(input));
	stats_add_device(job->stats, job->devices[job->merge_device].stats_index,
			 &(struct device_totals){
				 .n_partitions = 1,
				 .merged_nbytes = runs_n_items(merge->placement.runs,
							       merge->placement.n_runs) *
						  job->layout->resident_nbytes,
			 });
}

int merge_runs(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       uint64_t memory_nbytes, const struct sink *sink, struct merge_result *ret_result)
{
	const uint32_t n_stored = n_runs - (uint32_t)runs_n_resident(runs, n_runs);
	const bool reads = runs_n_peer_accessible(job, runs, n_runs) < n_runs;
	struct merge_pipeline merge = {
		.job = job,
		.sink = sink,
		.pool = { .job = job, .sink = sink, .n_runs = n_runs, .has_input = reads },
		.placement = { .job = job, .sink = sink, .runs = runs, .n_runs = n_runs },
		.n_until_limit = job->limit,
	};
	struct window_plan *plan = &merge.pool.plan;
	struct window_input *input = NULL;
	int r;

	plan_windows(&job->plan, &job->plan_request, memory_nbytes, runs_n_items(runs, n_runs),
		     n_runs - n_stored, n_stored, plan);
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
