/*
 * sort_explain.c - explain a sort without running it (see sort.h)
 *
 * Everything except the output is opened as for the sort. The plan then tells how much data moves,
 * and a short calibration how fast.
 */
#include <errno.h>
#include <inttypes.h>

#include "io/output/output.h"
#include "io/output/part_files.h"
#include "src/base/diagnostics.h"
#include "src/cost/calibrate.h"
#include "src/sort/distributed_sort.h"
#include "src/sort/setup.h"
#include "src/sort/sort.h"
#include "src/sort/sort_internal.h"

/*
 * Check that assumptions are made only about what is unknown, and that the sort can be explained.
 */
static int check_assumption(const struct job *job, const struct sort_spec *spec,
			    uint64_t assumed_nbytes)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	if (spec_is_distributed(spec) && spec->merge_inputs)
		return fail(-EINVAL, "--explain of a merge is not possible with several ranks");
	if (assumed_nbytes && nbytes != INPUT_SIZE_UNKNOWN)
		return fail(-EINVAL,
			    "--assume-size: the size of the input is known: %" PRIu64 " bytes",
			    nbytes);
	if (spec_is_distributed(spec) && !assumed_nbytes && nbytes == INPUT_SIZE_UNKNOWN)
		return fail(-EINVAL,
			    "several ranks require an input of known size; name files, or use "
			    "--assume-size");
	return spec_is_distributed(spec) && !assumed_nbytes ? distributed_check_spec(spec) : 0;
}

/* Measure rates and estimate the time of a sort by one process. */
static void estimate_process(const struct sort_spec *spec, const struct job *job,
			     struct estimate *ret_estimate)
{
	struct calibration_request request = {
		.nbytes = calibrate_max_nbytes(&job->plan),
		.budget_ns = CALIBRATE_EXPLAIN_NS,
	};
	struct stage_volumes volumes;
	struct stage_rates rates;

	estimate_volumes(&job->plan, &job->plan_request, &volumes);
	if (spec->verify)
		volumes.nbytes[PHASE_VERIFY][STAGE_VERIFY] =
			volumes.nbytes[PHASE_FINAL_MERGE][STAGE_WRITE];
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		request.stages[stage] = true;
	calibrate_stages(job, spec, &request, &rates);
	estimate_make(&job->plan, &volumes, &rates, ret_estimate);
}

/* The directories need not exist if nothing is needed or they belong to a checkpoint. */
static int find_temp_space(const struct sort_spec *spec, const struct syscalls *calls,
			   uint64_t memory_nbytes, struct disk_space *space)
{
	const bool is_required = space->needed_nbytes && !spec->checkpoint_path;
	struct diagnostics *saved_messages = is_required ? NULL : diagnostics_push(NULL);
	struct spill *spill = NULL;
	int r = spill_open(calls, spec->temp_dirs, spec->n_temp_dirs, spec->temp_limit_nbytes,
			   memory_nbytes, &spill);

	if (r == 0)
		r = spill_free_nbytes(spill, &space->available_nbytes);
	spill_close(spill);
	if (!is_required)
		diagnostics_push(saved_messages);
	space->is_available_known = r == 0;
	return is_required ? r : 0;
}

static int try_part_files(const struct sort_spec *spec, const struct syscalls *calls)
{
	static const struct orphan_owner nobody;
	struct part_files *files;
	const int r =
		part_files_open(calls, spec->output_path, spec->n_part_files, "", &nobody, &files);

	if (r == 0)
		part_files_close(files, false);
	return r;
}

int sort_find_space(const struct sort_spec *spec, const struct syscalls *calls,
		    uint64_t memory_nbytes, struct explanation *explanation)
{
	struct disk_space *output = &explanation->output_space;
	int r = 0;

	if (spec->n_assumed_ranks)
		return 0;
	if (spec->output_path && !spec->check_only && spec->output_endpoint.kind == ENDPOINT_PATH) {
		r = spec->n_part_files ? try_part_files(spec, calls) :
					 output_try(calls, spec->output_path);
		output->is_available_known =
			output_find_free_space(spec->output_path, &output->available_nbytes);
	}
	return r < 0 ? r : find_temp_space(spec, calls, memory_nbytes, &explanation->temp_space);
}

/*
 * Return whether the output would be written in order. Standard output shows the plan now and may
 * be a pipe later.
 */
