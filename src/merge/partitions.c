/*
 * partitions.c - divide a merge into partitions that are merged at the same time
 *
 *	run 0      [ 1 1 / 2 5 6 8 / 8 9 ]
 *	run 1      [ 1   / 4 5 7   / 8 8 9 ]
 *	partition    0     1         2
 *
 * A partition is the part of the merge between two splitters, at which every run is cut exactly
 * (cuts.c). It is a merge of its own, of its parts of the runs (run_open_subrun()): with its own
 * windows, a thread that feeds them, writers, and a share of the memory. Without -u its position in
 * the output is known in advance: the sum of its cuts. So several writers can write at distant
 * positions, as many as the memory bandwidth allows (io/output/output.h). The bytes of the output
 * do not depend on the number of partitions.
 *
 * At the end the last item of each partition is compared with the first of the next, like those of
 * two windows, and the results are added up.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"
#include "src/merge/cuts.h"
#include "src/merge/merge.h"
#include "src/merge/window.h"

struct partition {
	/* Used by the thread that merges it */
	struct job job; /* a copy with its own plan, windows and limit */
	struct sink sink;

	struct run **runs; /* n_runs: parts of runs, none of them empty */
	uint32_t n_runs;
	uint64_t n_items;  /* in them */
	uint64_t position; /* of its first item in the output; with -u 0 */

	/* Results */
	struct merge_edges edges;
	struct merge_result result;
};

struct partition_set {
	const struct job *job;
	const struct sink *sink;
	struct run *const *runs;
	uint32_t n_runs;
	struct plan plan; /* of each partition */
	uint32_t n, n_concurrent;
	bool at_key_boundaries; /* no key is in two partitions */
	/* n + 1 rows of n_runs (cuts.h); NULL: one partition with all of the runs. */
	uint64_t *cuts;
	struct partition *partitions; /* n */

	/* Shared by the threads that merge */
	atomic_uint n_claimed; /* without the first partition of each thread */
	atomic_int error;      /* the first, or 0 */
};

static const uint64_t *partition_starts(const struct partition_set *set, uint32_t number)
{
	return &set->cuts[(size_t)number * set->n_runs];
}

static const uint64_t *partition_ends(const struct partition_set *set, uint32_t number)
{
	return partition_starts(set, number) + set->n_runs;
}

/* --- One partition --- */

/* Open the parts of the runs between the partition's cuts. */
static int open_subruns(const struct partition_set *set, uint32_t number,
			struct partition *partition)
{
	const uint64_t *begins = partition_starts(set, number), *ends = partition_ends(set, number);

	partition->runs = calloc(set->n_runs, sizeof *partition->runs);
	if (!partition->runs)
		return fail(-ENOMEM, "no memory for a merge of %u runs", set->n_runs);
	for (uint32_t i = 0; i < set->n_runs; i++) {
		int r;

		partition->position += set->job->unique ? 0 : begins[i];
		partition->n_items += ends[i] - begins[i];
		if (begins[i] == ends[i])
			continue;
		r = run_open_subrun(set->job->layout, set->runs[i], begins[i], ends[i],
				    &partition->runs[partition->n_runs]);
		if (r < 0)
			return r;
		partition->n_runs++;
	}
	return 0;
}

static int open_partition(const struct partition_set *set, uint32_t number, uint32_t device_index,
			  struct window_buffer_cache *buffer_cache)
{
	const size_t edge_nbytes = layout_edge_nbytes(set->job->layout);
	struct partition *partition = &set->partitions[number];
	int r = 0;

	partition->edges.first = malloc(edge_nbytes);
	partition->edges.last = malloc(edge_nbytes);
	if (!partition->edges.first || !partition->edges.last)
		return fail(-ENOMEM, "no memory for a merge");
	if (set->cuts)
		r = open_subruns(set, number, partition);
	else
		partition->n_items = runs_n_items(set->runs, set->n_runs);
	partition->job = *set->job;
	partition->job.merge_device = device_index;
	partition->job.plan = set->plan;
	partition->job.window_buffers = buffer_cache;
	if (set->job->limit != UINT64_MAX) /* less what earlier partitions write */
		partition->job.limit -= u64_min(set->job->limit, partition->position);
	partition->sink = *set->sink;
	partition->sink.partition = number;
	partition->sink.base_position = partition->position;
	partition->sink.edges = &partition->edges;
	return r;
}

