/*
 * distributed_sort - what of a sort is one rank's, and what all ranks have to agree on (see distributed_sort.h)
 */
#include "src/sort/distributed_sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/checkpoint/fingerprint.h"
#include "src/plan/cache_policy.h"
#include "src/comm/comm.h"
#include "src/sort/setup.h"

static struct ranks *ranks_of(const struct sort *sort)
{
	return sort->spec->ranks;
}

static bool is_first(const struct sort *sort)
{
	return ranks_rank(ranks_of(sort)) == 0;
}

int share_agree_with_first(struct ranks *ranks, int r)
{
	uint64_t failed = r < 0;
	int told = ranks_broadcast(ranks, &failed, sizeof failed, 0);

	if (told < 0 || ranks_rank(ranks) == 0)
		return told < 0 ? told : r;
	if (failed)
		ranks_barrier(ranks);
	return failed ? -ECANCELED : 0;
}

int share_speak_first(struct ranks *ranks, bool complains)
{
	const uint64_t none = ranks_size(ranks);
	uint64_t first = complains ? ranks_rank(ranks) : none;
	int r = ranks_least(ranks, &first, 1, 1);

	if (r < 0 || first == none)
		return r;
	if (first == ranks_rank(ranks))
		return 1;
	ranks_barrier(ranks);
	return -ECANCELED;
}

static int agree_with_first(const struct sort *sort, int r)
{
	return share_agree_with_first(ranks_of(sort), r);
}

/* --- the input --- */

static int check_output(const struct sort_spec *spec)
{
	if (!spec->output_path)
		return fail_hint(-EINVAL, HINT_NAME_OUTPUT, 0,
				 "several ranks write to one file, and standard output is none");
	return 0;
}

int share_check_spec(const struct sort_spec *spec)
{
	if (spec->zstd_level && spec->partial == PARTIAL_KEEP)
		return fail_hint(-EINVAL, HINT_NO_PARTIAL, 0,
				 "ranks that compress the output cannot append an incomplete last "
				 "record to it");
	for (size_t i = 0; i < spec->n_inputs; i++)
		if (strcmp(spec->inputs[i], "-") == 0)
			return fail(-EINVAL, "several ranks need inputs that are files with names: "
					     "standard input is the first rank's alone");
	return 0;
}

int share_check_possible(const struct sort_spec *spec, const struct input *input)
{
	const int r = share_check_spec(spec);

	if (r < 0)
		return r;
	if (input_total_nbytes(input) == INPUT_SIZE_UNKNOWN)
		return fail(-EINVAL, "several ranks need inputs that are files, which each of them "
				     "reads a part of: of a pipe, or a compressed file without an "
				     "index, nobody knows where that begins");
	return spec->checks ? 0 : check_output(spec);
}

int share_open_inputs(struct sort *sort, const struct sort_spec *spec,
		      const struct sort_observer *observer)
{
	const bool is_first = ranks_rank(spec->ranks) == 0;
	int r = 0;

	if (is_first)
		r = setup_open_inputs(spec, observer, &sort->settled, &sort->job);
	if (r == 0 && is_first)
		r = share_check_possible(sort->spec, sort->job.input);
	r = share_agree_with_first(spec->ranks, r);
	if (r == 0 && !is_first)
		r = setup_open_inputs(spec, observer, &sort->settled, &sort->job);
	return r;
}

int share_receive_description(struct ranks *ranks, const struct description *own,
			      struct description *ret_first)
{
	struct description first = { .nbytes = own->nbytes };
	int r = ranks_broadcast(ranks, &first.nbytes, sizeof first.nbytes, 0);

	if (r < 0)
		return r;
	first.text = malloc(first.nbytes + 1);
	if (!first.text)
		return fail(-ENOMEM, "no memory for what the first rank sorts");
	if (ranks_rank(ranks) == 0)
		memcpy(first.text, own->text, own->nbytes);
	r = ranks_broadcast(ranks, first.text, first.nbytes, 0);
	if (r < 0)
		free(first.text);
	else
		*ret_first = first;
	return r;
}

static int say_difference(const struct sort_spec *spec, const struct difference *it)
{
	const char *host = ranks_host(spec->ranks, 0);

	if (it->input)
		return fail(-EINVAL,
			    "%s is another file here than the first rank's, on %s, or has changed: "
			    "here '%s', there '%s'; all ranks must see the same inputs",
			    it->input, host, it->is, it->was);
	if (it->is_place)
		return fail(-EINVAL,
			    "%s is in another directory here than the first rank's, on %s: here "
			    "'%s', there '%s'; all ranks must see the same directory",
			    spec->output_path, host, it->is, it->was);
	return fail(-EINVAL,
		    "sorts something else than the first rank, on %s: %s: here '%s', there '%s'; "
		    "all ranks must be asked for the same",
		    host, it->name, it->is, it->was);
}

static int compare_descriptions(const struct sort_spec *spec, const struct description *first,
				const struct description *own)
{
	struct difference difference;
	const bool differs = description_differs(first, own, ACCEPT_NONE, &difference);
	const int r = share_speak_first(spec->ranks, differs);

	return r > 0 ? say_difference(spec, &difference) : r;
}

