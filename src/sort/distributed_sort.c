/*
 * distributed_sort - what of a sort is one rank's, and what all ranks have to agree on (see
 * distributed_sort.h)
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

static struct comm *comm_of(const struct sort *sort)
{
	return sort->spec->comm;
}

static bool is_first(const struct sort *sort)
{
	return comm_rank(comm_of(sort)) == 0;
}

int distributed_broadcast_status(struct comm *comm, int r)
{
	uint64_t failed = r < 0;
	int status = comm_broadcast(comm, &failed, sizeof failed, 0);

	if (status < 0 || comm_rank(comm) == 0)
		return status < 0 ? status : r;
	if (failed)
		comm_barrier(comm);
	return failed ? -ECANCELED : 0;
}

int distributed_elect_reporter(struct comm *comm, bool has_error)
{
	const uint64_t no_rank = comm_size(comm);
	uint64_t first = has_error ? comm_rank(comm) : no_rank;
	int r = comm_allreduce_min(comm, &first, 1, 1);

	if (r < 0 || first == no_rank)
		return r;
	if (first == comm_rank(comm))
		return 1;
	comm_barrier(comm);
	return -ECANCELED;
}

static int broadcast_status(const struct sort *sort, int r)
{
	return distributed_broadcast_status(comm_of(sort), r);
}

/* --- the input --- */

static int check_output(const struct sort_spec *spec)
{
	if (!spec->output_path)
		return fail(-EINVAL,
			    "several ranks write to one file, and standard output is none; name a "
			    "file with -o");
	return 0;
}

int distributed_check_spec(const struct sort_spec *spec)
{
	if (spec->zstd_level && spec->partial == PARTIAL_KEEP)
		return fail(
			-EINVAL,
			"ranks that compress the output cannot append an incomplete last record "
			"to it; use --partial=drop or error, or an output that is not compressed");
	for (size_t i = 0; i < spec->n_inputs; i++)
		if (strcmp(spec->inputs[i], "-") == 0)
			return fail(-EINVAL, "several ranks need inputs that are files with names: "
					     "standard input is the first rank's alone");
	return 0;
}

int distributed_check_supported(const struct sort_spec *spec, const struct input *input)
{
	const int r = distributed_check_spec(spec);

	if (r < 0)
		return r;
	if (input_total_nbytes(input) == INPUT_SIZE_UNKNOWN)
		return fail(-EINVAL, "several ranks need inputs that are files, which each of them "
				     "reads a part of: of a pipe, or a compressed file without an "
				     "index, nobody knows where that begins");
	return spec->check_only ? 0 : check_output(spec);
}

int distributed_open_inputs(struct sort *sort, const struct sort_spec *spec,
			    const struct sort_observer *observer)
{
	const bool is_first = comm_rank(spec->comm) == 0;
	int r = 0;

	if (is_first)
		r = setup_open_inputs(spec, observer, &sort->resolved, &sort->job);
	if (r == 0 && is_first)
		r = distributed_check_supported(sort->spec, sort->job.input);
	r = distributed_broadcast_status(spec->comm, r);
	if (r == 0 && !is_first)
		r = setup_open_inputs(spec, observer, &sort->resolved, &sort->job);
	return r;
}

int distributed_receive_description(struct comm *comm, const struct fingerprint *own,
				    struct fingerprint *ret_first)
{
	struct fingerprint first = { .nbytes = own->nbytes };
	int r = comm_broadcast(comm, &first.nbytes, sizeof first.nbytes, 0);

	if (r < 0)
		return r;
	first.text = malloc(first.nbytes + 1);
	if (!first.text)
		return fail(-ENOMEM, "no memory for what the first rank sorts");
	if (comm_rank(comm) == 0)
		memcpy(first.text, own->text, own->nbytes);
	r = comm_broadcast(comm, first.text, first.nbytes, 0);
	if (r < 0)
		free(first.text);
	else
		*ret_first = first;
	return r;
}