static int merge_opened_partition(const struct partition_set *set, struct partition *partition)
{
	const struct job *job = &partition->job;
	const uint64_t begin_ns = clock_now_ns();
	const uint64_t n_expected = partition->n_items < job->limit ? partition->n_items :
								      job->limit;
	int r;

	if (set->cuts && partition->n_items == 0)
		return 0;
	r = merge_runs(job, set->cuts ? partition->runs : set->runs,
		       set->cuts ? partition->n_runs : set->n_runs, job->plan.merge_nbytes,
		       &partition->sink, &partition->result);
	if (r == 0 && !job->unique && partition->result.n_items != n_expected)
		r = fail(-EIO,
			 "internal error: a partition of %" PRIu64 " records was merged to %" PRIu64
			 "; the output was not written",
			 n_expected, partition->result.n_items);
	if (r == 0 && set->cuts && !partition->sink.is_spilled_run)
		stats_add_partition(job->stats, partition->sink.partition, begin_ns,
				    partition->n_items * partition->sink.item_nbytes);
	return r;
}

/* Merge a partition. buffer_cache: for its windows; NULL: that of the device. */
static int merge_partition(const struct partition_set *set, uint32_t number, uint32_t device_index,
			   struct window_buffer_cache *buffer_cache)
{
	struct partition *partition = &set->partitions[number];
	int r = open_partition(set, number, device_index, buffer_cache);

	if (r == 0)
		r = merge_opened_partition(set, partition);
	/* The results stay until all partitions are merged. */
	for (uint32_t i = 0; i < partition->n_runs; i++)
		run_close(partition->runs[i]);
	free(partition->runs);
	return r;
}

/* --- All partitions, by several threads --- */

/*
 * Run thread `number`: merge the partition of that number, then those that no thread has claimed
 * yet, all by the same device and in the same window buffers. Threads are spread evenly over the
 * devices, and with several, on the NUMA node of their device. The first thread of each device uses
 * the window buffers of the device.
 */
static void merge_claimed_partitions(void *context, uint32_t number, uint32_t n_threads)
{
	struct partition_set *set = context;
	const uint32_t n_devices = set->job->n_devices, device_index = number % n_devices;
	const int node = n_devices > 1 ? set->job->devices[device_index].numa_node : NUMA_NODE_ANY;
	const struct numa_binding binding = numa_bind_thread(NUMA_SYSFS, node);
	struct window_buffer_cache *buffer_cache = NULL;
	uint32_t i = number;
	int r = number < n_devices ? 0 : window_buffer_cache_open(&buffer_cache);

	while (r == 0 && i < set->n && atomic_load(&set->error) == 0) {
		r = merge_partition(set, i, device_index, buffer_cache);
		i = n_threads + atomic_fetch_add(&set->n_claimed, 1);
	}
	if (r < 0) {
		int none = 0;

		atomic_compare_exchange_strong(&set->error, &none, r);
		if (set->sink->cancel) /* what the other threads write is no longer needed */
			set->sink->cancel(set->sink->context);
	}
	window_buffer_cache_close(buffer_cache);
	numa_unbind_thread(&binding);
}

/* Add up the results, and compare the neighbours at the borders of partitions. */
static void collect_results(const struct partition_set *set, struct merge_result *ret_result)
{
	struct merge_edges *output_edges = set->sink->edges;
	struct merge_edges *edges = NULL;

	*ret_result = (struct merge_result){ 0 };
	for (uint32_t i = 0; i < set->n; i++) {
		struct partition *partition = &set->partitions[i];
		const struct merge_result *result = &partition->result;

		ret_result->n_items += result->n_items;
		ret_result->n_windows += result->n_windows;
		ret_result->n_counted += result->n_counted;
		ret_result->n_disorders += result->n_disorders;
		record_totals_add(&ret_result->totals, result->totals);
		if (output_edges)
			merge_edges_append(set->job->layout, false, output_edges,
					   &partition->edges);
		if (!edges)
			edges = &partition->edges;
		else
			ret_result->n_disorders += merge_edges_append(
				set->job->layout, set->at_key_boundaries, edges, &partition->edges);
	}
}

static int merge_partitions(struct partition_set *set, struct merge_result *ret_result)
{
	int r;

	if (set->n_concurrent > set->job->n_devices) /* the kept buffers are of fewer windows */
		window_buffer_cache_clear_all(set->job);
	if (set->sink->set_n_partitions)
		set->sink->set_n_partitions(set->sink->context, set->n, set->plan.n_writers);
	set->partitions = calloc(set->n, sizeof *set->partitions);
	if (!set->partitions)
		return fail(-ENOMEM, "no memory for %u partitions", set->n);
	threads_run_numbered(set->n_concurrent, merge_claimed_partitions, set);
	r = atomic_load(&set->error);
	if (r == 0)
		collect_results(set, ret_result);
	for (uint32_t i = 0; i < set->n; i++) {
		free(set->partitions[i].edges.first);
		free(set->partitions[i].edges.last);
	}
	free(set->partitions);
	return r;
}