static bool may_write_in_order(const struct sort_spec *spec)
{
	if (spec_is_distributed(spec)) /* ranks need a regular file */
		return false;
	return spec->zstd_level > 0 || !spec->output_path ||
	       output_is_special_file(spec->output_path);
}

/* Return whether nothing is read, because the input is an assumption. */
static bool is_input_assumed(const struct sort_spec *spec, const struct assumptions *assumed)
{
	return spec_is_distributed(spec) && assumed->nbytes &&
	       spec->record_spec != RECORD_SPEC_REQUESTS;
}

/* Refuse an assumed size as the sort will refuse it. */
static int check_assumed_index(const struct job *job, uint64_t assumed_nbytes)
{
	const struct plan *plan = &job->plan;
	const uint64_t n_records = assumed_nbytes / job->layout->record_nbytes;

	if (plan->input_nbytes != PLAN_SIZE_UNKNOWN ||
	    n_records <= plan->n_chunks * plan->chunk_records)
		return 0;
	return plan_check_unknown_input(&job->plan_request, plan,
					n_records * plan->resident_nbytes);
}

static int make_plan(struct resolved_spec *resolved, struct setup *setup, struct job *job)
{
	const struct sort_spec *spec = &resolved->spec;
	int r = check_assumption(job, spec, setup->assumed_nbytes);

	if (r == 0 && !resolved->is_resolved)
		r = setup_probe_inputs(resolved, job, false);
	if (r < 0)
		return r;
	setup->needs_count_first =
		sort_output_needs_count(spec, &resolved->header, may_write_in_order(spec));
	r = setup_open(setup, job);
	return r < 0 ? r : check_assumed_index(job, setup->assumed_nbytes);
}

/* Estimate the time of a distributed sort from given and assumed rates. */
static void estimate_ranks(const struct job *job, const struct setup *setup,
			   const struct assumptions *assumed, struct explanation *explanation)
{
	struct rank_rates rates = assumed->rank_rates;

	rank_rates_set_defaults(&rates);
	cluster_estimate_make(&job->plan, &job->plan_request, &rates, &explanation->estimate,
			      &explanation->cluster);
	explanation->cluster.total_input_nbytes = setup_input_nbytes(job, setup);
	explanation->is_size_assumed = input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN;
}

int sort_explain(const struct sort_spec *given, const struct assumptions *assumed,
		 const struct sort_observer *observer, struct stats *stats,
		 struct explanation *ret_explanation)
{
	struct job job = { .stats = stats };
	struct sort_spec spec = *given;
	struct resolved_spec resolved;
	struct setup setup = {
		.spec = &resolved.spec,
		.explain_only = true,
		.ordered_output = spec.zstd_level > 0,
		.assumed_nbytes = assumed->nbytes,
	};
	int r;

	if (is_input_assumed(&spec, assumed))
		spec.format = FORMAT_RAW;
	r = setup_open_inputs(&spec, observer, &resolved, &job);
	if (r == 0)
		r = make_plan(&resolved, &setup, &job);
	if (r == 0) {
		const uint64_t nbytes = sort_output_expected_nbytes(&resolved.spec, &job);

		*ret_explanation = (struct explanation){
			.content = input_content(job.input),
			.temp_space = { .is_needed_known = true,
					.needed_nbytes = job.plan.max_temp_nbytes },
			.output_space = { .is_needed_known = nbytes != OUTPUT_SIZE_UNKNOWN,
					  .needed_nbytes = nbytes },
			.plan = job.plan,
			.summary = { .record_nbytes = resolved.spec.record_nbytes,
				     .n_passes = job.plan.n_passes },
		};
		r = sort_find_space(&resolved.spec, job.io, job.plan.host_spill_nbytes,
				    ret_explanation);
	}
	if (r == 0) {
		keys_format(resolved.spec.keys, resolved.spec.n_keys, resolved.spec.record_nbytes,
			    ret_explanation->summary.type);
		sort_summary_set_plan(&job.plan, &ret_explanation->summary);
		setup_estimate_memory(&job, &resolved.spec, &ret_explanation->memory);
		if (spec_is_distributed(setup.spec))
			estimate_ranks(&job, &setup, assumed, ret_explanation);
		else
			estimate_process(&resolved.spec, &job, &ret_explanation->estimate);
	}
	setup_close(&job);
	setup_close_inputs(&resolved, &job);
	return r;
}
