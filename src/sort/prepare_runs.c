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
static void expect_output(const struct sort *sort, uint64_t nbytes)
{
	stats_expect(sort->job.stats, PHASE_MERGE, nbytes);
	stats_expect(sort->job.stats, PHASE_CHECK, sort->spec->verify ? nbytes : 0);
}

/* As far as it is planned. */
static void expect_phases(const struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t n = job->plan.expected_nbytes / job->layout->record_nbytes;

	stats_expect(job->stats, PHASE_PASSES, job->plan.passes_merged_nbytes);
	expect_output(sort, (n < job->limit ? n : job->limit) * job->layout->output_nbytes);
}

/* What an earlier process has finished of the runs. */
static int restore(struct sort *sort)
{
	struct job *job = &sort->job;
	int r = checkpoint_restore(sort->checkpoint, job, result_output(&sort->result),
				   &sort->store, &sort->account.ledger);

	if (r < 0)
		return r;
	job->first_record += sort->account.ledger.read.n_records;
	input_start_at(job->input, job->first_record * job->layout->record_nbytes);
	return sort->spec->ranks ? share_tell_resumed(sort) : 0;
}

static void note_runs(struct sort *sort)
{
	sort->facts.n_runs = sort->store.n;
	sort->facts.n_runs_spilled = sort->spec->merges ? input_runs_n_stored(sort->inputs) :
							  run_store_n_stored(&sort->store);
	expect_output(sort, runs_output_nbytes(sort));
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

/*
 * With -u what is dropped where depends on which records are in which run, and so does where a
 * merge can be taken up: what is still resident must not be divided otherwise the next time. And
 * other ranks read what is stored.
 */
int runs_store_resident(struct sort *sort)
{
	const struct job *job = &sort->job;
	const size_t n_stored = run_store_n_stored(&sort->store);
	const size_t n_resident = sort->store.n - n_stored;
	const bool is_due = sort->spec->ranks || (sort->checkpoint && job->unique && n_stored);
	int r;

	if (!is_due || n_resident == 0)
		return 0;
	/* What is merged of them goes back as fast, where it is in the same memory. */
	if (sort->spec->ranks && job->plan.keeps_rest)
		spill_allow_memory(job->spill, resident_run_nbytes(sort, n_stored));
	r = merge_to_run(job, &sort->store, n_stored, sort->store.n - n_stored,
			 runs_leave_nbytes(sort), &sort->account.ledger);
	if (r == 0)
		note_runs(sort);
	return r;
}

static int check_part(const struct sort *sort)
{
	const struct input *input = sort->job.input;

	if (input_total_nbytes(input) == INPUT_SIZE_UNKNOWN)
		return fail_hint(-EINVAL, HINT_ABOUT_PART, 0,
				 "inputs must be files: the size of a pipe is unknown");
	if (input_fields(input) && sort->spec->header_nbytes)
		return fail_hint(-EINVAL, HINT_ABOUT_PART_OF_ARRAY, 0,
				 "not possible with .npy files");
	if (around_nbytes(input, sort->spec->header_nbytes))
		return fail_hint(-EINVAL, HINT_ABOUT_PART, 0,
				 "not possible with headers or incomplete records");
	return 0;
}

/* Read it from the beginning: what is not in order shows, with the file and the record. */
static int read_through(const struct layout *layout, struct run *run)
{
	struct digest found = { 0 };
	unsigned char *items;
	int r = 0;

	if (run_n_items(run) == 0)
		return 0;
	items = malloc(run_block_start(run, 1) * layout->item_nbytes); /* none is longer */
	if (!items)
		return fail(-ENOMEM, "no memory for records");
	for (uint64_t i = 0; i < run_n_blocks(run) && r == 0; i++)
		r = run_read(run, i, 1, items, &found);
	free(items);
	return r;
}

/*
 * A part of an input ends before it begins. Where it was cut says little of where it is not in
 * order, and may be due to another input that is not.
 */
static int fail_unsorted(const struct sort *sort)
{
	const struct run_store *whole = &sort->whole;
	int r = 0;

	for (size_t i = 0; i < whole->n && r == 0; i++)
		r = read_through(sort->job.layout, whole->runs[i]);
	return r < 0 ? r :
		       fail(-EBUSY,
			    "%s%s: changed while it was divided; merge it when nobody writes to it",
			    sort->spec->inputs[0], whole->n > 1 ? ", or another input" : "");
}

int runs_take_parts(struct sort *sort, const uint64_t *begins, const uint64_t *ends)
{
	const struct run_store *whole = &sort->whole;
	int r = 0;

	for (size_t i = 0; i < whole->n && r == 0; i++) {
		struct run *part;

		if (begins[i] > ends[i])
			return fail_unsorted(sort);
		if (begins[i] == ends[i])
			continue;
		r = run_open_part(sort->job.layout, whole->runs[i], begins[i], ends[i], &part);
		if (r == 0)
			r = run_store_add(&sort->store, part);
	}
	return r;
}

/* --shard: of the runs what is in it. */
static int cut_part(struct sort *sort)
{
	const struct layout *layout = sort->job.layout;
	const struct sort_spec *spec = sort->spec;
	const uint64_t n = input_total_nbytes(sort->job.input) / layout->record_nbytes;
	const uint32_t n_runs = (uint32_t)sort->store.n;
	uint64_t *cuts = calloc(n_runs + 1, 2 * sizeof *cuts);
	int r = cuts ? 0 : fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);

	sort->whole = sort->store;
	sort->store = (struct run_store){ 0 };
	for (uint32_t i = 0; i < 2 && r == 0; i++)
		r = rank_cut(layout, sort->whole.runs, n_runs,
			     sort_spec_part_end(spec, spec->part - 1 + i, n),
			     cuts + (size_t)i * n_runs);
	if (r == 0)
		r = runs_take_parts(sort, cuts, cuts + n_runs);
	free(cuts);
	return r;
}

