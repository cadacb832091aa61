/*
 * partition - one range of a merge (see partition.h)
 */
#include "src/merge/partition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/merge/checkpoint_hooks.h"
#include "src/merge/merge.h"

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

static int give_point(void *context, uint32_t number, const struct merge_point *point)
{
	const struct range *range = context;

	(void)number; /* it knows of one */
	return range->whole->point(range->whole->context, range->number, point);
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
	const uint64_t n = range->n_items + (range->start ? range->start->result.n_items : 0);

	return n < range->job.limit ? n : range->job.limit;
}

static struct sink sink_of(struct range *range)
{
	struct sink sink = *range->whole;

	sink.context = range;
	sink.write = write_range;
	sink.cancel = cancel_range;
	sink.place = sink.place ? place_in_range : NULL;
	sink.base += range->position * sink.item_nbytes;
	sink.point = sink.point ? give_point : NULL;
	sink.point_interval = range->point_interval;
	sink.start = range->start;
	sink.edges = &range->edges;
	return sink;
}

static int merge_opened(struct range *range)
{
	const uint64_t begin_ns = clock_now_ns();
	const struct sink sink = sink_of(range);
	int r;

	if (range->start)
		range->result = range->start->result;
	if (range->n_items == 0)
		return 0;
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
static int open_parts(struct range *range, const struct range_parts *parts)
{
	range->runs = calloc(parts->n_runs, sizeof *range->runs);
	if (!range->runs)
		return fail(-ENOMEM, "no memory for a merge of %u runs", parts->n_runs);
	for (uint32_t i = 0; i < parts->n_runs; i++) {
		const uint64_t begin = parts->begins[i], end = parts->ends[i];
		int r;

		range->position += range->job.unique ? 0 : begin;
		range->n_items += end - begin;
		if (end == begin)
			continue;
		r = run_open_part(range->job.layout, parts->runs[i], begin, end,
				  &range->runs[range->n_runs]);
		if (r < 0)
			return r;
		range->n_runs++;
	}
	return 0;
}

/*
 * A range that was noted before is where it was, whatever of it the runs still have. What is
 * written of it already is the output's: a run has only the rest.
 */
static int take_up(struct range *range)
{
	const struct merge_range *noted = range->noted;
	const struct keeper *keeper = range->job.keeper;
	const size_t edge_nbytes = layout_edge_nbytes(range->job.layout);

	range->position = noted->position;
	if (range->whole->is_run)
		return 0;
	range->start = noted->start;
	if (range->start) {
		memcpy(range->edges.first, range->start->first, edge_nbytes);
		memcpy(range->edges.last, range->start->last, edge_nbytes);
		range->edges.has_any = true;
	}
	if (!range->has_next || n_due(range) == noted[1].position - noted->position)
		return 0;
	return keeper->refuse(keeper->context, noted->position, noted[1].position - noted->position,
			      n_due(range));
}

static int open_range(struct range *range, const struct range_parts *parts)
{
	const size_t edge_nbytes = layout_edge_nbytes(range->job.layout);
	int r;

	range->edges.first = malloc(edge_nbytes);
	range->edges.last = malloc(edge_nbytes);
	if (!range->edges.first || !range->edges.last)
		return fail(-ENOMEM, "no memory for a merge");
	r = open_parts(range, parts);
	return r == 0 && range->noted ? take_up(range) : r;
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

int range_merge(struct range *range, const struct range_parts *parts)
{
	int r = open_range(range, parts);

	range->job.limit = left_of_limit(range->job.limit, range);
	if (r == 0)
		r = merge_opened(range);
	close_range(range);
	return r;
}

void range_forget(struct range *range)
{
	free(range->edges.first);
	free(range->edges.last);
}
