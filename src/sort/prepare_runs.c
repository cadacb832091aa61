/*
 * prepare_runs - the sorted runs that the final merge is made of (see sort_internal.h)
 */
#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/rungen/chunk_pool.h"
#include "src/rungen/run_generation.h"
#include "src/merge/passes.h"
#include "src/run/multiseq_partition.h"
#include "src/sort/output_framing.h"
#include "src/sort/sort_internal.h"
#include "src/sort/distributed_sort.h"

/* Whoever asks how far it is wants to know what is still to come. */
static void set_output_totals(const struct sort *sort, uint64_t nbytes)
{
	stats_set_phase_total(sort->job.stats, PHASE_FINAL_MERGE, nbytes);
	stats_set_phase_total(sort->job.stats, PHASE_VERIFY, sort->spec->verify ? nbytes : 0);
}

/* As far as it is planned. */
static void set_phase_totals(const struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t n = job->plan.expected_nbytes / job->layout->record_nbytes;

	stats_set_phase_total(job->stats, PHASE_MERGE_PASSES, job->plan.merge_pass_input_nbytes);
	set_output_totals(sort, (n < job->limit ? n : job->limit) * job->layout->output_nbytes);
}

/* What an earlier process has finished of the runs. */
static int restore_runs(struct sort *sort)
{
	struct job *job = &sort->job;
	int r = checkpoint_restore(sort->checkpoint, job, &sort->store, &sort->integrity.totals);

	if (r < 0)
		return r;
	job->first_record += sort->integrity.totals.read.n_records;
	input_start_at(job->input, job->first_record * job->layout->record_nbytes);
	return sort->spec->comm ? distributed_report_resumed(sort) : 0;
}

static void record_run_counts(struct sort *sort)
{
	sort->summary.n_runs = sort->store.n;
	sort->summary.n_runs_spilled = sort->spec->merge_inputs ?
					       input_runs_n_stored(sort->inputs) :
					       run_list_n_stored(&sort->store);
	set_output_totals(sort, prepare_runs_output_nbytes(sort));
}

/* What resident runs will take when they are stored: in whole pages, block by block at worst. */
static uint64_t resident_run_nbytes(const struct sort *sort, size_t n_stored)
{
	const struct job *job = &sort->job;
	const uint64_t nbytes =
		runs_n_items(sort->store.runs + n_stored, sort->store.n - n_stored) *
		job->layout->resident_nbytes;

	return nbytes + (nbytes / job->plan.block_nbytes + 1) * SPILL_ALIGN_NBYTES;
}

int prepare_runs_store_resident(struct sort *sort)
{
	const struct job *job = &sort->job;
	const size_t n_stored = run_list_n_stored(&sort->store);
	const size_t n_resident = sort->store.n - n_stored;
	int r;

	if (n_resident == 0)
		return 0;
	/* What is merged of them goes back as fast, where it is in the same memory. */
	if (job->plan.keep_last_run_in_memory)
		spill_raise_memory_limit(job->spill, resident_run_nbytes(sort, n_stored));
	r = merge_to_run(job, &sort->store, n_stored, sort->store.n - n_stored,
			 prepare_runs_merge_nbytes(sort), &sort->integrity.totals);
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
	if (output_framing_nbytes(input, sort->spec->header_nbytes))
		return fail(-EINVAL, "--shard: not possible with headers or incomplete records");
	return 0;
}

/* Read it from the beginning: what is not in order shows, with the file and the record. */
static int check_run_order(const struct layout *layout, struct run *run)
{
	struct digest digest = { 0 };
	unsigned char *items;
	int r = 0;

	if (run_n_items(run) == 0)
		return 0;
	items = malloc(run_block_start(run, 1) * layout->item_nbytes); /* none is longer */
	if (!items)
		return fail(-ENOMEM, "no memory for records");
	for (uint64_t i = 0; i < run_n_blocks(run) && r == 0; i++)
		r = run_read(run, i, 1, items, &digest);
	free(items);
	return r;
}

/*
 * A part of an input ends before it begins. Where it was cut says little of where it is not in
 * order, and may be due to another input that is not.
 */
static int fail_unsorted(const struct sort *sort)
{
	const struct run_list *parent_runs = &sort->parent_runs;
	int r = 0;

	for (size_t i = 0; i < parent_runs->n && r == 0; i++)
		r = check_run_order(sort->job.layout, parent_runs->runs[i]);
	return r < 0 ? r :
		       fail(-EBUSY,
			    "%s%s: changed while it was divided; merge it when nobody writes to it",
			    sort->spec->inputs[0], parent_runs->n > 1 ? ", or another input" : "");
}

