/*
 * sort - the whole sort on one page
 *
 *	open input, back end		what there is
 *	plan				what to do with it (setup.c)
 *	form runs | open runs (-m)	sorted runs: resident, spilled, or the inputs
 *	passes				until they can be merged at once
 *	merge				into the output
 *	check				what was read is what was written, in order
 *	commit				only now the output has its name
 *
 * account.h says what is checked.
 */
#include "src/sort/sort.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "io/output/output.h"
#include "src/base/messages.h"
#include "src/checkpoint/checkpoint.h"
#include "src/form/chunk_pool.h"
#include "src/form/form_runs.h"
#include "src/measure/estimate.h"
#include "src/merge/passes.h"
#include "src/merge/ranges.h"
#include "src/merge/window_memory.h"
#include "src/plan/job.h"
#include "src/plan/page_cache.h"
#include "src/run/input_runs.h"
#include "src/sort/account.h"
#include "src/sort/around.h"
#include "src/sort/setup.h"

struct sort {
	const struct sort_spec *spec;
	struct layout layout;
	struct job job;
	struct checkpoint *checkpoint; /* NULL: none */
	struct output *output;
	bool output_is_input;
	struct run_store store;
	struct input_runs *inputs; /* with -m: owns what input runs read from */
	struct account account;
	uint32_t n_passes; /* before the final merge */
	uint32_t n_ranges; /* of it */
	struct sort_facts *facts;
};

/* Of an input of known size, the records that are written; with -u at most. */
static uint64_t n_records_out(const struct sort *sort)
{
	const uint64_t n = input_total_nbytes(sort->job.input) / sort->layout.record_nbytes;

	return n < sort->spec->limit ? n : sort->spec->limit;
}

/*
 * The output's size, to reserve it. With -u it is not known before the end; reserving for all
 * records would be asking for too much. Nor is it if the output is compressed.
 */
static uint64_t output_nbytes(const struct sort *sort)
{
	if (sort->spec->unique || sort->spec->zstd_level ||
	    input_total_nbytes(sort->job.input) == INPUT_SIZE_UNKNOWN)
		return OUTPUT_SIZE_UNKNOWN;
	return around_nbytes(sort->job.input) + n_records_out(sort) * sort->layout.output_nbytes;
}

/* What is written for a record can be longer than it is: --index, keys that overlap. */
static int check_output_size(const struct sort *sort)
{
	const size_t nbytes_each = sort->layout.output_nbytes;
	uint64_t n, nbytes;

	if (sort->spec->unique || input_total_nbytes(sort->job.input) == INPUT_SIZE_UNKNOWN)
		return 0;
	n = n_records_out(sort);
	if (!__builtin_mul_overflow(n, nbytes_each, &nbytes) &&
	    !__builtin_add_overflow(nbytes, around_nbytes(sort->job.input), &nbytes) &&
	    nbytes <= INT64_MAX)
		return 0;
	return fail(-EFBIG,
		    "%" PRIu64 " records of %zu bytes in the output are too many: it can have at "
		    "most 2^63 - 1 bytes, as any file",
		    n, nbytes_each);
}

static int open_inputs(struct sort *sort, const struct sort_observer *observer)
{
	const struct sort_spec *spec = sort->spec;
	const struct framing framing = spec_framing(spec);
	struct job *job = &sort->job;
	int r;

	job->io = &syscalls_plain;
	job->layout = &sort->layout;
	job->unique = spec->unique;
	job->limit = spec->limit;
	r = spec_layout(spec, &sort->layout);
	if (r < 0)
		return r;
	r = input_open_framed(job->io, spec->inputs, spec->n_inputs, &framing, &job->input);
	if (r == 0)
		r = check_output_size(sort);
	if (r == 0 && observer->opened)
		r = observer->opened(observer->context, &sort->layout, job->input);
	return r;
}

static int open_output_file(struct sort *sort)
{
	const struct job *job = &sort->job;

	if (sort->checkpoint)
		return checkpoint_open_output(sort->checkpoint, output_nbytes(sort), &sort->output);
	return output_open(job->io, sort->spec->output_path, output_nbytes(sort), &sort->output);
}

