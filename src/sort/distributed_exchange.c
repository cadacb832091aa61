/*
 * distributed_exchange.c - give each rank its partition of all runs (see distributed_sort.h)
 *
 * Runs are exchanged
 *
 * - in memory (all_to_all.c), if all runs are resident and every rank has room for what it gets
 * - otherwise by storing them, in memory as far as possible, for other ranks to read
 *   (remote_runs.c)
 *
 * Ranks of the same host read each other's memory (peer_memory.h).
 *
 * In a merge all ranks see all inputs and need to know only where the partitions begin. Each rank
 * finds the beginning of its partition by itself (src/merge/cuts.h) and sends it to the
 * previous rank, whose partition ends there. So every record is in exactly one partition, whatever
 * the inputs are like. If inputs are not sorted, some partition ends before it begins, or the order
 * check finds a record, which may be the first of a partition.
 */
#include "src/sort/distributed_sort.h"

#include <errno.h>
#include <stdlib.h>

#include "io/input/part_inputs.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"
#include "src/merge/cuts.h"
#include "src/rungen/chunk_pool.h"
#include "src/sort/sort_internal.h"

/* Cut the own runs into n partitions. Free *ret_cuts also after a failure. */
static int split_own_runs(const struct sort *sort, uint32_t n, bool at_key_boundaries,
			  uint64_t **ret_cuts)
{
	const struct job *job = &sort->job;
	const struct run_list *own_runs = &sort->parent_runs;
	const struct splitter_params params = { n, job->limit, at_key_boundaries };

	*ret_cuts = calloc((n + (size_t)1) * own_runs->n + 1, sizeof **ret_cuts);
	if (!*ret_cuts)
		return fail(-ENOMEM, "no memory for %u partitions", n);
	return cuts_make(sort->spec->comm, job, own_runs->runs, (uint32_t)own_runs->n, &params,
			 *ret_cuts);
}

/*
 * Place part files that end at keys. cuts: of the n runs in sort.parent_runs; part i begins at
 * cuts[i * n] of the first run, and so on. They are summed over all ranks if these have different
 * runs. No file begins beyond the limit.
 */
static int place_part_files(struct sort *sort, const uint64_t *cuts)
{
	const uint32_t n = sort->spec->n_part_files;
	const size_t n_runs = sort->parent_runs.n;
	uint64_t *part_bounds = calloc(n + UINT64_C(1), sizeof *part_bounds);
	int r = 0;

	if (!part_bounds)
		return fail(-ENOMEM, "no memory for %u part files", n);
	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j < n_runs; j++)
			part_bounds[i] += cuts[i * n_runs + j];
	if (spec_exchanges_runs(sort->spec))
		r = comm_allreduce_sum(sort->spec->comm, part_bounds, n + (size_t)1);
	for (uint32_t i = 0; i <= n; i++)
		if (part_bounds[i] > sort->job.limit)
			part_bounds[i] = sort->job.limit;
	if (r == 0)
		sort_output_place_part_files(&sort->output, part_bounds);
	free(part_bounds);
	return r;
}

static int place_parts_globally(struct sort *sort)
{
	uint64_t *cuts;
	int r = split_own_runs(sort, sort->spec->n_part_files, true, &cuts);

	if (r == 0)
		r = place_part_files(sort, cuts);
	free(cuts);
	return r;
}

/* Cut the runs at the ranks' partitions and, if part files end at keys, at those. */
static int split_parent_runs(struct sort *sort)
{
	int r;

	sort->parent_runs = sort->runs;
	sort->runs = (struct run_list){ 0 };
	r = split_own_runs(sort, comm_size(sort->spec->comm), sort->job.unique,
			   &sort->distributed.cuts);
	return r == 0 && sort->spec->split_by_keys && !sort->job.unique ?
		       place_parts_globally(sort) :
		       r;
}

/*
 * Return whether this rank's runs can be sent as they are: they are all in host memory,
 * uncompressed, and not larger than in storage.
 */
static bool can_exchange_resident_runs(const struct sort *sort)
{
	const struct layout *layout = sort->job.layout;
	const enum compression_mode mode = sort->spec->compression.mode;

	return run_list_n_spilled(&sort->runs) == 0 && !sort->job.plan.copies_to_device &&
	       !sort->checkpoint && (mode == COMPRESS_AUTO || mode == COMPRESS_NONE) &&
	       layout->resident_nbytes <= layout->item_nbytes;
}

