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
static int cut_runs(const struct sort *sort, uint32_t n, bool at_keys, uint64_t **ret_cuts)
{
	const struct job *job = &sort->job;
	const struct run_store *own = &sort->whole;
	const struct range_wish wish = { n, job->limit, at_keys };

	*ret_cuts = calloc((n + (size_t)1) * own->n + 1, sizeof **ret_cuts);
	if (!*ret_cuts)
		return fail(-ENOMEM, "no memory for %u ranges", n);
	return range_cut(sort->spec->ranks, job, own->runs, (uint32_t)own->n, &wish, *ret_cuts);
}

/* And of those of other ranks, if they are of other runs; but none is behind the limit. */
int share_place_parts(struct sort *sort, const uint64_t *cuts)
{
	const uint32_t n = sort->spec->n_part_files;
	const size_t n_runs = sort->whole.n;
	uint64_t *begins = calloc(n + UINT64_C(1), sizeof *begins);
	int r = 0;

	if (!begins)
		return fail(-ENOMEM, "no memory for %u parts", n);
	for (size_t i = 0; i <= n; i++)
		for (size_t j = 0; j < n_runs; j++)
			begins[i] += cuts[i * n_runs + j];
	if (sort_spec_exchanges(sort->spec))
		r = ranks_sum(sort->spec->ranks, begins, n + (size_t)1);
	for (uint32_t i = 0; i <= n; i++)
		if (begins[i] > sort->job.limit)
			begins[i] = sort->job.limit;
	if (r == 0)
		result_place_parts(&sort->result, begins);
	free(begins);
	return r;
}

static int place_parts(struct sort *sort)
{
	uint64_t *cuts;
	int r = cut_runs(sort, sort->spec->n_part_files, true, &cuts);

	if (r == 0)
		r = share_place_parts(sort, cuts);
	free(cuts);
	return r;
}

/* The runs into what is each rank's, and, where part files end at keys, into those. */
static int cut_whole(struct sort *sort)
{
	int r;

	sort->whole = sort->store;
	sort->store = (struct run_store){ 0 };
	r = cut_runs(sort, ranks_size(sort->spec->ranks), sort->job.unique, &sort->share.cuts);
	return r == 0 && sort->spec->parts_at_keys && !sort->job.unique ? place_parts(sort) : r;
}

/*
 * Is all that this rank has in memory of the host, to be sent as it lies? What is to be packed, or
 * is narrower when it is stored, is better stored.
 */
static bool can_trade(const struct sort *sort)
{
	const struct layout *layout = sort->job.layout;
	const enum compression_mode mode = sort->spec->compression.mode;

	return run_store_n_stored(&sort->store) == 0 && !sort->job.plan.copies &&
	       !sort->checkpoint && (mode == COMPRESS_AUTO || mode == COMPRESS_NONE) &&
	       layout->resident_nbytes <= layout->item_nbytes;
}

/* Can all, and are there not too many runs? */
static int ask_all(struct sort *sort, bool *ret_all_can)
{
	uint64_t told[] = { !can_trade(sort), sort->store.n };
	int r = ranks_sum(sort->spec->ranks, told, sizeof told / sizeof told[0]);

	if (r == 0)
		*ret_all_can = told[0] == 0 && told[1] <= PLAN_MOST_TRADED_RUNS;
	return r;
}

/* The memory that is left for runs of others. */
static uint64_t find_room(const struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t nbytes = setup_memory_nbytes(sort->spec);
	const uint64_t taken_nbytes =
		plan->side_nbytes + chunk_pool_trim(sort->job.pool) + plan->merge_nbytes;

	return nbytes > taken_nbytes ? nbytes - taken_nbytes : 0;
}

/*
 * What was cut is merged to one run before it is stored. Of that comes before a splitter what comes
 * before it in each of them; but not with -u, which then drops some.
 */
static void keep_cuts(struct sort *sort)
{
	const unsigned n = ranks_size(sort->spec->ranks);
	const size_t n_runs = sort->whole.n;
	uint64_t *cuts = sort->share.cuts;

	for (unsigned i = 0; i <= n && n_runs > 0; i++) {
		uint64_t sum = 0;

		for (size_t j = 0; j < n_runs; j++)
			sum += cuts[i * n_runs + j];
		cuts[i] = sum;
	}
	if (sort->job.unique) {
		free(cuts);
		sort->share.cuts = NULL;
	}
}

/* Where not all have room for what they would get, everything is as before. */
static int trade(struct sort *sort, bool *ret_is_done)
{
	bool has_room = false;
	int r = cut_whole(sort);

	if (r == 0)
		r = trade_has_room(sort->spec->ranks, &sort->job, &sort->whole, sort->share.cuts,
				   find_room(sort), &has_room);
	*ret_is_done = has_room;
	if (r == 0 && has_room)
		return trade_open(sort->spec->ranks, sort->share.near, &sort->job, &sort->whole,
				  sort->share.cuts, &sort->store, &sort->share.trade);
	if (r == 0)
		keep_cuts(sort);
	sort->store = sort->whole;
	sort->whole = (struct run_store){ 0 };
	return r;
}

/* The run that all was merged to, as what it was made of was cut; a limit may have shortened it. */
static void take_cuts(struct sort *sort)
{
	const unsigned n = ranks_size(sort->spec->ranks);
	uint64_t *cuts = sort->share.cuts;

	sort->whole = sort->store;
	sort->store = (struct run_store){ 0 };
	for (unsigned i = 0; i <= n && sort->whole.n > 0; i++)
		if (cuts[i] > run_n_items(sort->whole.runs[0]))
			cuts[i] = run_n_items(sort->whole.runs[0]);
}

static int open_depot(struct sort *sort)
{
	int r = 0;

	/* What is read where it is keeps a processor busy. */
	if (near_has_all(sort->share.near))
		sort->job.plan.n_fetchers = sort->job.plan.n_readers;
	if (sort->share.cuts)
		take_cuts(sort);
	else
		r = cut_whole(sort);
	if (r == 0)
		r = depot_open(sort->spec->ranks, sort->share.near, &sort->job, &sort->whole,
			       sort->share.cuts, &sort->share.depot);
	return r < 0 ? r : depot_take(sort->share.depot, &sort->store);
}

int share_exchange(struct sort *sort)
{
	bool all_can = false, is_done = false;
	int r = near_open(sort->spec->ranks, !sort->spec->by_messages, &sort->share.near);

	if (r == 0)
		r = ask_all(sort, &all_can);
	if (r == 0 && all_can)
		r = trade(sort, &is_done);
	if (r < 0 || is_done)
		return r;
	r = runs_store_resident(sort);
	if (sort->checkpoint)
		checkpoint_leave_runs(sort->checkpoint);
	return r < 0 ? r : open_depot(sort);
}