int runs_make(struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct sort_spec *spec = sort->spec;
	struct ledger *ledger = &sort->account.ledger;
	const uint64_t nbytes = job->plan.input_nbytes;
	int r;

	expect_phases(sort);
	stats_begin_phase(job->stats, PHASE_RUNS, nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
	if (spec->merges) {
		r = spec->n_parts ? check_part(sort) : 0;
		if (r == 0)
			r = input_runs_open(job, spec, &sort->store, &ledger->read, &sort->inputs);
		if (r == 0 && spec->n_parts)
			r = cut_part(sort);
		if (r == 0 && spec->ranks)
			r = share_cut_inputs(sort);
	} else {
		r = sort->checkpoint ? restore(sort) : 0;
		if (r == 0)
			r = form_runs(job, job->pool, &sort->store, ledger);
		if (r == 0 && !spec->ranks) /* these see first whether they need to */
			r = runs_store_resident(sort);
	}
	if (r == 0)
		note_runs(sort);
	return r;
}

/* Of one run it is known how many records it has, unless it is an input, of which -u drops some. */
static bool must_count(const struct sort *sort)
{
	const struct run_store *store = &sort->store;

	return sort->job.request.counts_first &&
	       (store->n > 1 || (store->n == 1 && run_holds_duplicates(store->runs[0])));
}

int runs_reduce(struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t memory_nbytes = runs_leave_nbytes(sort);
	struct run_store *store = &sort->store;
	uint32_t n_passes;
	int r;

	if (run_store_n_stored(store) > job->plan.fan_in || must_count(sort))
		stats_begin_phase(job->stats, PHASE_PASSES, job->plan.passes_merged_nbytes);
	r = merge_passes(job, store, memory_nbytes, &sort->account.ledger, &n_passes);
	if (r == 0 && must_count(sort)) {
		r = merge_to_run(job, store, 0, store->n, memory_nbytes, &sort->account.ledger);
		n_passes++;
	}
	if (r == 0)
		sort->facts.n_passes = n_passes + 1;
	return r;
}

uint64_t runs_leave_nbytes(struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t resident_nbytes = sort->job.pool ? chunk_pool_trim(sort->job.pool) : 0;
	/* On a device with memory of its own it is not in this one. */
	const uint64_t stored_nbytes = plan->copies ? 0 : spill_memory_nbytes(sort->job.spill);
	const uint64_t taken_nbytes =
		resident_nbytes + stored_nbytes + trade_received_nbytes(sort->share.trade);
	const uint64_t rest =
		plan->device_nbytes > taken_nbytes ? plan->device_nbytes - taken_nbytes : 0;

	return rest > plan->merge_nbytes ? rest : plan->merge_nbytes;
}

uint64_t runs_output_nbytes(const struct sort *sort)
{
	return runs_n_items(sort->store.runs, sort->store.n) * sort->job.layout->output_nbytes;
}
