/*
 * sort_phases.c - the phases of a sort (see sort.c)
 */
#include "src/sort/sort_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/spill/memory_tier.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/check/verify.h"
#include "src/cost/calibrate.h"
#include "src/merge/merge.h"
#include "src/merge/window.h"
#include "src/merge/cuts.h"
#include "src/rungen/chunk_pool.h"
#include "src/sort/distributed_sort.h"

/* --- runs --- */

static uint64_t merge_nbytes(struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t resident_nbytes =
		sort->job.chunk_pool ? chunk_pool_trim(sort->job.chunk_pool) : 0;
	/* a device with memory of its own does not share it */
	const uint64_t stored_nbytes =
		plan->copies_to_device ? 0 : memory_tier_used_nbytes(spill_memory(sort->job.spill));
	const uint64_t used_nbytes = resident_nbytes + stored_nbytes +
				     all_to_all_received_nbytes(sort->distributed.all_to_all);
	const uint64_t remaining_nbytes =
		plan->device_nbytes > used_nbytes ? plan->device_nbytes - used_nbytes : 0;

	return remaining_nbytes > plan->merge_nbytes ? remaining_nbytes : plan->merge_nbytes;
}

static uint64_t merged_output_nbytes(const struct sort *sort)
{
	return runs_n_items(sort->runs.runs, sort->runs.n) * sort->job.layout->output_nbytes;
}

/* Set what the progress display expects of the last phases. */
static void set_output_totals(const struct sort *sort, uint64_t nbytes)
{
	stats_set_phase_total(sort->job.stats, PHASE_FINAL_MERGE, nbytes);
	stats_set_phase_total(sort->job.stats, PHASE_VERIFY, sort->spec->verify ? nbytes : 0);
}

/* Restore the runs of an earlier process from the checkpoint. */
static int restore_runs(struct sort *sort)
{
	struct job *job = &sort->job;
	struct run_origin origin;
	int r = checkpoint_restore(sort->checkpoint, job, NULL, &sort->runs, &origin);

	if (r < 0)
		return r;
	record_totals_add(&sort->integrity.totals, origin.totals);
	job->first_record += origin.totals.read.n_records;
	input_start_at(job->input, job->first_record * job->layout->record_nbytes);
	return sort->spec->comm ?
		       distributed_report_resumed(sort->spec->comm, sort->runs.n, origin.nbytes,
						  input_total_nbytes(job->input)) :
		       0;
}

static void record_run_counts(struct sort *sort)
{
	sort->summary.n_runs = sort->runs.n;
	sort->summary.n_runs_spilled = sort->spec->merge_inputs ?
					       input_runs_n_spilled(sort->inputs) :
					       run_list_n_spilled(&sort->runs);
	set_output_totals(sort, merged_output_nbytes(sort));
}

/*
 * Return an upper bound of the space that the resident runs take when they are spilled: each block
 * takes whole pages.
 */
static uint64_t resident_run_nbytes(const struct sort *sort, size_t n_spilled)
{
	const struct job *job = &sort->job;
	const uint64_t nbytes =
		runs_n_items(sort->runs.runs + n_spilled, sort->runs.n - n_spilled) *
		job->layout->resident_nbytes;

	return nbytes + (nbytes / job->plan.block_nbytes + 1) * SPILL_ALIGN_NBYTES;
}

int sort_store_resident_runs(struct sort *sort)
{
	const struct job *job = &sort->job;
	const size_t n_spilled = run_list_n_spilled(&sort->runs);
	const size_t n_resident = sort->runs.n - n_spilled;
	int r;

	if (n_resident == 0)
		return 0;
	/* If runs are stored in memory, this memory is returned while they are merged. */
	if (job->plan.keep_last_run_in_memory)
		memory_tier_raise_limit(spill_memory(job->spill),
					resident_run_nbytes(sort, n_spilled));
	r = merge_to_run(job, &sort->runs, n_spilled, sort->runs.n - n_spilled, merge_nbytes(sort),
			 &sort->integrity.totals);
	if (r == 0)
		record_run_counts(sort);
	return r;
}

static int check_shard(const struct sort *sort)
{
	const struct input *input = sort->job.input;

	if (input_total_nbytes(input) == INPUT_SIZE_UNKNOWN)
		return fail(-EINVAL,
			    "--shard: inputs must be files: the size of a pipe is unknown");
	if (input_fields(input) && sort->spec->header_nbytes)
		return fail(
			-EINVAL,
			"--shard: not possible with .npy files; --split writes all part files at "
			"once, each a .npy file");
	if (sort_output_framing_nbytes(input, sort->spec->header_nbytes))
		return fail(-EINVAL, "--shard: not possible with headers or incomplete records");
	return 0;
}

