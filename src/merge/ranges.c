/*
 * ranges - one merge as several, side by side (see ranges.h)
 */
#include "src/merge/ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/crew.h"
#include "src/base/messages.h"
#include "src/merge/merge.h"
#include "src/merge/splitters.h"
#include "src/merge/window_memory.h"

/* A merge of its own. */
struct range {
	uint32_t number;
	struct job job;    /* with a plan, and memory of windows, of its own */
	struct run **runs; /* n_runs: parts, each with something in it */
	uint32_t n_runs;
	uint64_t n_items, position; /* in them; of the first in the output */
	const struct sink *whole;   /* that all ranges go to */
	struct merge_edges edges;
	struct merge_result result;
};

struct ranges {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs, n;
	struct range *of; /* n */

	/* Of whoever merges them */
	atomic_uint next;
	atomic_int error; /* the first, or 0 */
};

static int write_range(void *context, const struct merged *merged)
{
	const struct range *range = context;
	struct merged placed = *merged;

	placed.position += range->position;
	return range->whole->write(range->whole->context, &placed);
}

static void cancel_range(void *context)
{
	const struct range *range = context;

	if (range->whole->cancel)
		range->whole->cancel(range->whole->context);
}

static int merge_range(struct range *range)
{
	const uint64_t begin_ns = clock_now_ns();
	struct sink sink = *range->whole;
	int r;

	if (range->n_items == 0)
		return 0;
	sink.context = range;
	sink.write = write_range;
	sink.cancel = cancel_range;
	sink.base += range->position * sink.item_nbytes;
	sink.edges = &range->edges;
	r = merge_runs(&range->job, range->runs, range->n_runs, range->job.plan.merge_nbytes, &sink,
		       &range->result);
	if (r == 0 && range->result.n_items != range->n_items)
		r = fail(-EIO,
			 "internal error: a range of %" PRIu64 " records was merged to %" PRIu64
			 "; the output was not written",
			 range->n_items, range->result.n_items);
	if (r == 0)
		stats_add_range(range->job.stats, range->number, begin_ns,
				range->n_items * sink.item_nbytes);
	return r;
}

/* A thread's: one range after the other, until there are none. */
static void merge_some(void *context)
{
	struct ranges *ranges = context;
	uint32_t i;

	while ((i = atomic_fetch_add(&ranges->next, 1)) < ranges->n &&
	       atomic_load(&ranges->error) == 0) {
		const int r = merge_range(&ranges->of[i]);
		int none = 0;

		if (r == 0)
			continue;
		atomic_compare_exchange_strong(&ranges->error, &none, r);
		cancel_range(&ranges->of[i]); /* what others write is of no use any more */
	}
}

/* The parts of the runs between two cuts. */
static int open_runs(struct ranges *ranges, struct range *range, const uint64_t *cuts)
{
	const uint64_t *ends = cuts + ranges->n_runs;

	range->runs = calloc(ranges->n_runs, sizeof *range->runs);
	if (!range->runs)
		return fail(-ENOMEM, "no memory for a merge of %u runs", ranges->n_runs);
	for (uint32_t i = 0; i < ranges->n_runs; i++) {
		int r;

		range->position += cuts[i];
		range->n_items += ends[i] - cuts[i];
		if (ends[i] == cuts[i])
			continue;
		r = run_open_part(ranges->job->layout, ranges->runs[i], cuts[i], ends[i],
				  &range->runs[range->n_runs]);
		if (r < 0)
			return r;
		range->n_runs++;
	}
	return 0;
}

static int open_range(struct ranges *ranges, struct range *range, const struct plan *plan,
		      const struct sink *sink, const uint64_t *cuts)
{
	const size_t edge_nbytes = layout_edge_nbytes(ranges->job->layout);

	range->number = (uint32_t)(range - ranges->of);
	range->whole = sink;
	range->job = *ranges->job;
	range->job.plan = *plan;
	range->job.windows = NULL;
	range->edges.first = malloc(edge_nbytes);
	range->edges.last = malloc(edge_nbytes);
	if (!range->edges.first || !range->edges.last)
		return fail(-ENOMEM, "no memory for a merge");
	return window_memory_open(&range->job.windows) < 0 ? -ENOMEM :
							     open_runs(ranges, range, cuts);
}

static void close_range(struct range *range)
{
	for (uint32_t i = 0; i < range->n_runs; i++)
		run_close(range->runs[i]);
	free(range->runs);
	free(range->edges.first);
	free(range->edges.last);
	if (range->whole)
		window_memory_close(range->job.windows);
}

