/*
 * distributed_checkpoint - the checkpoints of several ranks (see distributed_sort.h)
 *
 * Each rank keeps the runs of its part, and takes up what is there of them; nobody else need have
 * come as far. The output is all ranks', and none keeps it: their merge is begun anew.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/message_capture.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/comm/comm.h"
#include "src/sort/distributed_sort.h"

/* As without ranks, but nobody hears why not. */
static int try_open(struct sort *sort, struct reason *ret_reason)
{
	struct attempt *attempt;
	int r = attempt_begin(&attempt);

	if (r < 0)
		return r;
	r = checkpoint_open(sort->job.io, sort->spec, sort->job.layout, sort->job.input,
			    &sort->checkpoint);
	attempt_end(attempt, ret_reason);
	return r;
}

/* The first rank that cannot have its own; as many as there are if all can. */
static int find_failed(struct ranks *ranks, int r, unsigned *ret_failed)
{
	const unsigned n = ranks_size(ranks);
	uint64_t *failed = calloc(n, sizeof *failed), own = r < 0;
	unsigned first = 0;
	int told;

	if (!failed)
		return fail(-ENOMEM, "no memory for %u ranks", n);
	told = ranks_gather_all(ranks, &own, sizeof own, failed);
	while (first < n && !failed[first])
		first++;
	free(failed);
	*ret_failed = first;
	return told;
}

/* What others have begun for nothing is removed, before the one that has failed ends them. */
static int give_up(struct sort *sort, unsigned failed, int r, const struct reason *reason)
{
	struct ranks *ranks = sort->spec->ranks;
	int told;

	if (r == 0) {
		checkpoint_stop(sort->checkpoint, NULL);
		checkpoint_close(sort->checkpoint);
		sort->checkpoint = NULL;
	}
	told = ranks_barrier(ranks);
	if (told == 0 && ranks_rank(ranks) == failed)
		return fail_hint(r, reason->hint, reason->number, "%s",
				 reason->text ? reason->text : "no memory for a checkpoint");
	return told < 0 ? told : ranks_barrier(ranks) < 0 ? -EIO : -ECANCELED;
}

int share_open_checkpoint(struct sort *sort)
{
	struct ranks *ranks = sort->spec->ranks;
	struct reason reason = { 0 };
	const int opened = try_open(sort, &reason);
	unsigned failed = 0;
	int r = find_failed(ranks, opened, &failed);

	if (r == 0 && failed < ranks_size(ranks))
		r = give_up(sort, failed, opened, &reason);
	free(reason.text);
	return r;
}

int share_tell_resumed(struct sort *sort)
{
	const uint64_t record_nbytes = sort->job.layout->record_nbytes;
	uint64_t sums[] = { sort->store.n, sort->account.ledger.read.n_records };
	char in_runs[32], input[32];
	int r = ranks_sum(sort->spec->ranks, sums, sizeof sums / sizeof sums[0]);

	if (r < 0 || sums[0] == 0 || ranks_rank(sort->spec->ranks) != 0)
		return r;
	size_format(sums[1] * record_nbytes, in_runs);
	size_format(input_total_nbytes(sort->job.input), input);
	tell("resuming: %" PRIu64 " runs of all ranks hold %s of %s", sums[0], in_runs, input);
	return 0;
}
