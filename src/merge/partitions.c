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
#include "src/merge/window_buffer_cache.h"

struct partition_set {
	const struct job *job;
	const struct plan *plan; /* of each */
	const struct sink *sink;
	struct run *const *runs;
	uint32_t n_runs, n;
	bool at_key_boundaries; /* no key is in two of them */
	/* n + 1 rows of n_runs: where each partition begins in the runs, and where the last ends */
	uint64_t *cuts;
	struct merge_partition *partitions; /* n */

	/* Of whoever merges them */
	atomic_uint n_claimed; /* besides the first of each thread */
	atomic_int error;      /* the first, or 0 */
};

/* Where a range begins in the runs, and where it ends. */
static const uint64_t *partition_starts(const struct partition_set *set, uint32_t number)
{
	return &set->cuts[(size_t)number * set->n_runs];
}

static const uint64_t *partition_ends(const struct partition_set *set, uint32_t number)
{
	return partition_starts(set, number) + set->n_runs;
}

/* By a worker. windows: NULL: in the memory that it has for them. */
static int merge_one_partition(struct partition_set *set, uint32_t i, uint32_t device_index,
			       struct window_buffer_cache *buffer_cache)
{
	const struct sink *sink = set->sink;
	const struct partition_extents extents = { set->runs, set->n_runs, partition_starts(set, i),
						   partition_ends(set, i) };
	struct merge_partition *partition = &set->partitions[i];

	partition->number = i;
	partition->job = *set->job;
	partition->job.merge_device = device_index;
	partition->job.plan = *set->plan;
	partition->job.window_buffers = buffer_cache;
	partition->shared_sink = sink;
	return partition_merge(partition, &extents);
}

static void fail_partitions(struct partition_set *set, int r)
{
	int none = 0;

	atomic_compare_exchange_strong(&set->error, &none, r);
	if (set->sink->cancel) /* what others write is of no use any more */
		set->sink->cancel(set->sink->context);
}

/* Of several devices, each has its threads near it. */
static struct numa_binding bind_to_device_node(const struct job *job, uint32_t device_index)
{
	return numa_bind_thread(NUMA_SYSFS, job->n_devices > 1 ?
						    job->devices[device_index].numa_node :
						    NUMA_NODE_ANY);
}

/*
 * A thread's: the range of its number, and then what nobody has taken yet, in the same memory of
 * the same worker. Workers take turns in having one thread more, and the first thread has what
 * memory the worker keeps for windows.
 */
static void merge_claimed_partitions(void *context, uint32_t number, uint32_t n_threads)
{
	struct partition_set *set = context;
	const uint32_t n_devices = set->job->n_devices;
	const struct numa_binding binding = bind_to_device_node(set->job, number % n_devices);
	struct window_buffer_cache *buffer_cache = NULL;
	uint32_t i = number;
	int r = number < n_devices ? 0 : window_buffer_cache_open(&buffer_cache);

	while (r == 0 && i < set->n && atomic_load(&set->error) == 0) {
		r = merge_one_partition(set, i, number % n_devices, buffer_cache);
		i = n_threads + atomic_fetch_add(&set->n_claimed, 1);
	}
	if (r < 0)
		fail_partitions(set, r);
	window_buffer_cache_close(buffer_cache);
	numa_unbind_thread(&binding);
}

static void free_merge_partitions(struct partition_set *set)
{
	for (uint32_t i = 0; i < set->n; i++)
		partition_free(&set->partitions[i]);
	free(set->partitions);
}

static void add_result(struct merge_result *sum, const struct merge_result *result)
{
	sum->n_items += result->n_items;
	sum->n_windows += result->n_windows;
	sum->n_counted += result->n_counted;
	sum->n_disorders += result->n_disorders;
	record_totals_add(&sum->totals, result->totals);
}

/* Of two neighbours at the end of one range and the beginning of the next. */
static bool is_disorder(const struct partition_set *set, const void *last, const void *first)
{
	const int order = layout_compare_edges(set->job->layout, last, first);

	return order > 0 || (order == 0 && set->at_key_boundaries);
}

/* Of one range after the other, the first item of the first and the last of the last. */
static void add_edges(const struct merge_edges *edges, size_t nbytes, struct merge_edges *total)
{
	if (!total)
		return;
	if (!total->has_items)
		memcpy(total->first, edges->first, nbytes);
	memcpy(total->last, edges->last, nbytes);
	total->has_items = true;
}

/* What all have found, and the order of each range's last item and the next one's first. */
static void collect_results(const struct partition_set *set, struct merge_result *ret_result)
{
	const struct merge_edges *previous = NULL;

	*ret_result = (struct merge_result){ 0 };
	for (uint32_t i = 0; i < set->n; i++) {
		const struct merge_partition *partition = &set->partitions[i];

		add_result(ret_result, &partition->result);
		if (!partition->edges.has_items)
			continue;
		if (previous)
			ret_result->n_disorders +=
				is_disorder(set, previous->last, partition->edges.first);
		previous = &partition->edges;
		add_edges(&partition->edges, layout_edge_nbytes(set->job->layout),
			  set->sink->edges);
	}
}

/* In how many ranges side by side, and with which plan each. */
static uint32_t plan_partition_set(const struct job *job, struct run *const *runs, uint32_t n_runs,
				   uint64_t memory_nbytes, const struct sink *sink,
				   struct plan *ret_plan)
{
	const bool has_known_positions = !job->unique || sink->n_part_files ||
					 sink->positions_per_partition;
	/* What of a limit is left for a range is known by its place. */
	const bool has_known_limits = !job->unique || job->limit == UINT64_MAX;
	uint64_t n_items;
	uint32_t max_partitions, n_resident, n;
	struct plan plan;