static int report_spec_difference(const struct sort_spec *spec,
				  const struct fingerprint_difference *difference)
{
	const char *host = comm_host(spec->comm, 0);

	if (difference->input_path)
		return fail(-EINVAL,
			    "%s is another file here than the first rank's, on %s, or has changed: "
			    "here '%s', there '%s'; all ranks must see the same inputs",
			    difference->input_path, host, difference->value,
			    difference->saved_value);
	if (difference->is_output_location)
		return fail(-EINVAL,
			    "%s is in another directory here than the first rank's, on %s: here "
			    "'%s', there '%s'; all ranks must see the same directory",
			    spec->output_path, host, difference->value, difference->saved_value);
	return fail(-EINVAL,
		    "sorts something else than the first rank, on %s: %s: here '%s', there '%s'; "
		    "all ranks must be asked for the same",
		    host, difference->name, difference->value, difference->saved_value);
}

static int compare_descriptions(const struct sort_spec *spec, const struct fingerprint *first,
				const struct fingerprint *own)
{
	struct fingerprint_difference difference;
	const bool differs = fingerprint_differs(first, own, ACCEPT_NONE, &difference);
	const int r = distributed_elect_reporter(spec->comm, differs);

	return r > 0 ? report_spec_difference(spec, &difference) : r;
}

static int compare_with_first(const struct sort_spec *spec)
{
	struct fingerprint own = { 0 }, first;
	int r = fingerprint_create_collective(spec, &own);

	if (r == 0)
		r = distributed_receive_description(spec->comm, &own, &first);
	if (r == 0) {
		r = compare_descriptions(spec, &first, &own);
		free(first.text);
	}
	free(own.text);
	return r;
}

int distributed_compare_specs(const struct sort_spec *spec)
{
	const int r = compare_with_first(spec);

	return r < 0 ? r : comm_barrier(spec->comm);
}

uint64_t distributed_input_begin(const struct comm *comm, unsigned rank, uint64_t n)
{
	return (uint64_t)((uint128_t)n * rank / comm_size(comm));
}

int distributed_begin(struct sort *sort)
{
	struct job *job = &sort->job;
	const unsigned rank = comm_rank(comm_of(sort));
	int r = distributed_compare_specs(sort->spec);
	unsigned first;
	uint64_t n;

	job->n_jobs_on_host = comm_host_size(comm_of(sort), &first);
	if (r < 0 || sort->spec->merge_inputs)
		return r;
	n = input_total_nbytes(job->input) / job->layout->record_nbytes;
	job->first_record = distributed_input_begin(comm_of(sort), rank, n);
	job->end_record = distributed_input_begin(comm_of(sort), rank + 1, n);
	job->has_end = true;
	input_start_at(job->input, job->first_record * job->layout->record_nbytes);
	input_end_at(job->input, job->end_record * job->layout->record_nbytes);
	return r;
}

/* --- the plan --- */

/* What each plans, as it is told to all. */
struct rank_plan {
	uint64_t block_nbytes;
	uint32_t spill_cache_policy,
		output_cache_policy; /* of the page cache (enum page_cache_use) */
};

/* A window has room for a block of each run: with longer ones, of fewer. */
static void apply_max_block_size(struct job *job, const struct rank_plan *plans, unsigned n)
{
	struct plan *plan = &job->plan;
	uint64_t max_nbytes = plan->block_nbytes;

	for (unsigned i = 0; i < n; i++)
		max_nbytes = plans[i].block_nbytes > max_nbytes ? plans[i].block_nbytes :
								  max_nbytes;
	plan->fan_in = (uint32_t)((uint128_t)plan->fan_in * plan->block_nbytes / max_nbytes);
	plan->fan_in = plan->fan_in < 2 ? 2 : plan->fan_in;
	plan->block_nbytes = max_nbytes;
	job->plan_request.min_block_nbytes = max_nbytes;
}

/*
 * Ranks of one machine have one page cache, and write to one file at the same time, where direct
 * writes and others wait for each other: so they do what the first of them has chosen. If that is
 * to find out which way is faster, each does for itself, while the others write.
 */