static int check_same(const struct sort_spec *spec)
{
	struct description own = { 0 }, first;
	int r = description_make_meeting(spec, &own);

	if (r == 0)
		r = share_receive_description(spec->ranks, &own, &first);
	if (r == 0) {
		r = compare_descriptions(spec, &first, &own);
		free(first.text);
	}
	free(own.text);
	return r;
}

int share_meet(const struct sort_spec *spec)
{
	const int r = check_same(spec);

	return r < 0 ? r : ranks_barrier(spec->ranks);
}

uint64_t share_part_begin(const struct ranks *ranks, unsigned rank, uint64_t n)
{
	return (uint64_t)((uint128_t)n * rank / ranks_size(ranks));
}

int share_begin(struct sort *sort)
{
	struct job *job = &sort->job;
	const unsigned rank = ranks_rank(ranks_of(sort));
	int r = share_meet(sort->spec);
	unsigned first;
	uint64_t n;

	job->n_neighbours = ranks_count_neighbours(ranks_of(sort), &first);
	if (r < 0 || sort->spec->merges)
		return r;
	n = input_total_nbytes(job->input) / job->layout->record_nbytes;
	job->first_record = share_part_begin(ranks_of(sort), rank, n);
	job->end_record = share_part_begin(ranks_of(sort), rank + 1, n);
	job->has_end = true;
	input_start_at(job->input, job->first_record * job->layout->record_nbytes);
	input_end_at(job->input, job->end_record * job->layout->record_nbytes);
	return r;
}

/* --- the plan --- */

/* What each plans, as it is told to all. */
struct planned {
	uint64_t block_nbytes;
	uint32_t spill_use, output_use; /* of the page cache (enum page_cache_use) */
};

/* A window has room for a block of each run: with longer ones, of fewer. */
static void take_longest(struct job *job, const struct planned *all, unsigned n)
{
	struct plan *plan = &job->plan;
	uint64_t longest = plan->block_nbytes;

	for (unsigned i = 0; i < n; i++)
		longest = all[i].block_nbytes > longest ? all[i].block_nbytes : longest;
	plan->fan_in = (uint32_t)((uint128_t)plan->fan_in * plan->block_nbytes / longest);
	plan->fan_in = plan->fan_in < 2 ? 2 : plan->fan_in;
	plan->block_nbytes = longest;
	job->request.least_block_nbytes = longest;
}

/*
 * Ranks of one machine have one page cache, and write to one file at the same time, where direct
 * writes and others wait for each other: so they do what the first of them has chosen. If that is
 * to find out which way is faster, each does for itself, while the others write.
 */
static void take_uses(struct sort *sort, const struct planned *all)
{
	unsigned first;

	ranks_count_neighbours(ranks_of(sort), &first);
	page_cache_tell_spill((enum page_cache_use)all[first].spill_use, sort->job.spill);
	result_choose_way(&sort->result, (enum page_cache_use)all[first].output_use);
}

int share_agree(struct sort *sort)
{
	const unsigned n = ranks_size(ranks_of(sort));
	const struct planned own = { .block_nbytes = sort->job.plan.block_nbytes,
				     .spill_use = setup_spill_use(&sort->job),
				     .output_use = result_use(&sort->result) };
	struct planned *all = calloc(n, sizeof *all);
	int r = all ? ranks_gather_all(ranks_of(sort), &own, sizeof own, all) :
		      fail(-ENOMEM, "no memory for %u ranks", n);

	if (r == 0) {
		take_longest(&sort->job, all, n);
		take_uses(sort, all);
	}
	free(all);
	return r;
}

/* --- the output --- */

static int open_edges(struct sort *sort)
{
	const size_t nbytes = layout_edge_nbytes(sort->job.layout);
	struct merge_edges *edges = &sort->share.edges;

	edges->first = calloc(1, nbytes);
	edges->last = calloc(1, nbytes);
	return edges->first && edges->last ? 0 : fail(-ENOMEM, "no memory for a merge");
}

/* So much of the own range is within the limit of all. */
static void limit_own(struct job *job, uint64_t begin, uint64_t n)
{
	const uint64_t left = job->limit > begin ? job->limit - begin : 0;

	job->limit = left < n ? left : UINT64_MAX;
}

/* Where in the whole each rank begins, of which this one has n items. */
static int place_ranks(struct sort *sort, uint64_t n)
{
	const unsigned n_ranks = ranks_size(ranks_of(sort));
	struct share *share = &sort->share;
	uint64_t *begins = sort->result.begins = calloc(n_ranks, sizeof *begins);
	int r = begins ? ranks_gather_all(ranks_of(sort), &n, sizeof n, begins) :
			 fail(-ENOMEM, "no memory for %u ranks", n_ranks);

	for (unsigned i = 0; i < n_ranks && r == 0; i++) {
		const uint64_t n_of_rank = begins[i];

		begins[i] = share->n_all;
		share->n_all += n_of_rank;
	}
	return r < 0 ? r : result_agree_stripe(&sort->result);
}

