/*
 * distributed_presorted - of a merge by several ranks, what of the inputs is one's (see
 * distributed_sort.h)
 *
 * All ranks see all inputs, so nothing is exchanged but where ranges begin. That each finds by
 * itself, as a process does that merges one part of many (src/run/multiseq_partition.h), and
 * tells it to the rank before, whose range ends there. So every record of the inputs is in one
 * range, whatever they are like; and of inputs that are not in order some range ends before it
 * begins, or a record shows it when it is read, be it the first of a range.
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/merge/splitters.h"
#include "src/comm/comm.h"
#include "src/comm/tags.h"
#include "src/run/multiseq_partition.h"
#include "src/sort/distributed_sort.h"

static int fail_memory(const struct sort *sort)
{
	return fail(-ENOMEM, "no memory for a merge of %zu runs", sort->parent_runs.n);
}

/* Of what is within the limit each rank has as much. With -u no key may be in two ranges. */
static int find_lower_cuts(const struct sort *sort, uint64_t *ret_lower_cuts)
{
	const struct job *job = &sort->job;
	const struct run_list *parent_runs = &sort->parent_runs;
	const struct comm *comm = sort->spec->comm;
	const uint64_t n_items = runs_n_items(parent_runs->runs, parent_runs->n);
	const uint64_t n = n_items < job->limit ? n_items : job->limit;
	const uint64_t n_before = (uint64_t)((uint128_t)n * comm_rank(comm) / comm_size(comm));

	return job->unique ? multiseq_partition_at_key(job->layout, parent_runs->runs,
						       (uint32_t)parent_runs->n, n_before,
						       ret_lower_cuts) :
			     multiseq_partition(job->layout, parent_runs->runs,
						(uint32_t)parent_runs->n, n_before, ret_lower_cuts);
}

static int receive_upper_cuts(struct comm *comm, size_t nbytes, uint64_t *ret_upper_cuts)
{
	struct comm_transfer receive;
	int r = comm_receive(comm, comm_rank(comm) + 1, COMM_TAG_PARTITION_BOUNDS, ret_upper_cuts,
			     nbytes, &receive);

	return r < 0 ? r : comm_wait(comm, &receive);
}

/* Tell the rank before where the own range begins; where it ends says the next one, or nobody. */
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
		r = receive_upper_cuts(comm, nbytes, ret_upper_cuts);
	else
		for (size_t i = 0; i < n_runs; i++)
			ret_upper_cuts[i] = run_n_items(sort->parent_runs.runs[i]);
	if (r == 0 && rank > 0)
		r = comm_wait(comm, &send);
	return r;
}

/* All cut alike, as their blocks are. */
static int place_parts_locally(struct sort *sort)
{
	const struct run_list *parent_runs = &sort->parent_runs;
	const uint32_t n = sort->spec->n_part_files;
	uint64_t *cuts = calloc((n + (size_t)1) * parent_runs->n + 1, sizeof *cuts);
	int r = cuts ? 0 : fail_memory(sort);

	if (r == 0 && parent_runs->n > 0)
		r = splitters_cut(&sort->job, parent_runs->runs, (uint32_t)parent_runs->n, n, true,
				  NULL, cuts);
	if (r == 0)
		r = distributed_place_part_files(sort, cuts);
	free(cuts);
	return r;
}

int distributed_partition_inputs(struct sort *sort)
{
	uint64_t *lower_cuts, *upper_cuts;
	int r;

	sort->parent_runs = sort->store;
	sort->store = (struct run_list){ 0 };
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
		r = prepare_runs_slice(sort, lower_cuts, upper_cuts);
	free(lower_cuts);
	return r;
}

/* Digests of all files. NULL after a message. */
static struct digest *allocate_digests(const struct input *input)
{
	struct digest *digests = calloc(input_n_files(input) + 1, sizeof *digests);

	if (!digests)
		fail(-ENOMEM, "no memory for digests of %zu files", input_n_files(input));
	return digests;
}

/* What others have read is what all have, less what is known of here. */
static int record_other_reads(struct input *input, struct digest *totals)
{
	const size_t n = input_n_files(input);
	struct digest *own_digests = allocate_digests(input);
	int r;

	if (!own_digests)
		return -ENOMEM;
	input_get_read_digests(input, own_digests);
	for (size_t i = 0; i < n; i++) {
		totals[i].n_records -= own_digests[i].n_records;
		totals[i].sum -= own_digests[i].sum;
	}
	r = input_merge_read_digests(input, totals);
	free(own_digests);
	return r;
}

int distributed_check_manifests(struct comm *comm, struct input *input)
{
	struct digest *totals = allocate_digests(input);
	int r;

	_Static_assert(sizeof *totals == 2 * sizeof(uint64_t), "a digest is two sums");
	if (!totals)
		return -ENOMEM;
	input_get_read_digests(input, totals);
	r = comm_allreduce_sum(comm, (uint64_t *)totals, 2 * input_n_files(input));
	if (r == 0)
		r = distributed_broadcast_status(
			comm, comm_rank(comm) == 0 ? record_other_reads(input, totals) : 0);
	free(totals);
	return r;
}