/* Return whether all ranks can, and there are not too many runs. */
static int can_all_exchange(struct sort *sort, bool *ret_can)
{
	uint64_t counts[] = { !can_exchange_resident_runs(sort), sort->runs.n };
	int r = comm_allreduce_sum(sort->spec->comm, counts, sizeof counts / sizeof counts[0]);

	if (r == 0)
		*ret_can = counts[0] == 0 && counts[1] <= PLAN_MAX_ALL_TO_ALL_RUNS;
	return r;
}

/* Return the memory that is available for runs of other ranks. */
static uint64_t find_free_memory(const struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t nbytes = spec_memory_nbytes(sort->spec);
	const uint64_t used_nbytes =
		plan->codec_nbytes + chunk_pool_trim(sort->job.chunk_pool) + plan->merge_nbytes;

	return nbytes > used_nbytes ? nbytes - used_nbytes : 0;
}

/*
 * The runs are merged into one before they are stored. The cut of that run is the sum of theirs,
 * except with -u, which drops items.
 */
static void merge_cuts(struct sort *sort)
{
	const unsigned n = comm_size(sort->spec->comm);
	const size_t n_runs = sort->parent_runs.n;
	uint64_t *cuts = sort->distributed.cuts;

	for (unsigned i = 0; i <= n && n_runs > 0; i++) {
		uint64_t sum = 0;

		for (size_t j = 0; j < n_runs; j++)
			sum += cuts[i * n_runs + j];
		cuts[i] = sum;
	}
	if (sort->job.unique) {
		free(cuts);
		sort->distributed.cuts = NULL;
	}
}

/* If a rank lacks the room, nothing is exchanged. */
static int try_all_to_all(struct sort *sort, bool *ret_is_done)
{
	bool fits = false;
	int r = split_parent_runs(sort);

	if (r == 0)
		r = all_to_all_fits(sort->spec->comm, &sort->job, &sort->parent_runs,
				    sort->distributed.cuts, find_free_memory(sort), &fits);
	*ret_is_done = fits;
	if (r == 0 && fits)
		return all_to_all_open(sort->spec->comm, sort->distributed.peer_memory, &sort->job,
				       &sort->parent_runs, sort->distributed.cuts, &sort->runs,
				       &sort->distributed.all_to_all);
	if (r == 0)
		merge_cuts(sort);
	sort->runs = sort->parent_runs;
	sort->parent_runs = (struct run_list){ 0 };
	return r;
}

/* Use the cuts of the runs that were merged. A limit may have shortened the merged run. */
static void reuse_cuts(struct sort *sort)
{
	const unsigned n = comm_size(sort->spec->comm);
	uint64_t *cuts = sort->distributed.cuts;

	sort->parent_runs = sort->runs;
	sort->runs = (struct run_list){ 0 };
	for (unsigned i = 0; i <= n && sort->parent_runs.n > 0; i++)
		if (cuts[i] > sort->parent_runs.runs[0]->n_items)
			cuts[i] = sort->parent_runs.runs[0]->n_items;
}

static int open_remote_runs(struct sort *sort)
{
	int r = 0;

	/* reading peer memory keeps a CPU busy */
	if (peer_memory_can_read_all(sort->distributed.peer_memory))
		sort->job.plan.n_fetchers = sort->job.plan.n_readers;
	if (sort->distributed.cuts)
		reuse_cuts(sort);
	else
		r = split_parent_runs(sort);
	if (r == 0)
		r = remote_runs_open(sort->spec->comm, sort->distributed.peer_memory, &sort->job,
				     &sort->parent_runs, sort->distributed.cuts,
				     &sort->distributed.remote_runs);
	return r < 0 ? r : remote_runs_append(sort->distributed.remote_runs, &sort->runs);
}

int distributed_exchange(struct sort *sort)
{
	bool can_exchange = false, is_done = false;
	int r = peer_memory_open(sort->spec->comm, !sort->spec->disable_shared_memory,
				 &sort->distributed.peer_memory);

	if (r == 0)
		r = can_all_exchange(sort, &can_exchange);
	if (r == 0 && can_exchange)
		r = try_all_to_all(sort, &is_done);
	if (r < 0 || is_done)
		return r;
	r = sort_store_resident_runs(sort);
	if (sort->checkpoint)
		checkpoint_freeze_runs(sort->checkpoint);
	return r < 0 ? r : open_remote_runs(sort);
}

/* --- inputs that are sorted already --- */

static int fail_memory(const struct sort *sort)
{
	return fail(-ENOMEM, "no memory for a merge of %zu runs", sort->parent_runs.n);
}

