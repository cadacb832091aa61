/*
 * ranges - one merge as several, side by side (see ranges.h)
 */
#include "src/merge/ranges.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/crew.h"
#include "src/base/messages.h"
#include "src/base/nodes.h"
#include "src/merge/merge.h"
#include "src/merge/splitters.h"
#include "src/merge/window_memory.h"

/* A merge of its own. */
struct range {
	uint32_t number;
	struct job job;    /* with a plan, and memory of windows, of its own */
	struct run **runs; /* n_runs: parts, each with something in it */
	uint32_t n_runs;
	uint64_t n_items;         /* in them */
	uint64_t position;        /* of the first in the output; with -u from where it counts */
	const struct sink *whole; /* that all ranges go to */
	struct merge_edges edges;
	struct merge_result result;
};

struct ranges {
	const struct job *job;
	const struct plan *plan; /* of each */
	const struct sink *sink;
	struct run *const *runs;
	uint32_t n_runs, n;
	bool at_keys;         /* no key is in two of them */
	const uint64_t *cuts; /* (n + 1) of n_runs each */
	struct range *of;     /* n */

	/* Of whoever merges them */
	atomic_uint n_taken; /* besides the first of each thread */
	atomic_int error;    /* the first, or 0 */
};

static int write_range(void *context, const struct merged *merged)
{
	const struct range *range = context;
	struct merged placed = *merged;

	placed.position += range->position;
	placed.range = range->number;
	return range->whole->write(range->whole->context, &placed);
}

static uint64_t place_in_range(void *context, uint64_t position)
{
	const struct range *range = context;

	return range->whole->place(range->whole->context, range->position + position);
}

static void cancel_range(void *context)
{
	const struct range *range = context;

	if (range->whole->cancel)
		range->whole->cancel(range->whole->context);
}

/* Without -u. */
static uint64_t n_due(const struct range *range)
{
	return range->n_items < range->job.limit ? range->n_items : range->job.limit;
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
	sink.place = sink.place ? place_in_range : NULL;
	sink.base += range->position * sink.item_nbytes;
	sink.edges = &range->edges;
	r = merge_runs(&range->job, range->runs, range->n_runs, range->job.plan.merge_nbytes, &sink,
		       &range->result);
	if (r == 0 && !range->job.unique && range->result.n_items != n_due(range))
		r = fail(-EIO,
			 "internal error: a range of %" PRIu64 " records was merged to %" PRIu64
			 "; the output was not written",
			 n_due(range), range->result.n_items);
	if (r == 0 && !sink.is_run)
		stats_add_range(range->job.stats, range->number, begin_ns,
				range->n_items * sink.item_nbytes);
	return r;
}

