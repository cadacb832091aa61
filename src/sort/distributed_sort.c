/*
 * distributed_sort.c - the steps of a sort that only several ranks have (see distributed_sort.h)
 */
#include "src/sort/distributed_sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/size.h"
#include "src/checkpoint/fingerprint.h"
#include "src/comm/comm.h"
#include "src/plan/job.h"
#include "src/sort/setup.h"
#include "src/sort/sort_internal.h"

static struct comm *comm_of(const struct sort *sort)
{
	return sort->spec->comm;
}

int distributed_broadcast_status(struct comm *comm, int r)
{
	uint64_t failed = r < 0;
	int status = comm_broadcast(comm, &failed, sizeof failed);

	if (status < 0 || comm_rank(comm) == 0)
		return status < 0 ? status : r;
	if (failed)
		comm_barrier(comm);
	return failed ? -ECANCELED : 0;
}

static int receive_description(struct comm *comm, const struct fingerprint *own,
			       struct fingerprint *ret_first)
{
	struct fingerprint first = { .nbytes = own->nbytes };
	int r = comm_broadcast(comm, &first.nbytes, sizeof first.nbytes);

	if (r < 0)
		return r;
	first.text = malloc(first.nbytes + 1);
	if (!first.text)
		return fail(-ENOMEM, "no memory for the description of rank 0");
	if (comm_rank(comm) == 0)
		memcpy(first.text, own->text, own->nbytes);
	r = comm_broadcast(comm, first.text, first.nbytes);
	if (r < 0)
		free(first.text);
	else
		*ret_first = first;
	return r;
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

int distributed_compare_descriptions(struct comm *comm, const struct fingerprint *own,
				     report_difference_fn *report, const void *context)
{
	struct fingerprint_difference difference;
	struct fingerprint first;
	int r = receive_description(comm, own, &first);

	if (r < 0)
		return r;
	r = distributed_elect_reporter(comm,
				       fingerprint_differs(&first, own, ACCEPT_NONE, &difference));
	if (r > 0)
		r = report(context, &difference);
	free(first.text);
	return r;
}

/* --- the input --- */

int distributed_check_spec(const struct sort_spec *spec)
{
	if (spec->zstd_level && spec->partial == PARTIAL_KEEP)
		return fail(-EINVAL,
			    "several ranks cannot append an incomplete record to a compressed "
			    "output; use another --partial, or do not compress");
	for (size_t i = 0; i < spec->n_inputs; i++)
		if (strcmp(spec->inputs[i], "-") == 0)
			return fail(-EINVAL, "standard input is not possible with several ranks");
	return 0;
}

int distributed_refuse_input(const char *path)
{
	struct stat status;

	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
		return fail(-EISDIR, "%s: cannot read: %m", path);
	return fail(-EINVAL,
		    "%s: several ranks require regular files as input; compressed files need a "
		    "seek table",
		    path);
}

int distributed_check_supported(const struct sort_spec *spec, const struct input *input)
{
	const char *stream = input_stream_name(input);
	const int r = distributed_check_spec(spec);

	if (r < 0)
		return r;
	if (stream)
		return distributed_refuse_input(stream);
	if (!spec->check_only && !spec->output_path)
		return fail(
			-EINVAL,
			"standard output is not possible with several ranks; name a file with -o");
	return 0;
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

static int report_spec_difference(const void *context,
				  const struct fingerprint_difference *difference)
{
	const struct sort_spec *spec = context;
	const char *host = comm_host(spec->comm, 0);

	if (difference->input_path)
		return fail(-EINVAL,
			    "%s: file differs: '%s' here, '%s' on rank 0 (%s); all ranks must see "
			    "the same inputs",
			    difference->input_path, difference->value, difference->saved_value,
			    host);
	if (difference->is_output_location)
		return fail(-EINVAL,
			    "%s: directory differs: '%s' here, '%s' on rank 0 (%s); all ranks must "
			    "see the same directory",
			    spec->output_path, difference->value, difference->saved_value, host);
	return fail(-EINVAL,
		    "%s: differs: '%s' here, '%s' on rank 0 (%s); give all ranks the same options",
		    difference->name, difference->value, difference->saved_value, host);
}

int distributed_compare_specs(const struct sort_spec *spec)
{
	struct fingerprint own = { 0 };
	int r = fingerprint_create(spec, true, &own);

	if (r == 0)
		r = distributed_compare_descriptions(spec->comm, &own, report_spec_difference,
						     spec);
	free(own.text);
	return r < 0 ? r : comm_barrier(spec->comm);
}

int distributed_begin(struct sort *sort)
{
	struct job *job = &sort->job;
	const unsigned rank = comm_rank(comm_of(sort)), n_ranks = comm_size(comm_of(sort));
	int r = distributed_compare_specs(sort->spec);
	unsigned first;
	uint64_t n;

	job->n_jobs_on_host = comm_host_size(comm_of(sort), &first);
	if (r < 0 || sort->spec->merge_inputs)
		return r;
	n = input_total_nbytes(job->input) / job->layout->record_nbytes;
	job->first_record = equal_share_begin(n, rank, n_ranks);
	job->end_record = equal_share_begin(n, rank + 1, n_ranks);
	job->has_end = true;
	input_start_at(job->input, job->first_record * job->layout->record_nbytes);
	input_end_at(job->input, job->end_record * job->layout->record_nbytes);
	return r;
}

/* --- the plan --- */

/* A rank's plan, as it is sent to all. */
struct rank_plan {
	uint64_t block_nbytes;
	uint32_t spill_cache_policy, output_cache_policy; /* the output, too: enum cache_policy */
};

/*
 * Use the largest block size of all ranks. A window must hold a block of each run, so the fan-in
 * shrinks.
 */
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
 * The ranks of a host share a page cache and write to the same file, where direct and buffered
 * writes block each other. So they use the policy of the first rank on the host. If that is the
 * adaptive one, each rank measures for itself, while the others write.
 */
static enum cache_policy apply_cache_policies(struct job *job, const struct rank_plan *plans)
{
	unsigned first;

	comm_host_size(job->comm, &first);
	cache_policy_apply_to_spill((enum cache_policy)plans[first].spill_cache_policy,
				    job->plan.n_writers, job->spill);
	return (enum cache_policy)plans[first].output_cache_policy;
}

int distributed_agree_plan(struct job *job, enum cache_policy *output_policy)
{
	const unsigned n = comm_size(job->comm);
	const struct rank_plan own_plan = { .block_nbytes = job->plan.block_nbytes,
					    .spill_cache_policy = setup_spill_cache_policy(job),
					    .output_cache_policy = *output_policy };
	struct rank_plan *plans = calloc(n, sizeof *plans);
	int r = plans ? comm_allgather(job->comm, &own_plan, sizeof own_plan, plans) :
			fail(-ENOMEM, "no memory for %u ranks", n);

	if (r == 0) {
		apply_max_block_size(job, plans, n);
		*output_policy = apply_cache_policies(job, plans);
	}
	free(plans);
	return r;
}

/* --- the output --- */

int distributed_number_items(struct comm *comm, uint64_t n, uint64_t **ret_begin)
{
	const unsigned n_ranks = comm_size(comm);
	uint64_t *begin = *ret_begin = calloc(n_ranks + (size_t)1, sizeof *begin), sum = 0;
	int r = begin ? comm_allgather(comm, &n, sizeof n, begin) :
			fail(-ENOMEM, "no memory for %u ranks", n_ranks);

	for (unsigned i = 0; i <= n_ranks && r == 0; i++) {
		const uint64_t n_of_rank = begin[i];

		begin[i] = sum;
		sum += n_of_rank;
	}
	return r;
}

int distributed_place_partition(struct sort *sort)
{
	const uint64_t n = runs_n_items(sort->runs.runs, sort->runs.n);
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	struct merge_edges *edges = &sort->distributed.edges;
	struct job *job = &sort->job;
	uint64_t remaining;
	int r = distributed_number_items(comm_of(sort), n, &sort->output.rank_begin);

	if (r == 0)
		r = file_set_agree_stripe(&sort->output.set);
	if (r < 0)
		return r;
	sort->output.begin = sort->output.rank_begin[comm_rank(comm_of(sort))];
	sort->distributed.n_total =
		u64_min(sort->output.rank_begin[comm_size(comm_of(sort))], job->limit);
	/* Limit the partition to its share of the limit of all ranks. */
	remaining = job->limit > sort->output.begin ? job->limit - sort->output.begin : 0;
	job->limit = remaining < n ? remaining : UINT64_MAX;
	sort->output.end = sort->output.begin + u64_min(n, job->limit);
	edges->first = calloc(1, edge_nbytes);
	edges->last = calloc(1, edge_nbytes);
	return edges->first && edges->last ? 0 : fail(-ENOMEM, "no memory for a merge");
}

int distributed_finish_partition(struct sort *sort)
{
	int r = sort->distributed.remote_runs ? remote_runs_finish(sort->distributed.remote_runs) :
						comm_barrier(comm_of(sort));

	if (r == 0 && sort->spec->merge_inputs)
		r = distributed_check_manifests(comm_of(sort), input_part_inputs(sort->job.input));
	return r < 0 ? r : sort_output_sync_ranks(&sort->output, sort->distributed.n_total);
}

/* --- the end --- */

/* Count the partitions that do not sort after the previous non-empty one. */
static uint64_t count_boundary_disorders(const struct sort *sort, const char *all_edges,
					 size_t nbytes)
{
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	const char *last = NULL;
	uint64_t n = 0;

	for (unsigned i = 0; i < comm_size(comm_of(sort)); i++) {
		const char *edges = all_edges + i * nbytes;

		if (!edges[0])
			continue;
		n += last &&
		     layout_is_disorder(sort->job.layout, sort->job.unique, last, edges + 1);
		last = edges + 1 + edge_nbytes;
	}
	return n;
}

static int check_partition_edges(struct sort *sort, uint64_t *ret_n_disorders)
{
	const size_t edge_nbytes = layout_edge_nbytes(sort->job.layout);
	const size_t nbytes = 1 + 2 * edge_nbytes;
	const struct merge_edges *edges = &sort->distributed.edges;
	char *own_edges = malloc((comm_size(comm_of(sort)) + 1) * nbytes);
	char *all_edges;
	int r;

	if (!own_edges)
		return fail(-ENOMEM, "no memory for the edges of partitions");
	all_edges = own_edges + nbytes;
	own_edges[0] = edges->has_items;
	memcpy(own_edges + 1, edges->first, edge_nbytes);
	memcpy(own_edges + 1 + edge_nbytes, edges->last, edge_nbytes);
	r = comm_allgather(comm_of(sort), own_edges, nbytes, all_edges);
	if (r == 0)
		*ret_n_disorders = count_boundary_disorders(sort, all_edges, nbytes);
	free(own_edges);
	return r;
}

/* Check the sums of all ranks as if one process had sorted everything. */
int distributed_check_output(struct sort *sort)
{
	const bool is_first = comm_rank(comm_of(sort)) == 0;
	struct integrity sums = sort->integrity;
	struct job job = sort->job;
	uint64_t n_boundary_disorders = 0;
	int r = check_partition_edges(sort, &n_boundary_disorders);

	/* All members are counts, or sums of hashes. */
	if (r == 0)
		r = comm_allreduce_sum(comm_of(sort), (uint64_t *)&sums,
				       sizeof sums / sizeof(uint64_t));
	if (r < 0)
		return r;
	sums.result.n_disorders += n_boundary_disorders;
	job.limit = sort->spec->limit; /* in place of the limit of the partition */
	if (is_first)
		r = integrity_check(&sums, &job);
	if (r == 0 && is_first && sums.result.n_items != sort->distributed.n_total)
		r = fail(-EIO,
			 "internal error: wrote %" PRIu64 " of %" PRIu64
			 " records; the output was not committed",
			 sums.result.n_items, sort->distributed.n_total);
	return distributed_broadcast_status(comm_of(sort), r);
}

void distributed_close(struct sort *sort)
{
	struct distributed_sort *distributed = &sort->distributed;

	remote_runs_close(distributed->remote_runs);
	all_to_all_close(distributed->all_to_all);
	peer_memory_close(distributed->peer_memory);
	file_set_close(&sort->output.set);
	free(distributed->cuts);
	free(distributed->edges.first);
	free(distributed->edges.last);
	*distributed = (struct distributed_sort){ 0 };
}

/* --- checkpoints --- */

/* Remove the checkpoints that other ranks have begun, before the failed rank aborts the job. */
static int abandon_checkpoint(struct comm *comm, struct checkpoint *checkpoint, unsigned failed,
			      int r, const struct captured_error *error)
{
	int status;

	checkpoint_stop(checkpoint);
	checkpoint_close(checkpoint);
	status = comm_barrier(comm);
	if (status == 0 && comm_rank(comm) == failed)
		return fail(r, "%s", error->text ? error->text : "no memory for a checkpoint");
	return status < 0 ? status : comm_barrier(comm) < 0 ? -EIO : -ECANCELED;
}

int distributed_open_checkpoint(const struct syscalls *io, const struct sort_spec *spec,
				const struct layout *layout, const struct input *input,
				uint64_t input_nbytes, struct checkpoint **ret_checkpoint)
{
	struct checkpoint *checkpoint = NULL;
	struct captured_error error = { 0 };
	struct message_capture *capture;
	int open_status = message_capture_begin(&capture), r;
	uint64_t failed; /* the lowest rank that has failed; the number of ranks if none has */

	if (open_status == 0) {
		open_status = checkpoint_open(io, spec, layout, input, input_nbytes, &checkpoint);
		message_capture_end(capture, &error);
	}
	failed = open_status < 0 ? comm_rank(spec->comm) : comm_size(spec->comm);
	r = comm_allreduce_min(spec->comm, &failed, 1, 1);
	if (r == 0 && failed < comm_size(spec->comm))
		r = abandon_checkpoint(spec->comm, checkpoint, (unsigned)failed, open_status,
				       &error);
	else
		*ret_checkpoint = checkpoint;
	free(error.text);
	return r;
}

int distributed_report_resumed(struct comm *comm, size_t n_runs, uint64_t nbytes,
			       uint64_t total_nbytes)
{
	uint64_t sums[] = { n_runs, nbytes };
	int r = comm_allreduce_sum(comm, sums, sizeof sums / sizeof sums[0]);

	if (r < 0 || sums[0] == 0 || comm_rank(comm) != 0)
		return r;
	notice("resuming: %" PRIu64 " %s %s of %s", sums[0],
	       sums[0] == 1 ? "run of all ranks holds" : "runs of all ranks hold",
	       size_format(sums[1]).text, size_format(total_nbytes).text);
	return 0;
}