/*
 * Divide the items within the limit evenly. With -u all items of a key are in the same partition.
 */
static int find_lower_cuts(const struct sort *sort, uint64_t *ret_lower_cuts)
{
	const struct job *job = &sort->job;
	const struct run_list *parent_runs = &sort->parent_runs;
	const struct comm *comm = sort->spec->comm;
	const uint64_t n_items = runs_n_items(parent_runs->runs, parent_runs->n);
	const uint64_t n = n_items < job->limit ? n_items : job->limit;
	const uint64_t n_before = equal_share_begin(n, comm_rank(comm), comm_size(comm));

	return cuts_after_items(job->layout, parent_runs->runs, (uint32_t)parent_runs->n, n_before,
				job->unique, ret_lower_cuts);
}

/*
 * Send the beginning of the partition to the previous rank, and receive the end from the next one.
 * The last partition ends with the runs.
 */
static int find_upper_cuts(const struct sort *sort, const uint64_t *lower_cuts,
			   uint64_t *ret_upper_cuts)
{
	struct comm *comm = sort->spec->comm;
	const unsigned rank = comm_rank(comm);
	const size_t n_runs = sort->parent_runs.n, nbytes = n_runs * sizeof *lower_cuts;
	struct comm_transfer send;
	int r = 0;

	if (rank > 0)
		r = comm_send(comm, rank - 1, COMM_TAG_PARTITION_BOUNDS, lower_cuts, nbytes, &send);
	if (r == 0 && rank + 1 < comm_size(comm))
		r = comm_receive_wait(comm, rank + 1, COMM_TAG_PARTITION_BOUNDS, ret_upper_cuts,
				      nbytes);
	else
		for (size_t i = 0; i < n_runs; i++)
			ret_upper_cuts[i] = sort->parent_runs.runs[i]->n_items;
	if (r == 0 && rank > 0)
		r = comm_wait(comm, &send);
	return r;
}

/* All ranks find the same cuts, because they have the same blocks. */
static int place_parts_locally(struct sort *sort)
{
	const struct run_list *parent_runs = &sort->parent_runs;
	const uint32_t n = sort->spec->n_part_files;
	uint64_t *cuts = calloc((n + (size_t)1) * parent_runs->n + 1, sizeof *cuts);
	int r = cuts ? 0 : fail_memory(sort);

	if (r == 0 && parent_runs->n > 0)
		r = cuts_make(NULL, &sort->job, parent_runs->runs, (uint32_t)parent_runs->n,
			      &(struct splitter_params){ n, sort->job.limit, true }, cuts);
	if (r == 0)
		r = place_part_files(sort, cuts);
	free(cuts);
	return r;
}

int distributed_partition_inputs(struct sort *sort)
{
	uint64_t *lower_cuts, *upper_cuts;
	int r;

	sort->parent_runs = sort->runs;
	sort->runs = (struct run_list){ 0 };
	lower_cuts = calloc(sort->parent_runs.n + 1, 2 * sizeof *lower_cuts);
	if (!lower_cuts)
		return fail_memory(sort);
	upper_cuts = lower_cuts + sort->parent_runs.n;
	r = sort->parent_runs.n > 0 ? find_lower_cuts(sort, lower_cuts) : 0;
	if (r == 0)
		r = find_upper_cuts(sort, lower_cuts, upper_cuts);
	if (r == 0 && sort->spec->split_by_keys && !sort->job.unique)
		r = place_parts_locally(sort);
	if (r == 0)
		r = sort_slice_runs(sort, lower_cuts, upper_cuts);
	free(lower_cuts);
	return r;
}

int distributed_check_manifests(struct comm *comm, struct part_inputs *part_inputs)
{
	const size_t n = part_inputs ? part_inputs->n_files : 0;
	struct digest *totals = calloc(n + 1, sizeof *totals);
	int r = totals ? 0 : fail(-ENOMEM, "no memory for digests of %zu files", n), status = 0;

	_Static_assert(sizeof *totals == 2 * sizeof(uint64_t), "a digest is two sums");
	for (size_t i = 0; i < n && r == 0; i++)
		totals[i] = part_inputs_get_read_digest(part_inputs, i);
	if (r == 0)
		r = comm_allreduce_sum(comm, (uint64_t *)totals, 2 * n);
	for (size_t i = 0; i < n && r == 0 && status == 0 && comm_rank(comm) == 0; i++)
		status = part_inputs_check_digest(part_inputs, i, totals[i]);
	free(totals);
	return r < 0 ? r : distributed_broadcast_status(comm, status);
}