static int open_output(struct sort *sort)
{
	const struct sort_spec *spec = sort->spec;
	struct job *job = &sort->job;
	struct file_identity identity;
	int r = open_output_file(sort);

	if (r == 0 && spec->zstd_level)
		r = output_compress(sort->output, spec->zstd_level, setup_n_compressors(spec));
	if (r < 0)
		return r;
	sort->output_is_input = output_identity(sort->output, &identity) &&
				input_has_file(job->input, identity);
	if (sort->output_is_input && !output_is_atomic(sort->output))
		return fail(-EINVAL, "%s: is an input and the output at the same time; use -o",
			    output_name(sort->output));
	return 0;
}

/* For an output of nbytes. */
static void choose_way_out(struct sort *sort, uint64_t nbytes)
{
	switch (page_cache_use(&sort->job, nbytes)) {
	case PAGE_CACHE_IS_TOO_SMALL:
		output_pass_by_cache(sort->output);
		break;
	case PAGE_CACHE_MAY_HOLD:
		output_try_both_ways(sort->output);
		break;
	case PAGE_CACHE_HOLDS:
		break;
	}
}

/* What an earlier process has finished of the runs. */
static int restore_runs(struct sort *sort)
{
	struct job *job = &sort->job;
	int r = checkpoint_restore(sort->checkpoint, job, sort->output, &sort->store,
				   &sort->account.ledger);

	if (r < 0)
		return r;
	job->first_record = sort->account.ledger.read.n_records;
	input_start_at(job->input, job->first_record * sort->layout.record_nbytes);
	return 0;
}

/*
 * With -u what is dropped where depends on which records are in which run, and so does where a
 * merge can be taken up: what is still resident must not be divided otherwise the next time.
 */
static int store_runs(struct sort *sort)
{
	const struct job *job = &sort->job;
	const size_t n_stored = run_store_n_stored(&sort->store);

	if (!sort->checkpoint || !job->unique || n_stored == 0 || n_stored == sort->store.n)
		return 0;
	return merge_to_run(job, &sort->store, n_stored, sort->store.n - n_stored,
			    job->plan.merge_nbytes, &sort->account.ledger);
}

/* What phases there will be, as far as it is planned, for whoever asks how far it is. */
static void expect_phases(const struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct plan *plan = &job->plan;
	const uint64_t n = plan->expected_nbytes / sort->layout.record_nbytes;
	const uint64_t nbytes = (n < job->limit ? n : job->limit) * sort->layout.output_nbytes;

	stats_expect(job->stats, PHASE_PASSES, plan->passes_nbytes);
	stats_expect(job->stats, PHASE_MERGE, nbytes);
	stats_expect(job->stats, PHASE_CHECK, sort->spec->verify ? nbytes : 0);
}

static int make_runs(struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t nbytes = job->plan.input_nbytes;
	int r;

	expect_phases(sort);
	stats_begin_phase(job->stats, PHASE_RUNS, nbytes == PLAN_SIZE_UNKNOWN ? 0 : nbytes);
	if (sort->spec->merges)
		return input_runs_open(job, sort->spec->inputs, sort->spec->n_inputs, &sort->store,
				       &sort->account.ledger.read, &sort->inputs);
	r = sort->checkpoint ? restore_runs(sort) : 0;
	if (r == 0)
		r = form_runs(job, job->pool, &sort->store, &sort->account.ledger);
	return r < 0 ? r : store_runs(sort);
}

/* What windows may take: everything that no resident run lives in. */
static uint64_t merge_memory_nbytes(struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	const uint64_t resident_nbytes = sort->job.pool ? chunk_pool_trim(sort->job.pool) : 0;
	const uint64_t rest =
		plan->device_nbytes > resident_nbytes ? plan->device_nbytes - resident_nbytes : 0;

	return rest > plan->merge_nbytes ? rest : plan->merge_nbytes;
}

static uint64_t count_items(const struct run_store *store)
{
	uint64_t n = 0;

	for (size_t i = 0; i < store->n; i++)
		n += run_n_items(store->runs[i]);
	return n;
}