static void apply_cache_policies(struct sort *sort, const struct rank_plan *plans)
{
	unsigned first;

	comm_host_size(comm_of(sort), &first);
	cache_policy_apply_to_spill((enum cache_policy)plans[first].spill_cache_policy,
				    sort->job.spill);
	sort_output_choose_io_mode(&sort->output,
				   (enum cache_policy)plans[first].output_cache_policy);
}

int distributed_agree_plan(struct sort *sort)
{
	const unsigned n = comm_size(comm_of(sort));
	const struct rank_plan own_plan = {
		.block_nbytes = sort->job.plan.block_nbytes,
		.spill_cache_policy = setup_spill_cache_policy(&sort->job),
		.output_cache_policy = sort_output_cache_policy(&sort->output)
	};
	struct rank_plan *plans = calloc(n, sizeof *plans);
	int r = plans ? comm_allgather(comm_of(sort), &own_plan, sizeof own_plan, plans) :
			fail(-ENOMEM, "no memory for %u ranks", n);

	if (r == 0) {
		apply_max_block_size(&sort->job, plans, n);
		apply_cache_policies(sort, plans);
	}
	free(plans);
	return r;
}

/* --- the output --- */

static int allocate_edges(struct sort *sort)
{
	const size_t nbytes = layout_edge_nbytes(sort->job.layout);
	struct merge_edges *edges = &sort->distributed.edges;

	edges->first = calloc(1, nbytes);
	edges->last = calloc(1, nbytes);
	return edges->first && edges->last ? 0 : fail(-ENOMEM, "no memory for a merge");
}

/* So much of the own range is within the limit of all. */
static void limit_partition(struct job *job, uint64_t begin, uint64_t n)
{
	const uint64_t remaining = job->limit > begin ? job->limit - begin : 0;

	job->limit = remaining < n ? remaining : UINT64_MAX;
}

/* Where in the whole each rank begins, of which this one has n items. */
static int locate_partitions(struct sort *sort, uint64_t n)
{
	const unsigned n_ranks = comm_size(comm_of(sort));
	struct distributed_sort *distributed = &sort->distributed;
	uint64_t *rank_begin = sort->output.rank_begin = calloc(n_ranks, sizeof *rank_begin);
	int r = rank_begin ? comm_allgather(comm_of(sort), &n, sizeof n, rank_begin) :
			     fail(-ENOMEM, "no memory for %u ranks", n_ranks);

	for (unsigned i = 0; i < n_ranks && r == 0; i++) {
		const uint64_t n_of_rank = rank_begin[i];

		rank_begin[i] = distributed->n_total;
		distributed->n_total += n_of_rank;
	}
	return r < 0 ? r : sort_output_agree_stripe(&sort->output);
}

int distributed_place_partition(struct sort *sort)
{
	const uint64_t n = runs_n_items(sort->store.runs, sort->store.n);
	struct distributed_sort *distributed = &sort->distributed;
	int r = locate_partitions(sort, n);

	if (r < 0)
		return r;
	sort->output.begin = sort->output.rank_begin[comm_rank(comm_of(sort))];
	if (distributed->n_total > sort->job.limit)
		distributed->n_total = sort->job.limit;
	limit_partition(&sort->job, sort->output.begin, n);
	sort->output.end = sort->output.begin + (n < sort->job.limit ? n : sort->job.limit);
	return allocate_edges(sort);
}

int distributed_finish_partition(struct sort *sort)
{
	int r = sort->distributed.remote_runs ? remote_runs_finish(sort->distributed.remote_runs) :
						comm_barrier(comm_of(sort));

	if (r == 0 && sort->spec->merge_inputs)
		r = distributed_check_manifests(comm_of(sort), sort->job.input);
	return r < 0 ? r : sort_output_sync_ranks(&sort->output, sort->distributed.n_total);
}

/* --- the end --- */

/* What is added up of all ranks. */
struct global_totals {
	struct record_totals totals;
	uint64_t n_items, n_disorders, n_counted;
};

enum { N_GLOBAL_TOTALS = sizeof(struct global_totals) / sizeof(uint64_t) };