/* Read the run from the beginning, which reports the file and the record that is out of order. */
static int check_run_order(const struct layout *layout, struct run *run)
{
	struct digest digest = { 0 };
	unsigned char *items;
	int r = 0;

	if (run->n_items == 0)
		return 0;
	items = malloc(run_block_start(run, 1) * layout->item_nbytes); /* no block has more items */
	if (!items)
		return fail(-ENOMEM, "no memory for records");
	for (uint64_t i = 0; i < run->n_blocks && r == 0; i++)
		r = run_read(run, i, 1, items, &digest);
	free(items);
	return r;
}

/*
 * A part of an input ends before it begins, so some input is not sorted. The cuts do not tell which
 * one.
 */
static int fail_unsorted(const struct sort *sort)
{
	const struct run_list *parent_runs = &sort->parent_runs;
	int r = 0;

	for (size_t i = 0; i < parent_runs->n && r == 0; i++)
		r = check_run_order(sort->job.layout, parent_runs->runs[i]);
	return r < 0 ? r :
		       fail(-EBUSY,
			    "%s%s: changed while it was read; do not write to it during the merge",
			    sort->spec->inputs[0], parent_runs->n > 1 ? ", or another input" : "");
}

int sort_slice_runs(struct sort *sort, const uint64_t *lower_cuts, const uint64_t *upper_cuts)
{
	const struct run_list *parent_runs = &sort->parent_runs;
	int r = 0;

	for (size_t i = 0; i < parent_runs->n && r == 0; i++) {
		struct run *slice;

		if (lower_cuts[i] > upper_cuts[i])
			return fail_unsorted(sort);
		if (lower_cuts[i] == upper_cuts[i])
			continue;
		r = run_open_subrun(sort->job.layout, parent_runs->runs[i], lower_cuts[i],
				    upper_cuts[i], &slice);
		if (r == 0)
			r = run_list_add(&sort->runs, slice);
	}
	return r;
}

/* --shard: reduce each run to its items in the shard. */
static int cut_shard(struct sort *sort)
{
	const struct layout *layout = sort->job.layout;
	const struct sort_spec *spec = sort->spec;
	const uint64_t n = input_total_nbytes(sort->job.input) / layout->record_nbytes;
	const uint32_t n_runs = (uint32_t)sort->runs.n;
	uint64_t *cuts = calloc(n_runs + 1, 2 * sizeof *cuts);
	int r = cuts ? 0 : fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);

	sort->parent_runs = sort->runs;
	sort->runs = (struct run_list){ 0 };
	for (uint32_t i = 0; i < 2 && r == 0; i++)
		r = cuts_after_items(layout, sort->parent_runs.runs, n_runs,
				     equal_share_begin(n, spec->shard - 1 + i, spec->n_shards),
				     false, cuts + (size_t)i * n_runs);
	if (r == 0)
		r = sort_slice_runs(sort, cuts, cuts + n_runs);
	free(cuts);
	return r;
}