static int write_output(void *context, const struct merged *merged)
{
	struct sort *sort = context;
	const uint64_t offset = merged->position * sort->layout.output_nbytes;
	const uint64_t nbytes = merged->n_items * sort->layout.output_nbytes;
	int r = output_write_at(sort->output, sort->spec->skip_nbytes + offset, merged->items,
				nbytes);

	if (r == 0 && sort->checkpoint)
		r = checkpoint_note_written(sort->checkpoint, offset, merged->items, nbytes);
	return r;
}

static int note_point(void *context, const struct merge_point *point)
{
	struct sort *sort = context;

	return checkpoint_note_point(sort->checkpoint, point);
}

static void cancel_output(void *context)
{
	struct sort *sort = context;

	output_cancel(sort->output);
}

static int merge_all(struct sort *sort)
{
	const struct job *job = &sort->job;
	const uint64_t memory_nbytes = merge_memory_nbytes(sort);
	struct sink sink = {
		.context = sort,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = sort->layout.output_nbytes,
		.write = write_output,
		.cancel = cancel_output,
		.point = sort->checkpoint ? note_point : NULL,
	};
	uint64_t nbytes;
	int r;

	sink.align_nbytes = output_alignment(sort->output, &sink.base);
	sink.base += sort->spec->skip_nbytes;
	sort->facts->n_runs = sort->store.n;
	sort->facts->n_runs_spilled = run_store_n_stored(&sort->store);
	nbytes = count_items(&sort->store) * sink.item_nbytes;
	stats_expect(job->stats, PHASE_MERGE, nbytes);
	stats_expect(job->stats, PHASE_CHECK, sort->spec->verify ? nbytes : 0);
	if (sort->facts->n_runs_spilled > job->plan.fan_in)
		stats_begin_phase(job->stats, PHASE_PASSES, job->plan.passes_nbytes);
	r = merge_passes(job, &sort->store, memory_nbytes, &sort->account.ledger, &sort->n_passes);
	if (r < 0 || sort->store.n == 0)
		return r;
	if (sort->checkpoint)
		checkpoint_start_merge(sort->checkpoint, &sort->store, &sink);
	stats_begin_phase(job->stats, PHASE_MERGE, count_items(&sort->store) * sink.item_nbytes);
	r = merge_in_ranges(job, sort->store.runs, (uint32_t)sort->store.n, memory_nbytes, &sink,
			    &sort->account.result, &sort->n_ranges);
	window_memory_drop(job->windows);
	if (r == 0)
		ledger_add(&sort->account.ledger, sort->account.result.ledger);
	return r;
}

static struct around around_of(const struct sort *sort)
{
	return (struct around){ .input = sort->job.input, .merged = sort->inputs };
}

static int commit(struct sort *sort)
{
	const enum output_durability durability = sort->spec->fsync     ? OUTPUT_SYNC_ALL :
						  sort->output_is_input ? OUTPUT_SYNC_DATA :
									  OUTPUT_UNSYNCED;
	struct checkpoint *checkpoint = sort->checkpoint;
	int r = checkpoint ? checkpoint_finish(checkpoint, sort->output) : 0;

	if (r < 0)
		return r;
	r = output_commit(sort->output, durability);
	sort->output = NULL;
	if (r == 0 && checkpoint)
		checkpoint_remove(checkpoint);
	return r;
}

static void close_all(struct sort *sort)
{
	struct job *job = &sort->job;

	output_abort(sort->output);
	run_store_free(&sort->store);
	input_runs_close(sort->inputs);
	setup_close(job);
	checkpoint_close(sort->checkpoint);
	input_close(job->input);
	layout_free(&sort->layout);
}

static void note_facts(struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;
	struct sort_facts *facts = sort->facts;

	memcpy(facts->backend, plan->device, sizeof facts->backend);
	facts->record_nbytes = sort->layout.record_nbytes;
	facts->n_records_in = sort->account.ledger.read.n_records;
	facts->n_records_out = sort->account.result.n_items;
	facts->buffer_nbytes = plan->memory_nbytes;
	facts->chunk_nbytes = plan->chunk_records * plan->record_nbytes;
	facts->input_is_mapped = plan->mapped_nbytes > 0;
	facts->n_passes = sort->n_passes + 1;
	facts->n_ranges = sort->n_ranges;
	if (sort->job.spill) {
		facts->peak_temp_nbytes = spill_peak_nbytes(sort->job.spill);
		facts->spilled = compression_totals(sort->job.compression);
	}
	facts->n_windows = sort->account.result.n_windows;
}

