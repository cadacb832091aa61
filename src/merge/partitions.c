/*
 * partitions - one merge as several, side by side (see partitions.h)
 */
#include "src/merge/partitions.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/thread_pool.h"
#include "src/base/diagnostics.h"
#include "src/base/numa.h"
#include "src/merge/merge.h"
#include "src/merge/partition.h"
#include "src/merge/splitters.h"
#include "src/merge/window_buffers.h"

struct ranges {
	const struct job *job;
	const struct plan *plan; /* of each */
	const struct sink *sink;
	struct run *const *runs;
	uint32_t n_runs, n;
	bool at_keys; /* no key is in two of them */
	/* Rows of n_runs each: where range 0 begins in them, and where it ends, ... */
	const uint64_t *cuts;
	size_t n_rows;    /* ... and so many behind, the same of the next range */
	struct range *of; /* n */

	/* Of whoever merges them */
	atomic_uint n_taken; /* besides the first of each thread */
	atomic_int error;    /* the first, or 0 */
};

/* Where a range begins in the runs, and where it ends. */
static const uint64_t *begins_of(const struct ranges *ranges, uint32_t number)
{
	return &ranges->cuts[number * ranges->n_rows * ranges->n_runs];
}

static const uint64_t *ends_of(const struct ranges *ranges, uint32_t number)
{
	return begins_of(ranges, number) + ranges->n_runs;
}

/* By a worker. windows: NULL: in the memory that it has for them. */
static int merge_one(struct ranges *ranges, uint32_t i, uint32_t worker,
		     struct window_memory *windows)
{
	const struct sink *sink = ranges->sink;
	const struct range_parts parts = { ranges->runs, ranges->n_runs, begins_of(ranges, i),
					   ends_of(ranges, i) };
	struct range *range = &ranges->of[i];

	range->number = i;
	range->job = *ranges->job;
	range->job.worker = worker;
	range->job.plan = *ranges->plan;
	range->job.windows = windows;
	range->whole = sink;
	range->point_interval = sink->point_interval / ranges->n;
	range->noted = sink->ranges ? &sink->ranges[i] : NULL;
	range->has_next = i + 1 < ranges->n;
	return range_merge(range, &parts);
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
	for (uint32_t i = 0; i < ranges->n; i++)
		range_forget(&ranges->of[i]);
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
	const uint32_t n_noted = sink->ranges ? sink->n_ranges : UINT32_MAX;
	uint64_t n_items;
	uint32_t n_most, n_resident, n;
	struct plan plan;

	*ret_plan = job->plan;
	ret_plan->merge_nbytes = memory_nbytes;
	if (!knows_places || !knows_limits)
		return 1;
	n_items = runs_n_items(runs, n_runs);
	n_most = sink->is_run ? job->n_workers :
				plan_most_ranges(&job->plan, &job->request, n_items);
	n_resident = (uint32_t)runs_n_resident(runs, n_runs);
	n = plan_ranges(&job->plan, &job->request, memory_nbytes, n_items, n_resident,
			n_runs - n_resident, n_most < n_noted ? n_most : n_noted, &plan);
	if (n > 1)
		*ret_plan = plan;
	return n;
}