int sort_create_runs(struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct sort_spec *spec = sort->spec;
	struct record_totals *totals = &sort->integrity.totals;
	const uint64_t nbytes = job->plan.input_nbytes;
	const uint64_t n = job->plan.expected_nbytes / job->layout->record_nbytes;
	int r;

	stats_set_phase_total(job->stats, PHASE_MERGE_PASSES, job->plan.merge_pass_input_nbytes);
	set_output_totals(sort, u64_min(n, job->limit) * job->layout->output_nbytes);
	stats_begin_phase(job->stats, PHASE_RUN_GENERATION,
			  nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
	if (spec->merge_inputs) {
		r = spec->n_shards ? check_shard(sort) : 0;
		if (r == 0)
			r = input_runs_open(job, spec, &sort->runs, &totals->read, &sort->inputs);
		if (r == 0 && spec->n_shards)
			r = cut_shard(sort);
		if (r == 0 && spec->comm)
			r = distributed_partition_inputs(sort);
	} else {
		r = sort->checkpoint ? restore_runs(sort) : 0;
		if (r == 0)
			r = generate_runs(&sort->job, job->chunk_pool, &sort->runs, totals);
	}
	if (r == 0)
		record_run_counts(sort);
	return r;
}

/* Return whether -u can still drop records from a single run. */
static bool needs_count_first(const struct sort *sort)
{
	const struct run_list *runs = &sort->runs;

	return sort->job.plan_request.needs_count_pass &&
	       (runs->n > 1 || (runs->n == 1 && run_may_have_duplicates(runs->runs[0])));
}

int sort_reduce_runs(struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t memory_nbytes = merge_nbytes(sort);
	struct run_list *runs = &sort->runs;
	uint32_t n_passes;
	int r;

	if (run_list_n_spilled(runs) > job->plan.fan_in || needs_count_first(sort))
		stats_begin_phase(job->stats, PHASE_MERGE_PASSES,
				  job->plan.merge_pass_input_nbytes);
	r = merge_passes(job, runs, memory_nbytes, &sort->integrity.totals, &n_passes);
	if (r == 0 && needs_count_first(sort)) {
		r = merge_to_run(job, runs, 0, runs->n, memory_nbytes, &sort->integrity.totals);
		n_passes++;
	}
	if (r == 0)
		sort->summary.n_passes = n_passes + 1;
	return r;
}

/* --- integrity --- */

/* Mapped records are read twice and may have changed in between. */
static int fail_changed(const struct job *job)
{
	const char *path;
	uint64_t record;

	input_path_at(job->input, 0, &path, &record);
	return fail(-EBUSY, "%s%s: changed during the sort; the output was not written", path,
		    job->n_sources > 1 ? ", or another input" : "");
}

int integrity_check(const struct integrity *integrity, const struct job *job)
{
	const struct record_totals *totals = &integrity->totals;
	const struct digest accounted = record_totals_accounted(*totals);

	if (layout_is_indirect(job->layout) &&
	    (integrity->result.n_disorders || !record_totals_are_balanced(*totals)))
		return fail_changed(job);
	if (integrity->result.n_disorders)
		return fail(-EIO,
			    "internal error: %" PRIu64
			    " records of the output are out of order; the output was not written",
			    integrity->result.n_disorders);
	if (!record_totals_are_balanced(*totals))
		return fail(-EIO,
			    "internal error: read %" PRIu64 " records (checksum %016" PRIx64 "), "
			    "but wrote %" PRIu64 " (%016" PRIx64 "); the output was not written",
			    totals->read.n_records, totals->read.sum, accounted.n_records,
			    accounted.sum);
	if (job->layout->projection.has_count && job->limit == UINT64_MAX &&
	    integrity->result.n_counted != totals->read.n_records)
		return fail(-EIO,
			    "internal error: read %" PRIu64 " records, but counted %" PRIu64
			    "; the output was not written",
			    totals->read.n_records, integrity->result.n_counted);
	return 0;
}

/* --- the final merge --- */

static int merge_all_runs(struct sort *sort)
{
	const uint64_t memory_nbytes = merge_nbytes(sort);
	struct run_list *runs = &sort->runs;
	struct sink sink = sort_output_sink(&sort->output);
	int r;

	if (runs->n == 0)
		return 0;
	if (sort->spec->comm)
		sink.edges = &sort->distributed.edges;
	stats_begin_phase(sort->job.stats, PHASE_FINAL_MERGE, merged_output_nbytes(sort));
	r = merge_in_partitions(&sort->job, runs->runs, (uint32_t)runs->n, memory_nbytes, &sink,
				&sort->integrity.result);
	window_buffer_cache_clear_all(&sort->job);
	if (r < 0)
		return r;
	stats_complete_phase(sort->job.stats);
	record_totals_add(&sort->integrity.totals, sort->integrity.result.totals);
	return 0;
}

int sort_run_final_merge(struct sort *sort)
{
	const bool is_distributed = sort->spec->comm;
	uint64_t nbytes, n;
	int r = is_distributed ? distributed_place_partition(sort) : 0;

	if (r < 0)
		return r;
	nbytes = merged_output_nbytes(sort);
	n = is_distributed ? sort->distributed.n_total : nbytes / sort->job.layout->output_nbytes;
	sort_output_rechoose_io_mode(&sort->output, nbytes);
	r = sort_output_begin(&sort->output, sort->inputs, n);
	if (r == 0)
		r = merge_all_runs(sort);
	if (r == 0 && is_distributed)
		r = distributed_finish_partition(sort);
	return r < 0 ? r :
		       sort_output_end(&sort->output, is_distributed ?
							      sort->distributed.n_total :
							      sort->integrity.result.n_items);
}

/*
 * Read the records back and check them against the evidence (--verify). Returns -ESPIPE if the
 * output cannot be read.
 */
static int verify_read_back(struct sort *sort)
{
	const struct integrity *integrity = &sort->integrity;
	const struct job *job = &sort->job;
	const char *name = sort_output_name(&sort->output);
	const struct verify_options options = {
		.layout = job->layout,
		.strict = job->unique,
		.n_threads = job->plan.n_queues,
		.stats = job->stats,
		.cancellation = job->cancellation,
	};
	const uint64_t nbytes = integrity->result.n_items * job->layout->output_nbytes;
	struct verify_result result;
	int r;

	stats_begin_phase(job->stats, PHASE_VERIFY, nbytes);
	r = verify_output(sort_output_read_at, &sort->output, nbytes, &options, &result);
	if (r < 0)
		return sort_output_fail_read_back(r, name);
	stats_complete_phase(job->stats);
	if (result.first_disorder || !digest_equal(result.digest, integrity->totals.written) ||
	    (job->layout->projection.has_count && result.counts_sum != integrity->result.n_counted))
		return sort_output_fail_verify(name);
	return 0;
}

int sort_check_output(struct sort *sort)
{
	int r = sort->spec->comm ? distributed_check_output(sort) :
				   integrity_check(&sort->integrity, &sort->job);

	if (r < 0 || !sort->spec->verify)
		return r;
	r = verify_read_back(sort);
	if (r < 0 || sort->output.set.is_joined)
		return r;
	return sort_output_verify_framing(&sort->output);
}

/* Only rank 0 commits the output, after all ranks have closed it. */
int sort_commit_output(struct sort *sort)
{
	const bool is_distributed = sort->spec->comm;
	int r = 0;

	if (sort->checkpoint)
		r = checkpoint_close_sync_thread(sort->checkpoint);
	if (r == 0 && is_distributed)
		r = sort_output_close_joined(&sort->output);
	if (r < 0)
		return r; /* aborts other ranks that wait for this one */
	if (!is_distributed || !sort->output.set.is_joined)
		r = sort_output_commit(&sort->output);
	if (!is_distributed)
		return r;
	r = distributed_broadcast_status(sort->spec->comm, r);
	sort->distributed.is_complete = r == 0;
	return r;
}

/* --- summary --- */

void sort_summary_set_plan(const struct plan *plan, struct sort_summary *summary)
{
	memcpy(summary->backend, plan->device, sizeof summary->backend);
	summary->plan = *plan;
	summary->buffer_nbytes = plan->memory_nbytes + plan->exchange_nbytes;
	summary->chunk_nbytes = plan->n_chunks ? plan->chunk_records * plan->record_nbytes : 0;
	summary->input_is_mapped = plan->mapped_nbytes > 0;
}

static void measure_peak_rates(struct sort *sort)
{
	struct job *job = &sort->job;
	struct stats_totals totals;
	struct calibration_request request;
	struct stage_rates rates;

	stats_get_totals(job->stats, &totals);
	if (!calibrate_request_from_stats(&totals, calibrate_max_nbytes(&job->plan), &request))
		return;
	run_list_free(&sort->runs);
	chunk_pool_close(job->chunk_pool);
	job->chunk_pool = NULL;
	calibrate_stages(job, sort->spec, &request, &rates);
	memcpy(sort->summary.peak_rates, rates.bytes_per_s, sizeof rates.bytes_per_s);
}

void sort_collect_summary(struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct integrity *integrity = &sort->integrity;
	struct sort_summary *summary = &sort->summary;

	sort_summary_set_plan(&job->plan, summary);
	keys_format(sort->spec->keys, sort->spec->n_keys, sort->spec->record_nbytes, summary->type);
	summary->record_nbytes = job->layout->record_nbytes;
	summary->n_records_in = integrity->totals.read.n_records;
	summary->input_nbytes = summary->n_records_in * summary->record_nbytes;
	summary->is_merge = sort->spec->merge_inputs;
	summary->n_records_out = integrity->result.n_items;
	summary->n_windows = integrity->result.n_windows;
	summary->n_partitions = sort->output.n_partitions;
	summary->written = sort->output.io_stats;
	summary->n_devices = job->n_devices > 1 ? job->n_devices : 0;
	for (uint32_t i = 0; i < summary->n_devices; i++) {
		summary->devices[i].number = job->devices[i].ordinal;
		summary->devices[i].ordinal = job->devices[i].stats_index;
	}
	if (job->spill) {
		summary->peak_temp_nbytes = spill_peak_nbytes(job->spill);
		summary->spilled = compression_totals(job->compression);
	}
	stats_finish(job->stats);
	if (sort->spec->measure_peak_rates)
		measure_peak_rates(sort);
}