/* How much has come through a pipe is known only now. */
static bool is_known_late(const struct sort *sort)
{
	return input_total_nbytes(sort->job.input) == INPUT_SIZE_UNKNOWN && !sort->spec->merges &&
	       !sort->spec->zstd_level;
}

/* The final merge, and around it what of the inputs is no record. */
static int write_all(struct sort *sort)
{
	const struct around frame = around_of(sort);
	int r;

	if (is_known_late(sort))
		choose_way_out(sort, count_items(&sort->store) * sort->layout.output_nbytes);
	r = around_write_header(&frame, sort->output);
	if (r == 0)
		r = merge_all(sort);
	if (r < 0)
		return r;
	return around_write_tails(&frame, sort->output,
				  sort->spec->skip_nbytes + sort->account.result.n_items *
								    sort->layout.output_nbytes);
}

/* --verify */
static int verify(struct sort *sort)
{
	const struct around frame = around_of(sort);

	return account_verify(&sort->account, &sort->job, &frame, sort->output,
			      sort->spec->skip_nbytes);
}

/* Would gsort, which read the input as records, take the output for something else? */
static void warn_of_format(const struct sort *sort)
{
	struct format_rules rules = framing_rules(input_framing(sort->job.input));
	unsigned char first[FORMAT_HEAD_NBYTES];
	const struct format_view view = {
		.head = first,
		.n_head = output_first_bytes(sort->output, first, sizeof first),
		.nbytes = FORMAT_SIZE_UNKNOWN,
	};
	const struct format *format;

	rules.choice = FORMAT_AUTO;
	if (format_recognise(&view, &rules, &format) == 0 && format)
		warn("%s: begins as what is %s does, and would be taken for that: read it with "
		     "--format=raw",
		     output_name(sort->output), format_name(format));
}

static int sort_to_output(struct sort *sort)
{
	int r = make_runs(sort);

	if (r == 0)
		r = write_all(sort);
	if (r == 0)
		r = account_check(&sort->account, &sort->job);
	if (r == 0 && sort->spec->verify)
		r = verify(sort);
	if (r == 0)
		warn_of_format(sort);
	if (r == 0)
		r = commit(sort);
	return r;
}

/* Of the memory, what measuring may take: a quarter. */
static uint64_t trial_nbytes(const struct sort *sort)
{
	const struct plan *plan = &sort->job.plan;

	if (plan->unified || plan->memory_nbytes < plan->device_nbytes)
		return plan->memory_nbytes / 4;
	return plan->device_nbytes / 4;
}

/* For the reports, when all is done and the memory is free again: what took long, briefly. */
static void measure_ceilings(struct sort *sort)
{
	struct stats_totals totals;
	struct link_request request;
	struct link_rates rates;

	stats_finish(sort->job.stats);
	if (!sort->spec->measures_ceilings)
		return;
	stats_get_totals(sort->job.stats, &totals);
	if (!rates_request_after(&totals, trial_nbytes(sort), &request))
		return;
	run_store_free(&sort->store);
	chunk_pool_close(sort->job.pool);
	sort->job.pool = NULL;
	rates_measure(&sort->job, sort->spec, &request, &rates);
	memcpy(sort->facts->ceilings, rates.rates, sizeof rates.rates);
}

/*
 * What is planned for a pipe depends on whether it is compressed. With -m each pipe is read by
 * itself (input_runs.h), and must not be touched before.
 */
static int look_ahead(struct sort *sort, bool may_open)
{
	if (input_total_nbytes(sort->job.input) != INPUT_SIZE_UNKNOWN || sort->spec->merges)
		return 0;
	stats_begin_phase(sort->job.stats, PHASE_RUNS, 0);
	return input_look_ahead(sort->job.input, may_open);
}