/* Keys that begin alike, few blocks, or a limit that drops much may leave nearly all in one. */
static bool are_worth_it(const struct ranges *ranges)
{
	uint64_t n_items = 0, n_largest = 0;

	for (uint32_t i = 0; i < ranges->n; i++) {
		uint64_t n = 0;

		for (uint32_t j = 0; j < ranges->n_runs; j++)
			n += ends_of(ranges, i)[j] - begins_of(ranges, i)[j];
		n_items += n;
		n_largest = n > n_largest ? n : n_largest;
	}
	return plan_divides(n_items, n_largest, ranges->n);
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

/* The place of a range in the output is the sum of the cuts. */
static void sum_begins(const struct ranges *ranges, uint64_t *sums)
{
	for (uint32_t i = 0; i < ranges->n; i++)
		for (uint32_t j = 0; j < ranges->n_runs; j++)
			sums[i] += begins_of(ranges, i)[j];
}

/* The places of parts are known; none is behind the limit. */
static int place_parts(const struct ranges *ranges)
{
	const uint64_t limit = ranges->job->limit;
	uint64_t *begins = calloc(ranges->n + UINT64_C(1), sizeof *begins);
	int r;

	if (!begins)
		return fail(-ENOMEM, "no memory for %u parts", ranges->n);
	sum_begins(ranges, begins);
	for (uint32_t j = 0; j < ranges->n_runs; j++)
		begins[ranges->n] += ends_of(ranges, ranges->n - 1)[j];
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

/* Ranges that were noted before: what is left of each. */
static int merge_noted(struct ranges *ranges, uint32_t n_at_once, struct merge_result *ret_result)
{
	const struct merge_range *noted = ranges->sink->ranges;
	const uint32_t n = ranges->n, n_runs = ranges->n_runs;
	const void **keys = calloc(n, 2 * sizeof *keys);
	uint64_t *cuts = calloc((size_t)n * n_runs, 2 * sizeof *cuts);
	int r = keys && cuts ? 0 : fail(-ENOMEM, "no memory for %u ranges", n);

	/* In order: where a range goes on, and where the next one began. */
	for (uint32_t i = 0; i < n && r == 0; i++) {
		keys[2 * i] = noted[i].start ? noted[i].start->key : noted[i].key;
		keys[2 * i + 1] = i + 1 < n ? noted[i + 1].key : NULL;
	}
	if (r == 0)
		r = splitters_cut_at(ranges->job, ranges->runs, n_runs, keys, 2 * n - 1, cuts);
	for (uint32_t i = 0; i < n_runs && r == 0; i++)
		cuts[(size_t)(2 * n - 1) * n_runs + i] = run_n_items(ranges->runs[i]);
	ranges->cuts = cuts;
	ranges->n_rows = 2;
	if (r == 0)
		r = merge_divided(ranges, n_at_once, ret_result);
	free(cuts);
	free(keys);
	return r;
}

/* All of it as one: also where points are wanted, which are a range's. */
static void unite(struct ranges *ranges, uint64_t *cuts)
{
	ranges->n = 1;
	for (uint32_t i = 0; i < ranges->n_runs; i++) {
		cuts[i] = 0;
		cuts[ranges->n_runs + i] = run_n_items(ranges->runs[i]);
	}
}

/* keys: room for that of each. */
static int cut_to_note(struct ranges *ranges, void *const *keys, uint64_t *cuts)
{
	struct merge_range *noted = calloc(ranges->n, sizeof *noted);
	uint64_t *sums = calloc(ranges->n, sizeof *sums);
	int r = noted && sums ? 0 : fail(-ENOMEM, "no memory for %u ranges", ranges->n);

	if (r == 0 && ranges->n > 1)
		r = splitters_cut(ranges->job, ranges->runs, ranges->n_runs, ranges->n, true, keys,
				  cuts);
	if (ranges->n == 1 || !are_worth_it(ranges))
		unite(ranges, cuts);
	if (r == 0)
		sum_begins(ranges, sums);
	for (uint32_t i = 0; i < ranges->n && r == 0; i++)
		noted[i] = (struct merge_range){ i ? keys[i] : NULL, sums[i], NULL };
	if (r == 0)
		r = ranges->sink->note_ranges(ranges->sink->context, noted, ranges->n);
	free(noted);
	free(sums);
	return r;
}

static void free_keys(void **keys, uint32_t n)
{
	for (uint32_t i = 0; keys && i < n; i++)
		free(keys[i]);
	free(keys);
}

/* In ranges that can be taken up, each at its points: they begin in front of keys. */
static int merge_to_note(struct ranges *ranges, uint32_t n_at_once, uint64_t *cuts,
			 struct merge_result *ret_result)
{
	const uint32_t n = ranges->n;
	void **keys = calloc(n, sizeof *keys);
	bool is_complete = keys;
	int r;

	for (uint32_t i = 0; i < n && is_complete; i++) {
		keys[i] = malloc(layout_key_nbytes(ranges->job->layout));
		is_complete = keys[i];
	}
	r = is_complete ? cut_to_note(ranges, keys, cuts) :
			  fail(-ENOMEM, "no memory for %u ranges", n);
	if (r == 0)
		r = merge_divided(ranges, ranges->n > 1 ? n_at_once : 1, ret_result);
	free_keys(keys, n);
	return r;
}

static int merge_anew(struct ranges *ranges, uint32_t n_at_once, uint64_t memory_nbytes,
		      uint64_t *cuts, struct merge_result *ret_result)
{
	const bool has_parts = ranges->sink->n_parts;
	int r = 0;

	if (ranges->sink->point)
		return merge_to_note(ranges, n_at_once, cuts, ret_result);
	if (ranges->n > 1 || has_parts)
		r = splitters_cut(ranges->job, ranges->runs, ranges->n_runs, ranges->n,
				  ranges->at_keys, NULL, cuts);
	if (r < 0)
		return r;
	if (has_parts)
		return merge_parts(ranges, n_at_once, memory_nbytes, ret_result);
	return ranges->n > 1 && are_worth_it(ranges) ?
		       merge_divided(ranges, n_at_once, ret_result) :
		       merge_whole(ranges, memory_nbytes, ret_result);
}

int merge_in_ranges(const struct job *job, struct run *const *runs, uint32_t n_runs,
		    uint64_t memory_nbytes, const struct sink *sink,
		    struct merge_result *ret_result)
{
	struct ranges ranges = {
		.job = job, .sink = sink, .runs = runs, .n_runs = n_runs, .n_rows = 1
	};
	struct plan plan;
	const uint32_t n_at_once = plan_them(job, runs, n_runs, memory_nbytes, sink, &plan);
	uint64_t *cuts;
	int r;

	ranges.plan = &plan;
	ranges.n = sink->ranges ? sink->n_ranges : sink->n_parts ? sink->n_parts : n_at_once;
	ranges.at_keys = sink->ranges || sink->n_parts || job->unique || sink->point;
	if (sink->ranges)
		return merge_noted(&ranges, n_at_once, ret_result);
	ranges.cuts = cuts = calloc((ranges.n + UINT64_C(1)) * n_runs, sizeof *cuts);
	r = cuts ? merge_anew(&ranges, n_at_once, memory_nbytes, cuts, ret_result) :
		   fail(-ENOMEM, "no memory for %u ranges", ranges.n);
	free(cuts);
	return r;
}