/* The parts of the runs between two cuts. */
static int open_runs(const struct ranges *ranges, struct range *range)
{
	const uint64_t *cuts = &ranges->cuts[(size_t)range->number * ranges->n_runs];
	const uint64_t *ends = cuts + ranges->n_runs;

	range->runs = calloc(ranges->n_runs, sizeof *range->runs);
	if (!range->runs)
		return fail(-ENOMEM, "no memory for a merge of %u runs", ranges->n_runs);
	for (uint32_t i = 0; i < ranges->n_runs; i++) {
		int r;

		range->position += ranges->job->unique ? 0 : cuts[i];
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

static int open_range(const struct ranges *ranges, struct range *range,
		      struct window_memory *windows)
{
	const size_t edge_nbytes = layout_edge_nbytes(ranges->job->layout);

	range->whole = ranges->sink;
	range->job.plan = *ranges->plan;
	range->job.windows = windows;
	range->edges.first = malloc(edge_nbytes);
	range->edges.last = malloc(edge_nbytes);
	if (!range->edges.first || !range->edges.last)
		return fail(-ENOMEM, "no memory for a merge");
	return open_runs(ranges, range);
}

/* What it has found stays. */
static void close_range(struct range *range)
{
	for (uint32_t i = 0; i < range->n_runs; i++)
		run_close(range->runs[i]);
	free(range->runs);
}

/* Of the limit of all, what those before it leave. */
static uint64_t left_of_limit(uint64_t limit, const struct range *range)
{
	if (limit == UINT64_MAX)
		return UINT64_MAX;
	return limit > range->position ? limit - range->position : 0;
}

/* By a worker. windows: NULL: in the memory that it has for them. */
static int merge_one(struct ranges *ranges, uint32_t i, uint32_t worker,
		     struct window_memory *windows)
{
	struct range *range = &ranges->of[i];
	int r;

	range->number = i;
	range->job = *ranges->job;
	range->job.worker = worker;
	r = open_range(ranges, range, windows);
	range->job.limit = left_of_limit(ranges->job->limit, range);
	if (r == 0)
		r = merge_range(range);
	close_range(range);
	return r;
}

static void fail_ranges(struct ranges *ranges, int r)
{
	int none = 0;

	atomic_compare_exchange_strong(&ranges->error, &none, r);
	if (ranges->sink->cancel) /* what others write is of no use any more */
		ranges->sink->cancel(ranges->sink->context);
}

/* Of several devices, each has its threads near it. */
static struct nodes_stay go_to(const struct job *job, uint32_t worker)
{
	return nodes_enter(NODES_SYSFS, job->n_workers > 1 ? job->workers[worker].node : NODE_ANY);
}

/*
 * A thread's: the range of its number, and then what nobody has taken yet, in the same memory of
 * the same worker. Workers take turns in having one thread more, and the first thread has what
 * memory the worker keeps for windows.
 */
static void merge_some(void *context, uint32_t number, uint32_t n_threads)
{
	struct ranges *ranges = context;
	const uint32_t n_workers = ranges->job->n_workers;
	const struct nodes_stay stay = go_to(ranges->job, number % n_workers);
	struct window_memory *windows = NULL;
	uint32_t i = number;
	int r = number < n_workers ? 0 : window_memory_open(&windows);

	while (r == 0 && i < ranges->n && atomic_load(&ranges->error) == 0) {
		r = merge_one(ranges, i, number % n_workers, windows);
		i = n_threads + atomic_fetch_add(&ranges->n_taken, 1);
	}
	if (r < 0)
		fail_ranges(ranges, r);
	window_memory_close(windows);
	nodes_leave(&stay);
}

static void free_ranges(struct ranges *ranges)
{
	for (uint32_t i = 0; i < ranges->n; i++) {
		free(ranges->of[i].edges.first);
		free(ranges->of[i].edges.last);
	}
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

/* Of two neighbours at the end of one range and the beginning of the next. */
static bool is_disorder(const struct ranges *ranges, const void *last, const void *first)
{
	const int order = layout_compare_edges(ranges->job->layout, last, first);

	return order > 0 || (order == 0 && ranges->at_keys);
}

/* Of one range after the other, the first item of the first and the last of the last. */
static void add_edges(const struct merge_edges *edges, size_t nbytes, struct merge_edges *all)
{
	if (!all)
		return;
	if (!all->has_any)
		memcpy(all->first, edges->first, nbytes);
	memcpy(all->last, edges->last, nbytes);
	all->has_any = true;
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
			ret_result->n_disorders +=
				is_disorder(ranges, before->last, range->edges.first);
		before = &range->edges;
		add_edges(&range->edges, layout_edge_nbytes(ranges->job->layout),
			  ranges->sink->edges);
	}
}

/* In how many ranges side by side, and with which plan each. */
static uint32_t plan_them(const struct job *job, struct run *const *runs, uint32_t n_runs,
			  uint64_t memory_nbytes, const struct sink *sink, struct plan *ret_plan)
{
	const bool knows_places = !job->unique || sink->n_parts || sink->counts_by_range;
	/* What of a limit is left for a range is known by its place. */
	const bool knows_limits = !job->unique || job->limit == UINT64_MAX;
	uint64_t n_items;
	uint32_t n_most, n_resident, n;
	struct plan plan;

	*ret_plan = job->plan;
	ret_plan->merge_nbytes = memory_nbytes;
	if (sink->point || sink->start || !knows_places || !knows_limits)
		return 1;
	n_items = runs_n_items(runs, n_runs);
	n_most = sink->is_run ? job->n_workers :
				plan_most_ranges(&job->plan, &job->request, n_items);
	n_resident = (uint32_t)runs_n_resident(runs, n_runs);
	n = plan_ranges(&job->plan, &job->request, memory_nbytes, n_items, n_resident,
			n_runs - n_resident, n_most, &plan);
	if (n > 1)
		*ret_plan = plan;
	return n;
}

/*
 * Keys that begin alike, few blocks, or a limit that drops much may leave nearly everything in one
 * range; then it is better off with all of the memory and all of the threads.
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

/* As ranges, some of them side by side: as many as the plan is for. */
static int merge_divided(struct ranges *ranges, uint32_t n_at_once, struct merge_result *ret_result)
{
	int r;

	if (n_at_once > ranges->job->n_workers) /* what is kept is of fewer, which had more */
		window_memory_drop_all(ranges->job);
	if (ranges->sink->divide)
		ranges->sink->divide(ranges->sink->context, ranges->n);
	ranges->of = calloc(ranges->n, sizeof *ranges->of);
	if (!ranges->of)
		return fail(-ENOMEM, "no memory for %u ranges", ranges->n);
	crew_share_numbered(n_at_once, merge_some, ranges);
	r = atomic_load(&ranges->error);
	if (r == 0)
		collect_results(ranges, ret_result);
	free_ranges(ranges);
	return r;
}

static int merge_whole(const struct ranges *ranges, uint64_t memory_nbytes,
		       struct merge_result *ret_result)
{
	if (ranges->sink->divide)
		ranges->sink->divide(ranges->sink->context, 1);
	return merge_runs(ranges->job, ranges->runs, ranges->n_runs, memory_nbytes, ranges->sink,
			  ret_result);
}

/* The places of parts are the sums of cuts; none is behind the limit. */
static int place_parts(const struct ranges *ranges)
{
	const uint64_t limit = ranges->job->limit;
	uint64_t *begins = calloc(ranges->n + UINT64_C(1), sizeof *begins);
	int r;

	if (!begins)
		return fail(-ENOMEM, "no memory for %u parts", ranges->n);
	for (uint32_t i = 0; i <= ranges->n; i++)
		for (uint32_t j = 0; j < ranges->n_runs; j++)
			begins[i] += ranges->cuts[(size_t)i * ranges->n_runs + j];
	for (uint32_t i = 0; i <= ranges->n; i++)
		if (begins[i] > limit)
			begins[i] = limit;
	r = ranges->sink->place_parts(ranges->sink->context, begins);
	free(begins);
	return r;
}

/* Each part is a range; but where there is a limit, it is one of all together. */
static int merge_parts(struct ranges *ranges, uint32_t n_at_once, uint64_t memory_nbytes,
		       struct merge_result *ret_result)
{
	const bool unique = ranges->job->unique;
	int r = unique ? 0 : place_parts(ranges);

	if (r < 0)
		return r;
	return unique || ranges->job->limit == UINT64_MAX ?
		       merge_divided(ranges, n_at_once, ret_result) :
		       merge_whole(ranges, memory_nbytes, ret_result);
}

int merge_in_ranges(const struct job *job, struct run *const *runs, uint32_t n_runs,
		    uint64_t memory_nbytes, const struct sink *sink,
		    struct merge_result *ret_result)
{
	struct ranges ranges = { .job = job, .sink = sink, .runs = runs, .n_runs = n_runs };
	struct plan plan;
	uint32_t n_at_once;
	uint64_t *cuts;
	int r = 0;

	n_at_once = plan_them(job, runs, n_runs, memory_nbytes, sink, &plan);
	ranges.n = sink->n_parts ? sink->n_parts : n_at_once;
	ranges.plan = &plan;
	ranges.at_keys = sink->n_parts || job->unique;
	ranges.cuts = cuts = calloc((ranges.n + UINT64_C(1)) * n_runs, sizeof *cuts);
	if (!cuts)
		return fail(-ENOMEM, "no memory for %u ranges", ranges.n);
	if (ranges.n > 1 || sink->n_parts)
		r = splitters_cut(job, runs, n_runs, ranges.n, ranges.at_keys, cuts);
	if (r == 0 && sink->n_parts)
		r = merge_parts(&ranges, n_at_once, memory_nbytes, ret_result);
	else if (r == 0 && ranges.n > 1 && are_worth_it(&ranges, cuts))
		r = merge_divided(&ranges, n_at_once, ret_result);
	else if (r == 0)
		r = merge_whole(&ranges, memory_nbytes, ret_result);
	free(cuts);
	return r;
}