/* Of the ranks' ranges, one behind the other, how many do not begin behind the one before. */
static uint64_t count_boundary_disorders(const struct sort *sort, const char *all_edges,
					 size_t nbytes)
{
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	const char *last = NULL;
	uint64_t n = 0;

	for (unsigned i = 0; i < comm_size(comm_of(sort)); i++) {
		const char *edges = all_edges + i * nbytes;
		int order;

		if (!edges[0])
			continue;
		order = last ? layout_compare_edges(sort->job.layout, last, edges + 1) : -1;
		n += order > 0 || (order == 0 && sort->job.unique);
		last = edges + 1 + edge_nbytes;
	}
	return n;
}

static int check_partition_edges(struct sort *sort, uint64_t *ret_n_disorders)
{
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	const size_t nbytes = 1 + 2 * edge_nbytes;
	const struct merge_edges *edges = &sort->distributed.edges;
	char *own_edges = calloc(1, nbytes);
	char *all_edges = calloc(comm_size(comm_of(sort)), nbytes);
	int r = own_edges && all_edges ? 0 : fail(-ENOMEM, "no memory for the ends of all ranges");

	if (r == 0) {
		own_edges[0] = edges->has_items;
		memcpy(own_edges + 1, edges->first, edge_nbytes);
		memcpy(own_edges + 1 + edge_nbytes, edges->last, edge_nbytes);
		r = comm_allgather(comm_of(sort), own_edges, nbytes, all_edges);
	}
	if (r == 0)
		*ret_n_disorders = count_boundary_disorders(sort, all_edges, nbytes);
	free(own_edges);
	free(all_edges);
	return r;
}

/* As if one process had found all of it. */
static int check_global_totals(const struct sort *sort, const struct global_totals *sums)
{
	const struct integrity combined = {
		.totals = sums->totals,
		.result = { .n_items = sums->n_items,
			    .n_disorders = sums->n_disorders,
			    .n_counted = sums->n_counted },
	};
	struct job job = sort->job;

	job.limit = sort->spec->limit; /* and not that of the own range */
	return integrity_check(&combined, &job);
}

int distributed_check_output(struct sort *sort)
{
	const struct merge_result *result = &sort->integrity.result;
	struct global_totals sums = { .totals = sort->integrity.totals,
				      .n_items = result->n_items,
				      .n_disorders = result->n_disorders,
				      .n_counted = result->n_counted };
	uint64_t n_boundary_disorders = 0;
	int r = check_partition_edges(sort, &n_boundary_disorders);

	if (r == 0)
		r = comm_allreduce_sum(comm_of(sort), (uint64_t *)&sums, N_GLOBAL_TOTALS);
	if (r < 0)
		return r;
	sums.n_disorders += n_boundary_disorders;
	if (is_first(sort))
		r = check_global_totals(sort, &sums);
	if (r == 0 && is_first(sort) && sums.n_items != sort->distributed.n_total)
		r = fail(-EIO,
			 "internal error: %" PRIu64 " of %" PRIu64
			 " records were written; the output was not",
			 sums.n_items, sort->distributed.n_total);
	return broadcast_status(sort, r);
}

int distributed_complete(struct sort *sort)
{
	int r = is_first(sort) ? 0 : sort_output_close_shared(&sort->output);

	return r < 0 ? r : comm_barrier(comm_of(sort));
}

int distributed_end(struct sort *sort, int r)
{
	r = broadcast_status(sort, r);
	sort->distributed.is_complete = r == 0;
	return r;
}

void distributed_abandon(const struct sort *sort, int r)
{
	peer_memory_revoke(sort->distributed.peer_memory);
	comm_fail(comm_of(sort), r);
}

void distributed_close(struct sort *sort)
{
	struct distributed_sort *distributed = &sort->distributed;

	remote_runs_close(distributed->remote_runs);
	all_to_all_close(distributed->all_to_all);
	peer_memory_close(distributed->peer_memory);
	sort_output_drop_foreign(&sort->output);
	free(distributed->cuts);
	free(distributed->edges.first);
	free(distributed->edges.last);
	*distributed = (struct distributed_sort){ 0 };
}