int share_place(struct sort *sort)
{
	const uint64_t n = runs_n_items(sort->store.runs, sort->store.n);
	struct share *share = &sort->share;
	int r = place_ranks(sort, n);

	if (r < 0)
		return r;
	sort->result.begin = sort->result.begins[ranks_rank(ranks_of(sort))];
	if (share->n_all > sort->job.limit)
		share->n_all = sort->job.limit;
	limit_own(&sort->job, sort->result.begin, n);
	sort->result.end = sort->result.begin + (n < sort->job.limit ? n : sort->job.limit);
	return open_edges(sort);
}

int share_settle(struct sort *sort)
{
	int r = sort->share.depot ? depot_finish(sort->share.depot) : ranks_barrier(ranks_of(sort));

	if (r == 0 && sort->spec->merges)
		r = share_check_lists(ranks_of(sort), sort->job.input);
	return r < 0 ? r : result_meet(&sort->result, sort->share.n_all);
}

/* --- the end --- */

/* What is added up of all ranks. */
struct sums {
	struct ledger ledger;
	uint64_t n_items, n_disorders, n_counted;
};

enum { SUMS = sizeof(struct sums) / sizeof(uint64_t) };

/* Of the ranks' ranges, one behind the other, how many do not begin behind the one before. */
static uint64_t count_disorders(const struct sort *sort, const char *all, size_t nbytes)
{
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	const char *last = NULL;
	uint64_t n = 0;

	for (unsigned i = 0; i < ranks_size(ranks_of(sort)); i++) {
		const char *edges = all + i * nbytes;
		int order;

		if (!edges[0])
			continue;
		order = last ? layout_compare_edges(sort->job.layout, last, edges + 1) : -1;
		n += order > 0 || (order == 0 && sort->job.unique);
		last = edges + 1 + edge_nbytes;
	}
	return n;
}

static int compare_edges(struct sort *sort, uint64_t *ret_n_disorders)
{
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	const size_t nbytes = 1 + 2 * edge_nbytes;
	const struct merge_edges *edges = &sort->share.edges;
	char *mine = calloc(1, nbytes);
	char *all = calloc(ranks_size(ranks_of(sort)), nbytes);
	int r = mine && all ? 0 : fail(-ENOMEM, "no memory for the ends of all ranges");

	if (r == 0) {
		mine[0] = edges->has_any;
		memcpy(mine + 1, edges->first, edge_nbytes);
		memcpy(mine + 1 + edge_nbytes, edges->last, edge_nbytes);
		r = ranks_gather_all(ranks_of(sort), mine, nbytes, all);
	}
	if (r == 0)
		*ret_n_disorders = count_disorders(sort, all, nbytes);
	free(mine);
	free(all);
	return r;
}

/* As if one process had found all of it. */
static int account_for_all(const struct sort *sort, const struct sums *sums)
{
	const struct account all = {
		.ledger = sums->ledger,
		.result = { .n_items = sums->n_items,
			    .n_disorders = sums->n_disorders,
			    .n_counted = sums->n_counted },
	};
	struct job job = sort->job;

	job.limit = sort->spec->limit; /* and not that of the own range */
	return account_check(&all, &job);
}

int share_check(struct sort *sort)
{
	const struct merge_result *result = &sort->account.result;
	struct sums sums = { .ledger = sort->account.ledger,
			     .n_items = result->n_items,
			     .n_disorders = result->n_disorders,
			     .n_counted = result->n_counted };
	uint64_t n_between = 0;
	int r = compare_edges(sort, &n_between);

	if (r == 0)
		r = ranks_sum(ranks_of(sort), (uint64_t *)&sums, SUMS);
	if (r < 0)
		return r;
	sums.n_disorders += n_between;
	if (is_first(sort))
		r = account_for_all(sort, &sums);
	if (r == 0 && is_first(sort) && sums.n_items != sort->share.n_all)
		r = fail(-EIO,
			 "internal error: %" PRIu64 " of %" PRIu64
			 " records were written; the output was not",
			 sums.n_items, sort->share.n_all);
	return agree_with_first(sort, r);
}

int share_complete(struct sort *sort)
{
	int r = is_first(sort) ? 0 : result_leave(&sort->result);

	return r < 0 ? r : ranks_barrier(ranks_of(sort));
}

int share_end(struct sort *sort, int r)
{
	r = agree_with_first(sort, r);
	sort->share.is_complete = r == 0;
	return r;
}

void share_give_up(const struct sort *sort, int r)
{
	near_withdraw(sort->share.near);
	ranks_give_up(ranks_of(sort), r);
}

void share_close(struct sort *sort)
{
	struct share *share = &sort->share;

	depot_close(share->depot);
	trade_close(share->trade);
	near_close(share->near);
	result_forget_edges(&sort->result);
	free(share->cuts);
	free(share->edges.first);
	free(share->edges.last);
	*share = (struct share){ 0 };
}