static int open_ranges(struct ranges *ranges, const struct plan *plan, const struct sink *sink,
		       const uint64_t *cuts)
{
	int r = 0;

	ranges->of = calloc(ranges->n, sizeof *ranges->of);
	if (!ranges->of)
		return fail(-ENOMEM, "no memory for %u ranges", ranges->n);
	for (uint32_t i = 0; i < ranges->n && r == 0; i++)
		r = open_range(ranges, &ranges->of[i], plan, sink,
			       &cuts[(size_t)i * ranges->n_runs]);
	return r;
}

static void close_ranges(struct ranges *ranges)
{
	for (uint32_t i = 0; ranges->of && i < ranges->n; i++)
		close_range(&ranges->of[i]);
	free(ranges->of);
}

static void add_result(struct merge_result *sum, const struct merge_result *result)
{
	sum->n_items += result->n_items;
	sum->n_windows += result->n_windows;
	sum->n_counted += result->n_counted;
	sum->n_disorders += result->n_disorders;
	ledger_add(&sum->ledger, result->ledger);
}

/* What all have found, and the order of each range's last item and the next one's first. */
static void collect_results(const struct ranges *ranges, struct merge_result *ret_result)
{
	const struct merge_edges *before = NULL;

	*ret_result = (struct merge_result){ 0 };
	for (uint32_t i = 0; i < ranges->n; i++) {
		const struct range *range = &ranges->of[i];

		add_result(ret_result, &range->result);
		if (!range->edges.has_any)
			continue;
		if (before)
			ret_result->n_disorders += layout_compare_edges(ranges->job->layout,
									before->last,
									range->edges.first) > 0;
		before = &range->edges;
	}
}

/* In how many ranges, and with which plan each. */
static uint32_t plan_them(const struct job *job, struct run *const *runs, uint32_t n_runs,
			  uint64_t memory_nbytes, const struct sink *sink, struct plan *ret_plan)
{
	uint64_t n_items;
	uint32_t n_resident;

	if (sink->point || sink->start || job->unique || job->limit != UINT64_MAX)
		return 1;
	n_items = runs_n_items(runs, n_runs);
	n_resident = (uint32_t)runs_n_resident(runs, n_runs);
	return plan_ranges(&job->plan, &job->request, memory_nbytes, n_items, n_resident,
			   n_runs - n_resident, ret_plan);
}

/*
 * Keys that begin alike, or few blocks, may leave nearly everything in one range; then it is better
 * off with all of the memory and all of the threads.
 */
static bool are_worth_it(const struct ranges *ranges, const uint64_t *cuts)
{
	uint64_t n_items = 0, n_largest = 0;

	for (uint32_t i = 0; i < ranges->n; i++) {
		uint64_t n = 0;

		for (uint32_t j = 0; j < ranges->n_runs; j++) {
			const uint64_t *cut = &cuts[(size_t)i * ranges->n_runs + j];

			n += cut[ranges->n_runs] - cut[0];
		}
		n_items += n;
		n_largest = n > n_largest ? n : n_largest;
	}
	return n_largest <= n_items / 8 * 7 && n_largest <= 2 * (n_items / ranges->n + 1);
}

static int merge_divided(struct ranges *ranges, const struct plan *plan, const struct sink *sink,
			 const uint64_t *cuts, struct merge_result *ret_result)
{
	int r;

	window_memory_drop(ranges->job->windows);
	if (sink->divide)
		sink->divide(sink->context, ranges->n);
	r = open_ranges(ranges, plan, sink, cuts);
	if (r == 0) {
		crew_share(ranges->n, merge_some, ranges);
		r = atomic_load(&ranges->error);
	}
	if (r == 0)
		collect_results(ranges, ret_result);
	close_ranges(ranges);
	return r;
}

int merge_in_ranges(const struct job *job, struct run *const *runs, uint32_t n_runs,
		    uint64_t memory_nbytes, const struct sink *sink,
		    struct merge_result *ret_result)
{
	struct ranges ranges = { .job = job, .runs = runs, .n_runs = n_runs };
	struct plan plan;
	uint64_t *cuts;
	int r = 0;

	ranges.n = plan_them(job, runs, n_runs, memory_nbytes, sink, &plan);
	cuts = calloc((ranges.n + UINT64_C(1)) * n_runs, sizeof *cuts);
	if (!cuts)
		return fail(-ENOMEM, "no memory for %u ranges", ranges.n);
	if (ranges.n > 1)
		r = splitters_cut(job, runs, n_runs, ranges.n, cuts);
	if (r == 0 && ranges.n > 1 && are_worth_it(&ranges, cuts)) {
		r = merge_divided(&ranges, &plan, sink, cuts, ret_result);
	} else if (r == 0) {
		if (sink->divide)
			sink->divide(sink->context, 1);
		r = merge_runs(job, runs, n_runs, memory_nbytes, sink, ret_result);
	}
	free(cuts);
	return r;
}
