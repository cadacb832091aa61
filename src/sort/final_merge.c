/*
 * final_merge - runs become the output, which is checked, and gets its name (see sort_internal.h)
 */
#include "src/base/diagnostics.h"
#include "src/merge/partitions.h"
#include "src/merge/window_buffers.h"
#include "src/sort/sort_internal.h"
#include "src/sort/distributed_sort.h"

/* What of the inputs is no record. */
static struct around around_of(struct sort *sort)
{
	return (struct around){ sort->spec, sort->job.layout, sort->job.input, sort->inputs,
				&sort->settled.header };
}

static int merge_all(struct sort *sort)
{
	const uint64_t memory_nbytes = runs_leave_nbytes(sort);
	struct run_store *store = &sort->store;
	struct sink sink = result_sink(&sort->result);
	int r;

	if (store->n == 0)
		return 0;
	if (sort_spec_keeps_output(sort->spec))
		checkpoint_start_merge(sort->checkpoint, store, &sink);
	if (sort->spec->ranks)
		sink.edges = &sort->share.edges;
	stats_begin_phase(sort->job.stats, PHASE_MERGE, runs_output_nbytes(sort));
	r = merge_in_ranges(&sort->job, store->runs, (uint32_t)store->n, memory_nbytes, &sink,
			    &sort->account.result);
	window_memory_drop_all(&sort->job);
	if (r < 0)
		return r;
	stats_complete_phase(sort->job.stats);
	ledger_add(&sort->account.ledger, sort->account.result.ledger);
	return 0;
}

int writing_merge(struct sort *sort)
{
	const bool is_shared = sort->spec->ranks;
	uint64_t nbytes, n;
	int r = is_shared ? share_place(sort) : 0;

	if (r < 0)
		return r;
	nbytes = runs_output_nbytes(sort);
	n = is_shared ? sort->share.n_all : nbytes / sort->job.layout->output_nbytes;
	sort->around = around_of(sort);
	result_choose_way_late(&sort->result, nbytes);
	r = result_begin(&sort->result, &sort->around, n);
	if (r == 0)
		r = merge_all(sort);
	if (r == 0 && is_shared)
		r = share_settle(sort);
	return r < 0 ? r :
		       result_end(&sort->result,
				  is_shared ? sort->share.n_all : sort->account.result.n_items);
}

int writing_check(struct sort *sort)
{
	int r = sort->spec->ranks ? share_check(sort) : account_check(&sort->account, &sort->job);

	if (r < 0 || !sort->spec->verify)
		return r;
	r = account_verify(&sort->account, &sort->job, result_read_at, &sort->result,
			   result_name(&sort->result));
	if (r < 0 || sort->result.is_joined)
		return r;
	return result_verify_around(&sort->result);
}

/* Of several ranks the first has the file, and commits it when all have theirs on it. */
int writing_commit(struct sort *sort)
{
	const bool is_shared = sort->spec->ranks;
	int r = 0;

	if (sort->checkpoint && !sort_spec_keeps_output(sort->spec))
		r = checkpoint_end_saving(sort->checkpoint);
	if (r == 0 && is_shared)
		r = share_complete(sort);
	if (r < 0)
		return r; /* and ends others that wait for this rank */
	if (!is_shared || !sort->result.is_joined)
		r = result_commit(&sort->result);
	return is_shared ? share_end(sort, r) : r;
}
