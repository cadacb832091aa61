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

static int write_partition_window(void *context, const struct merged_window *merged)
{
	const struct merge_partition *partition = context;
	struct merged_window positioned = *merged;

	positioned.position += partition->position;
	positioned.partition = partition->number;
	return partition->shared_sink->write(partition->shared_sink->context, &positioned);
}

static uint64_t map_partition_position(void *context, uint64_t position)
{
	const struct merge_partition *partition = context;

	return partition->shared_sink->map_position(partition->shared_sink->context,
						    partition->position + position);
}

static int save_partition_point(void *context, uint32_t number,
				const struct restore_point *restore_point)
{
	const struct merge_partition *partition = context;

	(void)number; /* it knows of one */
	return partition->shared_sink->save_restore_point(partition->shared_sink->context,
							  partition->number, restore_point);
}

static void cancel_partition(void *context)
{
	const struct merge_partition *partition = context;

	if (partition->shared_sink->cancel)
		partition->shared_sink->cancel(partition->shared_sink->context);
}

/* Without -u. */
static uint64_t n_expected_items(const struct merge_partition *partition)
{
	const uint64_t n =
		partition->n_items +
		(partition->restore_point ? partition->restore_point->result.n_items : 0);

	return n < partition->job.limit ? n : partition->job.limit;
}

static struct sink make_partition_sink(struct merge_partition *partition)
{
	struct sink sink = *partition->shared_sink;

	sink.context = partition;
	sink.write = write_partition_window;
	sink.cancel = cancel_partition;
	sink.map_position = sink.map_position ? map_partition_position : NULL;
	sink.base_offset += partition->position * sink.item_nbytes;
	sink.save_restore_point = sink.save_restore_point ? save_partition_point : NULL;
	sink.restore_point_interval = partition->restore_point_interval;
	sink.restore_point = partition->restore_point;
	sink.edges = &partition->edges;
	return sink;
}

static int merge_opened_partition(struct merge_partition *partition)
{
	const uint64_t begin_ns = clock_now_ns();
	const struct sink sink = make_partition_sink(partition);
	int r;

	if (partition->restore_point)
		partition->result = partition->restore_point->result;
	if (partition->n_items == 0)
		return 0;
	r = merge_runs(&partition->job, partition->runs, partition->n_runs,
		       partition->job.plan.merge_nbytes, &sink, &partition->result);
	if (r == 0 && !partition->job.unique &&
	    partition->result.n_items != n_expected_items(partition))
		r = fail(-EIO,
			 "internal error: a range of %" PRIu64 " records was merged to %" PRIu64
			 "; the output was not written",
			 n_expected_items(partition), partition->result.n_items);
	if (r == 0 && !sink.is_spilled_run)
		stats_add_partition(partition->job.stats, partition->number, begin_ns,
				    partition->n_items * sink.item_nbytes);
	return r;
}

/* The parts of the runs between two cuts. */
static int open_subruns(struct merge_partition *partition, const struct partition_extents *extents)
{
	partition->runs = calloc(extents->n_runs, sizeof *partition->runs);
	if (!partition->runs)
		return fail(-ENOMEM, "no memory for a merge of %u runs", extents->n_runs);
	for (uint32_t i = 0; i < extents->n_runs; i++) {
		const uint64_t begin = extents->begins[i], end = extents->ends[i];
		int r;

		partition->position += partition->job.unique ? 0 : begin;
		partition->n_items += end - begin;
		if (end == begin)
			continue;
		r = run_open_subrun(partition->job.layout, extents->runs[i], begin, end,
				    &partition->runs[partition->n_runs]);
		if (r < 0)
			return r;
		partition->n_runs++;
	}
	return 0;
}

/*
 * A range that was noted before is where it was, whatever of it the runs still have. What is
 * written of it already is the output's: a run has only the rest.
 */
static int resume_partition(struct merge_partition *partition)
{
	const struct partition_desc *recorded = partition->resume_from;
	const struct checkpoint_hooks *hooks = partition->job.checkpoint_hooks;
	const size_t edge_nbytes = layout_edge_nbytes(partition->job.layout);

	partition->position = recorded->position;
	if (partition->shared_sink->is_spilled_run)
		return 0;
	partition->restore_point = recorded->restore_point;
	if (partition->restore_point) {
		memcpy(partition->edges.first, partition->restore_point->first, edge_nbytes);
		memcpy(partition->edges.last, partition->restore_point->last, edge_nbytes);
		partition->edges.has_items = true;
	}
	if (!partition->has_next ||
	    n_expected_items(partition) == recorded[1].position - recorded->position)
		return 0;
	return hooks->report_mismatch(hooks->context, recorded->position,
				      recorded[1].position - recorded->position,
				      n_expected_items(partition));
}

static int open_partition(struct merge_partition *partition,
			  const struct partition_extents *extents)
{
	const size_t edge_nbytes = layout_edge_nbytes(partition->job.layout);
	int r;

	partition->edges.first = malloc(edge_nbytes);
	partition->edges.last = malloc(edge_nbytes);
	if (!partition->edges.first || !partition->edges.last)
		return fail(-ENOMEM, "no memory for a merge");
	r = open_subruns(partition, extents);
	return r == 0 && partition->resume_from ? resume_partition(partition) : r;
}

/* What it has found stays. */
static void close_partition(struct merge_partition *partition)
{
	for (uint32_t i = 0; i < partition->n_runs; i++)
		run_close(partition->runs[i]);
	free(partition->runs);
}

/* Of the limit of all, what those before it leave. */
static uint64_t remaining_partition_limit(uint64_t limit, const struct merge_partition *partition)
{
	if (limit == UINT64_MAX)
		return UINT64_MAX;
	return limit > partition->position ? limit - partition->position : 0;
}

int partition_merge(struct merge_partition *partition, const struct partition_extents *extents)
{
	int r = open_partition(partition, extents);

	partition->job.limit = remaining_partition_limit(partition->job.limit, partition);
	if (r == 0)
		r = merge_opened_partition(partition);
	close_partition(partition);
	return r;
}

void partition_free(struct merge_partition *partition)
{
	free(partition->edges.first);
	free(partition->edges.last);
}