/* --- Choosing partitions --- */

/* Set the number of partitions that are merged at the same time, and the plan of each. */
static void plan_set(struct partition_set *set, uint64_t memory_nbytes)
{
	const struct job *job = set->job;
	const struct sink *sink = set->sink;
	const bool has_known_positions = !job->unique || sink->n_part_files ||
					 sink->positions_per_partition;
	/* The limit of a partition follows from its position. */
	const bool has_known_limits = !job->unique || job->limit == UINT64_MAX;
	uint64_t n_items;
	uint32_t max_partitions, n_resident;
	struct plan plan;

	set->n_concurrent = 1;
	set->plan = job->plan;
	set->plan.merge_nbytes = memory_nbytes;
	if (!has_known_positions || !has_known_limits)
		return;
	n_items = runs_n_items(set->runs, set->n_runs);
	max_partitions = sink->is_spilled_run ?
				 job->n_devices :
				 plan_max_partitions(&job->plan, &job->plan_request, n_items);
	n_resident = (uint32_t)runs_n_resident(set->runs, set->n_runs);
	set->n_concurrent = plan_partitions(&job->plan, &job->plan_request, memory_nbytes, n_items,
					    n_resident, set->n_runs - n_resident, max_partitions,
					    &plan);
	if (set->n_concurrent > 1)
		set->plan = plan;
}

/*
 * Return whether the items are spread over the partitions. Keys with a common prefix, few blocks,
 * or a limit that drops most items can leave nearly all items in one partition.
 */
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

/* Set the bounds of part files in the sink: the sums of the cuts, but at most the limit. */
static int set_part_file_bounds(const struct partition_set *set)
{
	const uint64_t limit = set->job->limit;
	uint64_t *bounds = calloc(set->n + UINT64_C(1), sizeof *bounds);

	if (!bounds)
		return fail(-ENOMEM, "no memory for %u part files", set->n);
	for (uint32_t i = 0; i <= set->n; i++) {
		for (uint32_t j = 0; j < set->n_runs; j++)
			bounds[i] += partition_starts(set, i)[j];
		if (bounds[i] > limit)
			bounds[i] = limit;
	}
	set->sink->set_part_bounds(set->sink->context, bounds);
	free(bounds);
	return 0;
}

/* Change to a single partition with all of the memory. */
static void merge_undivided(struct partition_set *set, uint64_t memory_nbytes)
{
	free(set->cuts);
	set->cuts = NULL;
	set->n = set->n_concurrent = 1;
	set->plan = set->job->plan;
	set->plan.merge_nbytes = memory_nbytes;
}

/* Set the partitions and their cuts. */
static int cut_set(struct partition_set *set, uint64_t memory_nbytes)
{
	const bool has_part_files = set->sink->n_part_files, unique = set->job->unique;
	struct splitter_params params = { .max_items = set->job->limit };
	int r;

	set->n = has_part_files ? set->sink->n_part_files : set->n_concurrent;
	set->at_key_boundaries = has_part_files || unique;
	if (set->n == 1 && !has_part_files)
		return 0;
	set->cuts = calloc((set->n + UINT64_C(1)) * set->n_runs, sizeof *set->cuts);
	if (!set->cuts)
		return fail(-ENOMEM, "no memory for %u partitions", set->n);
	params.n_partitions = set->n;
	params.at_key_boundaries = set->at_key_boundaries;
	r = cuts_make(NULL, set->job, set->runs, set->n_runs, &params, set->cuts);
	if (r == 0 && has_part_files && !unique)
		r = set_part_file_bounds(set);
	if (r < 0)
		return r;
	/* Part files are partitions, but a limit counts the records of all of them. */
	if (has_part_files ? !unique && set->job->limit != UINT64_MAX : !is_worth_splitting(set))
		merge_undivided(set, memory_nbytes);
	return 0;
}

int merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			uint64_t memory_nbytes, const struct sink *sink,
			struct merge_result *ret_result)
{
	struct partition_set set = { .job = job, .sink = sink, .runs = runs, .n_runs = n_runs };
	int r;

	plan_set(&set, memory_nbytes);
	r = cut_set(&set, memory_nbytes);
	if (r == 0)
		r = merge_partitions(&set, ret_result);
	free(set.cuts);
	return r;
}