	*ret_plan = job->plan;
	ret_plan->merge_nbytes = memory_nbytes;
	if (!has_known_positions || !has_known_limits)
		return 1;
	n_items = runs_n_items(runs, n_runs);
	max_partitions = sink->is_spilled_run ?
				 job->n_devices :
				 plan_max_partitions(&job->plan, &job->plan_request, n_items);
	n_resident = (uint32_t)runs_n_resident(runs, n_runs);
	n = plan_partitions(&job->plan, &job->plan_request, memory_nbytes, n_items, n_resident,
			    n_runs - n_resident, max_partitions, &plan);
	if (n > 1)
		*ret_plan = plan;
	return n;
}

/* Keys that begin alike, few blocks, or a limit that drops much may leave nearly all in one. */
static bool is_worth_splitting(const struct partition_set *set)
{
	uint64_t n_items = 0, n_largest = 0;

	for (uint32_t i = 0; i < set->n; i++) {
		uint64_t n = 0;

		for (uint32_t j = 0; j < set->n_runs; j++)
			n += partition_ends(set, i)[j] - partition_starts(set, i)[j];
		n_items += n;
		n_largest = n > n_largest ? n : n_largest;
	}
	return plan_worth_splitting(n_items, n_largest, set->n);
}

/* As ranges, some of them side by side: as many as the plan is for. */
static int merge_partitioned(struct partition_set *set, uint32_t n_concurrent,
			     struct merge_result *ret_result)
{
	int r;

	if (n_concurrent > set->job->n_devices) /* what is kept is of fewer, which had more */
		window_buffer_cache_clear_all(set->job);
	if (set->sink->set_n_partitions)
		set->sink->set_n_partitions(set->sink->context, set->n);
	set->partitions = calloc(set->n, sizeof *set->partitions);
	if (!set->partitions)
		return fail(-ENOMEM, "no memory for %u ranges", set->n);
	threads_run_numbered(n_concurrent, merge_claimed_partitions, set);
	r = atomic_load(&set->error);
	if (r == 0)
		collect_results(set, ret_result);
	free_merge_partitions(set);
	return r;
}

static int merge_unpartitioned(const struct partition_set *set, uint64_t memory_nbytes,
			       struct merge_result *ret_result)
{
	if (set->sink->set_n_partitions)
		set->sink->set_n_partitions(set->sink->context, 1);
	return merge_runs(set->job, set->runs, set->n_runs, memory_nbytes, set->sink, ret_result);
}

/* A part begins at the sum of its cuts; none begins behind the limit. */
static int set_part_file_bounds(const struct partition_set *set)
{
	const uint64_t limit = set->job->limit;
	uint64_t *bounds = calloc(set->n + UINT64_C(1), sizeof *bounds);
	int r;

	if (!bounds)
		return fail(-ENOMEM, "no memory for %u parts", set->n);
	for (uint32_t i = 0; i <= set->n; i++) {
		for (uint32_t j = 0; j < set->n_runs; j++)
			bounds[i] += partition_starts(set, i)[j];
		if (bounds[i] > limit)
			bounds[i] = limit;
	}
	r = set->sink->set_part_bounds(set->sink->context, bounds);
	free(bounds);
	return r;
}

/* Each part is a range; but where there is a limit, it is one of all together. */
static int merge_part_files(struct partition_set *set, uint32_t n_concurrent,
			    uint64_t memory_nbytes, struct merge_result *ret_result)
{
	const bool unique = set->job->unique;
	int r = unique ? 0 : set_part_file_bounds(set);

	if (r < 0)
		return r;
	return unique || set->job->limit == UINT64_MAX ?
		       merge_partitioned(set, n_concurrent, ret_result) :
		       merge_unpartitioned(set, memory_nbytes, ret_result);
}

static int merge_set(struct partition_set *set, uint32_t n_concurrent, uint64_t memory_nbytes,
		     struct merge_result *ret_result)
{
	const bool has_part_files = set->sink->n_part_files;
	int r = 0;

	if (set->n > 1 || has_part_files)
		r = splitters_cut(set->job, set->runs, set->n_runs, set->n, set->at_key_boundaries,
				  set->cuts);
	if (r < 0)
		return r;
	if (has_part_files)
		return merge_part_files(set, n_concurrent, memory_nbytes, ret_result);
	return set->n > 1 && is_worth_splitting(set) ?
		       merge_partitioned(set, n_concurrent, ret_result) :
		       merge_unpartitioned(set, memory_nbytes, ret_result);
}

int merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			uint64_t memory_nbytes, const struct sink *sink,
			struct merge_result *ret_result)
{
	struct partition_set set = { .job = job, .sink = sink, .runs = runs, .n_runs = n_runs };
	struct plan plan;
	const uint32_t n_concurrent =
		plan_partition_set(job, runs, n_runs, memory_nbytes, sink, &plan);
	int r;

	set.plan = &plan;
	set.n = sink->n_part_files ? sink->n_part_files : n_concurrent;
	set.at_key_boundaries = sink->n_part_files || job->unique;
	set.cuts = calloc((set.n + UINT64_C(1)) * n_runs, sizeof *set.cuts);
	r = set.cuts ? merge_set(&set, n_concurrent, memory_nbytes, ret_result) :
		       fail(-ENOMEM, "no memory for %u ranges", set.n);
	free(set.cuts);
	return r;
}
