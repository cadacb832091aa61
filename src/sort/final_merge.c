/*
 * final_merge - runs become the output, which is checked, and gets its name (see sort_internal.h)
 */
#include "src/base/diagnostics.h"
#include "src/merge/partitions.h"
#include "src/merge/window_buffer_cache.h"
#include "src/sort/sort_internal.h"
#include "src/sort/distributed_sort.h"

/* What of the inputs is no record. */
static struct output_framing make_output_framing(struct sort *sort)
{
	return (struct output_framing){ sort->spec, sort->job.layout, sort->job.input, sort->inputs,
					&sort->resolved.header };
}

static int merge_all_runs(struct sort *sort)
{
	const uint64_t memory_nbytes = prepare_runs_merge_nbytes(sort);
	struct run_list *store = &sort->store;
	struct sink sink = sort_output_sink(&sort->output);
	int r;

	if (store->n == 0)
		return 0;
	if (sort->spec->comm)
		sink.edges = &sort->distributed.edges;
	stats_begin_phase(sort->job.stats, PHASE_FINAL_MERGE, prepare_runs_output_nbytes(sort));
	r = merge_in_partitions(&sort->job, store->runs, (uint32_t)store->n, memory_nbytes, &sink,
				&sort->integrity.result);
	window_buffer_cache_clear_all(&sort->job);
	if (r < 0)
		return r;
	stats_complete_phase(sort->job.stats);
	record_totals_add(&sort->integrity.totals, sort->integrity.result.totals);
	return 0;
}

int final_merge_run(struct sort *sort)
{
	const bool is_distributed = sort->spec->comm;
	uint64_t nbytes, n;
	int r = is_distributed ? distributed_place_partition(sort) : 0;

	if (r < 0)
		return r;
	nbytes = prepare_runs_output_nbytes(sort);
	n = is_distributed ? sort->distributed.n_total : nbytes / sort->job.layout->output_nbytes;
	sort->framing = make_output_framing(sort);
	sort_output_rechoose_io_mode(&sort->output, nbytes);
	r = sort_output_begin(&sort->output, &sort->framing, n);
	if (r == 0)
		r = merge_all_runs(sort);
	if (r == 0 && is_distributed)
		r = distributed_finish_partition(sort);
	return r < 0 ? r :
		       sort_output_end(&sort->output, is_distributed ?
							      sort->distributed.n_total :
							      sort->integrity.result.n_items);
}

int final_merge_check(struct sort *sort)
{
	int r = sort->spec->comm ? distributed_check_output(sort) :
				   integrity_check(&sort->integrity, &sort->job);

	if (r < 0 || !sort->spec->verify)
		return r;
	r = integrity_verify(&sort->integrity, &sort->job, sort_output_read_at, &sort->output,
			     sort_output_name(&sort->output));
	if (r < 0 || sort->output.joined)
		return r;
	return sort_output_verify_framing(&sort->output);
}

/* Of several ranks the first has the file, and commits it when all have theirs on it. */
int final_merge_commit(struct sort *sort)
{
	const bool is_distributed = sort->spec->comm;
	int r = 0;

	if (sort->checkpoint)
		r = checkpoint_close_sync_thread(sort->checkpoint);
	if (r == 0 && is_distributed)
		r = distributed_complete(sort);
	if (r < 0)
		return r; /* and ends others that wait for this rank */
	if (!is_distributed || !sort->output.joined)
		r = sort_output_commit(&sort->output);
	return is_distributed ? distributed_end(sort, r) : r;
}