/* An assumption is for what nobody knows. */
static int check_assumption(const struct sort *sort, uint64_t assumed_nbytes)
{
	const uint64_t nbytes = input_total_nbytes(sort->job.input);

	if (assumed_nbytes && nbytes != INPUT_SIZE_UNKNOWN)
		return fail(-EINVAL,
			    "--assume-size: the size of the input is known, %" PRIu64
			    " bytes: nothing need be assumed",
			    nbytes);
	return 0;
}

static int explain(struct sort *sort, uint64_t assumed_nbytes, struct explanation *ret_explanation)
{
	const struct setup setup = {
		.spec = sort->spec,
		.explains = true,
		.assumed_nbytes = assumed_nbytes,
	};
	struct link_request request = { .budget_ns = LINKS_EXPLAIN_NS };
	struct loads *loads = &ret_explanation->loads;
	int r = check_assumption(sort, assumed_nbytes);

	if (r == 0)
		r = look_ahead(sort, false);
	if (r == 0)
		r = setup_open(&setup, &sort->job);
	if (r < 0)
		return r;
	ret_explanation->plan = sort->job.plan;
	estimate_loads(&sort->job.plan, sort->job.layout, loads);
	if (sort->spec->verify)
		loads->nbytes[PHASE_CHECK][STAGE_VERIFY] = loads->nbytes[PHASE_MERGE][STAGE_WRITE];
	request.nbytes = trial_nbytes(sort);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		request.wanted[stage] = true;
	rates_measure(&sort->job, sort->spec, &request, &ret_explanation->rates);
	return 0;
}

/* Device, plan, memory and temporary space. */
static int open_rest(struct sort *sort)
{
	const struct setup setup = {
		.spec = sort->spec,
		.checkpoint = sort->checkpoint,
		.ordered_output = output_is_ordered(sort->output),
	};

	if (sort->checkpoint)
		sort->job.keeper = checkpoint_keeper(sort->checkpoint);
	return setup_open(&setup, &sort->job);
}

/* Everything but the inputs, and then the sort. */
static int open_and_sort(struct sort *sort)
{
	struct job *job = &sort->job;
	const struct sort_spec *spec = sort->spec;
	int r = 0;

	if (spec->checkpoint_path)
		r = checkpoint_open(job->io, spec, &sort->layout, job->input, &sort->checkpoint);
	if (r == 0 && sort->checkpoint && checkpoint_is_complete(sort->checkpoint)) {
		tell("resuming: %s is complete", spec->output_path);
		checkpoint_remove(sort->checkpoint);
		return 0;
	}
	if (r == 0)
		r = open_output(sort);
	if (r == 0)
		r = look_ahead(sort, true); /* whoever feeds us may wait for the output */
	if (r == 0)
		r = open_rest(sort);
	if (r == 0 && output_nbytes(sort) != OUTPUT_SIZE_UNKNOWN)
		choose_way_out(sort, output_nbytes(sort));
	if (r == 0)
		r = sort_to_output(sort);
	if (r < 0)
		checkpoint_stop(sort->checkpoint, sort->output);
	return r;
}

int sort_run(const struct sort_spec *spec, const struct sort_observer *observer,
	     struct stats *stats, struct sort_facts *ret_facts)
{
	struct sort sort = { .spec = spec, .job.stats = stats, .facts = ret_facts };
	int r = open_inputs(&sort, observer);

	if (r == 0)
		r = open_and_sort(&sort);
	if (r == 0) {
		input_pass(sort.job.input);
		note_facts(&sort);
		measure_ceilings(&sort);
	}
	close_all(&sort);
	return r;
}

int sort_explain(const struct sort_spec *spec, uint64_t assumed_nbytes,
		 const struct sort_observer *observer, struct stats *stats,
		 struct explanation *ret_explanation, struct sort_facts *ret_facts)
{
	struct sort sort = { .spec = spec, .job.stats = stats, .facts = ret_facts };
	int r = open_inputs(&sort, observer);

	if (r == 0)
		r = explain(&sort, assumed_nbytes, ret_explanation);
	if (r == 0)
		note_facts(&sort);
	close_all(&sort);
	return r;
}
