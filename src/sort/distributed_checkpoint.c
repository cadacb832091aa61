/*
 * distributed_checkpoint - the checkpoints of several ranks (see distributed_sort.h)
 *
 * Each rank keeps the runs of its part, and takes up what is there of them; nobody else need have
 * come as far. The output is all ranks', and none keeps it: their merge is begun anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

/* As without ranks, but nobody hears why not. */
static int try_open_checkpoint(struct sort *sort, struct captured_error *ret_error)
{
	struct message_capture *capture;
	int r = message_capture_begin(&capture);

	if (r < 0)
		return r;
	r = checkpoint_open(sort->job.io, sort->spec, sort->job.layout, sort->job.input,
			    &sort->checkpoint);
	message_capture_end(capture, ret_error);
	return r;
}

/* The first rank that cannot have its own; as many as there are if all can. */
static int find_failed_rank(struct comm *comm, int r, unsigned *ret_failed)
{
	const unsigned n = comm_size(comm);
	uint64_t *failed = calloc(n, sizeof *failed), has_failed = r < 0;
	unsigned first = 0;
	int status;

	if (!failed)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	status = comm_allgather(comm, &has_failed, sizeof has_failed, failed);
	while (first < n && !failed[first])
		first++;
	free(failed);
	*ret_failed = first;
	return status;
}

/* What others have begun for nothing is removed, before the one that has failed ends them. */
static int abandon_checkpoint(struct sort *sort, unsigned failed, int r,
			      const struct captured_error *error)
{
	struct comm *comm = sort->spec->comm;
	int status;

	if (r == 0) {
		checkpoint_stop(sort->checkpoint);
		checkpoint_close(sort->checkpoint);
		sort->checkpoint = NULL;
	}
	status = comm_barrier(comm);
	if (status == 0 && comm_rank(comm) == failed)
		return fail(r, "%s", error->text ? error->text : "no memory for a checkpoint");
	return status < 0 ? status : comm_barrier(comm) < 0 ? -EIO : -ECANCELED;
}

int distributed_open_checkpoint(struct sort *sort)
{
	struct comm *comm = sort->spec->comm;
	struct captured_error error = { 0 };
	const int open_status = try_open_checkpoint(sort, &error);
	unsigned failed = 0;
	int r = find_failed_rank(comm, open_status, &failed);

	if (r == 0 && failed < comm_size(comm))
		r = abandon_checkpoint(sort, failed, open_status, &error);
	free(error.text);
	return r;
}

int distributed_report_resumed(struct sort *sort)
{
	const uint64_t record_nbytes = sort->job.layout->record_nbytes;
	uint64_t sums[] = { sort->store.n, sort->integrity.totals.read.n_records };
	char in_runs[32], input[32];
	int r = comm_allreduce_sum(sort->spec->comm, sums, sizeof sums / sizeof sums[0]);

	if (r < 0 || sums[0] == 0 || comm_rank(sort->spec->comm) != 0)
		return r;
	size_format(sums[1] * record_nbytes, in_runs);
	size_format(input_total_nbytes(sort->job.input), input);
	notice("resuming: %" PRIu64 " runs of all ranks hold %s of %s", sums[0], in_runs, input);
	return 0;
}
