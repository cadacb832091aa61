/*
 * partition - one range of a merge (see partition.h)
 */
#include "src/merge/partition.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
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

static void cancel_partition(void *context)
{
	const struct merge_partition *partition = context;

	if (partition->shared_sink->cancel)
		partition->shared_sink->cancel(partition->shared_sink->context);
}

/* Without -u. */
static uint64_t n_expected_items(const struct merge_partition *partition)
{
	return partition->n_items < partition->job.limit ? partition->n_items :
							   partition->job.limit;
}

static struct sink make_partition_sink(struct merge_partition *partition)
{
	struct sink sink = *partition->shared_sink;

	sink.context = partition;
	sink.write = write_partition_window;
	sink.cancel = cancel_partition;
	sink.map_position = sink.map_position ? map_partition_position : NULL;
	sink.base_offset += partition->position * sink.item_nbytes;
	sink.edges = &partition->edges;
	return sink;
}

static int merge_opened_partition(struct merge_partition *partition)
{
	const uint64_t begin_ns = clock_now_ns();
	const struct sink sink = make_partition_sink(partition);
	int r;

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

static int open_partition(struct merge_partition *partition,
			  const struct partition_extents *extents)
{
	const size_t edge_nbytes = layout_edge_nbytes(partition->job.layout);

	partition->edges.first = malloc(edge_nbytes);
	partition->edges.last = malloc(edge_nbytes);
	if (!partition->edges.first || !partition->edges.last)
		return fail(-ENOMEM, "no memory for a merge");
	return open_subruns(partition, extents);
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
