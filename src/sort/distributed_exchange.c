/*
 * distributed_exchange - each rank gets its range of the runs of all (see distributed_sort.h)
 *
 *	who can be read where it is					peer_memory.h
 *	all have theirs in memory, and room for what comes of others	all_to_all.h
 *	else all store what they have, in memory as far as it goes	remote_runs.h
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/exchange/global_splitters.h"
#include "src/rungen/chunk_pool.h"
#include "src/comm/comm.h"
#include "src/sort/setup.h"
#include "src/sort/distributed_sort.h"

/* The own runs into so many ranges; *ret_cuts: as of range_cut(), to be freed in any case. */
static int split_own_runs(const struct sort *sort, uint32_t n, bool at_key_boundaries,
			  uint64_t **ret_cuts)
{
	const struct job *job = &sort->job;
	const struct run_list *own_runs = &sort->parent_runs;
	const struct splitter_params params = { n, job->limit, at_key_boundaries };

	*ret_cuts = calloc((n + (size_t)1) * own_runs->n + 1, sizeof **ret_cuts);
	if (!*ret_cuts)
		return fail(-ENOMEM, "no memory for %u ranges", n);
	return global_splitters_cut(sort->spec->comm, job, own_runs->runs, (uint32_t)own_runs->n,
				    &params, *ret_cuts);
}

/* And of those of other ranks, if they are of other runs; but none is behind the limit. */
int distributed_place_part_files(struct sort *sort, const uint64_t *cuts)
{
	const uint32_t n = sort->spec->n_part_files;
	const size_t n_runs = sort->parent_runs.n;
	uint64_t *part_bounds = calloc(n + UINT64_C(1), sizeof *part_bounds);
	int r = 0;

	if (!part_bounds)
		return fail(-ENOMEM, "no memory for %u parts", n);
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
		r = distributed_place_part_files(sort, cuts);
	free(cuts);
	return r;
}

/* The runs into what is each rank's, and, where part files end at keys, into those. */
static int split_parent_runs(struct sort *sort)
{
	int r;

	sort->parent_runs = sort->store;
	sort->store = (struct run_list){ 0 };
	r = split_own_runs(sort, comm_size(sort->spec->comm), sort->job.unique,
			   &sort->distributed.cuts);
	return r == 0 && sort->spec->split_by_keys && !sort->job.unique ?
		       place_parts_globally(sort) :
		       r;
}

/*
 * Is all that this rank has in memory of the host, to be sent as it lies? What is to be packed, or
 * is narrower when it is stored, is better stored.
 */
static bool can_exchange_resident_runs(const struct sort *sort)
{
	const struct layout *layout = sort->job.layout;
	const enum compression_mode mode = sort->spec->compression.mode;

	return run_list_n_stored(&sort->store) == 0 && !sort->job.plan.copies_to_device &&
	       !sort->checkpoint && (mode == COMPRESS_AUTO || mode == COMPRESS_NONE) &&
	       layout->resident_nbytes <= layout->item_nbytes;
}

/* Can all, and are there not too many runs? */
static int can_all_exchange(struct sort *sort, bool *ret_can)
{
	uint64_t counts[] = { !can_exchange_resident_runs(sort), sort->store.n };
	int r = comm_allreduce_sum(sort->spec->comm, counts, sizeof counts / sizeof counts[0]);

	if (r == 0)
		*ret_can = counts[0] == 0 && counts[1] <= PLAN_MAX_ALL_TO_ALL_RUNS;
	return r;
}

/* The memory that is left for runs of others. */
static uint64_t find_free_memory(const struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t nbytes = setup_memory_nbytes(sort->spec);
	const uint64_t used_nbytes =
		plan->codec_nbytes + chunk_pool_trim(sort->job.chunk_pool) + plan->merge_nbytes;

	return nbytes > used_nbytes ? nbytes - used_nbytes : 0;
}

/*
 * What was cut is merged to one run before it is stored. Of that comes before a splitter what comes
 * before it in each of them; but not with -u, which then drops some.
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

/* Where not all have room for what they would get, everything is as before. */
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
				       &sort->parent_runs, sort->distributed.cuts, &sort->store,
				       &sort->distributed.all_to_all);
	if (r == 0)
		merge_cuts(sort);
	sort->store = sort->parent_runs;
	sort->parent_runs = (struct run_list){ 0 };
	return r;
}

/* The run that all was merged to, as what it was made of was cut; a limit may have shortened it. */
static void reuse_cuts(struct sort *sort)
{
	const unsigned n = comm_size(sort->spec->comm);
	uint64_t *cuts = sort->distributed.cuts;

	sort->parent_runs = sort->store;
	sort->store = (struct run_list){ 0 };
	for (unsigned i = 0; i <= n && sort->parent_runs.n > 0; i++)
		if (cuts[i] > run_n_items(sort->parent_runs.runs[0]))
			cuts[i] = run_n_items(sort->parent_runs.runs[0]);
}

static int open_remote_runs(struct sort *sort)
{
	int r = 0;

	/* What is read where it is keeps a processor busy. */
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
	return r < 0 ? r : remote_runs_append(sort->distributed.remote_runs, &sort->store);
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
	r = prepare_runs_store_resident(sort);
	if (sort->checkpoint)
		checkpoint_freeze_runs(sort->checkpoint);
	return r < 0 ? r : open_remote_runs(sort);
}