int prepare_runs_slice(struct sort *sort, const uint64_t *lower_cuts, const uint64_t *upper_cuts)
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
			r = run_list_add(&sort->store, slice);
	}
	return r;
}

/* --shard: of the runs what is in it. */
static int cut_shard(struct sort *sort)
{
	const struct layout *layout = sort->job.layout;
	const struct sort_spec *spec = sort->spec;
	const uint64_t n = input_total_nbytes(sort->job.input) / layout->record_nbytes;
	const uint32_t n_runs = (uint32_t)sort->store.n;
	uint64_t *cuts = calloc(n_runs + 1, 2 * sizeof *cuts);
	int r = cuts ? 0 : fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);

	sort->parent_runs = sort->store;
	sort->store = (struct run_list){ 0 };
	for (uint32_t i = 0; i < 2 && r == 0; i++)
		r = multiseq_partition(layout, sort->parent_runs.runs, n_runs,
				       spec_shard_end(spec, spec->shard - 1 + i, n),
				       cuts + (size_t)i * n_runs);
	if (r == 0)
		r = prepare_runs_slice(sort, cuts, cuts + n_runs);
	free(cuts);
	return r;
}

int prepare_runs_create(struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct sort_spec *spec = sort->spec;
	struct record_totals *totals = &sort->integrity.totals;
	const uint64_t nbytes = job->plan.input_nbytes;
	int r;

	set_phase_totals(sort);
	stats_begin_phase(job->stats, PHASE_RUN_GENERATION,
			  nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
	if (spec->merge_inputs) {
		r = spec->n_shards ? check_shard(sort) : 0;
		if (r == 0)
			r = input_runs_open(job, spec, &sort->store, &totals->read, &sort->inputs);
		if (r == 0 && spec->n_shards)
			r = cut_shard(sort);
		if (r == 0 && spec->comm)
			r = distributed_partition_inputs(sort);
	} else {
		r = sort->checkpoint ? restore_runs(sort) : 0;
		if (r == 0)
			r = generate_runs(job, job->chunk_pool, &sort->store, totals);
	}
	if (r == 0)
		record_run_counts(sort);
	return r;
}

/* Of one run it is known how many records it has, unless it is an input, of which -u drops some. */
static bool needs_count_first(const struct sort *sort)
{
	const struct run_list *store = &sort->store;

	return sort->job.plan_request.needs_count_pass &&
	       (store->n > 1 || (store->n == 1 && run_may_have_duplicates(store->runs[0])));
}

int prepare_runs_reduce(struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t memory_nbytes = prepare_runs_merge_nbytes(sort);
	struct run_list *store = &sort->store;
	uint32_t n_passes;
	int r;

	if (run_list_n_stored(store) > job->plan.fan_in || needs_count_first(sort))
		stats_begin_phase(job->stats, PHASE_MERGE_PASSES,
				  job->plan.merge_pass_input_nbytes);
	r = merge_passes(job, store, memory_nbytes, &sort->integrity.totals, &n_passes);
	if (r == 0 && needs_count_first(sort)) {
		r = merge_to_run(job, store, 0, store->n, memory_nbytes, &sort->integrity.totals);
		n_passes++;
	}
	if (r == 0)
		sort->summary.n_passes = n_passes + 1;
	return r;
}

uint64_t prepare_runs_merge_nbytes(struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t resident_nbytes =
		sort->job.chunk_pool ? chunk_pool_trim(sort->job.chunk_pool) : 0;
	/* On a device with memory of its own it is not in this one. */
	const uint64_t stored_nbytes =
		plan->copies_to_device ? 0 : spill_memory_nbytes(sort->job.spill);
	const uint64_t used_nbytes = resident_nbytes + stored_nbytes +
				     all_to_all_received_nbytes(sort->distributed.all_to_all);
	const uint64_t remaining_nbytes =
		plan->device_nbytes > used_nbytes ? plan->device_nbytes - used_nbytes : 0;

	return remaining_nbytes > plan->merge_nbytes ? remaining_nbytes : plan->merge_nbytes;
}

uint64_t prepare_runs_output_nbytes(const struct sort *sort)
{
	return runs_n_items(sort->store.runs, sort->store.n) * sort->job.layout->output_nbytes;
}
