/*
 * sort_explain - what a sort would do, without doing it (see sort.h)
 *
 * Everything is opened as for the sort, but what it would write to; then the plan says what moves,
 * and a short measurement how fast.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "io/output/output.h"
#include "io/output/part_files.h"
#include "src/base/diagnostics.h"
#include "src/sort/sort_internal.h"
#include "src/sort/setup_internal.h"
#include "src/sort/distributed_sort.h"

/*
 * An assumption is for what nobody knows; and of a part of what nobody knows nothing is known. What
 * is known of ranks is how they sort.
 */
static int check_assumption(const struct job *job, const struct sort_spec *spec,
			    uint64_t assumed_nbytes)
{
	const uint64_t nbytes = input_total_nbytes(job->input);

	if (spec_has_ranks(spec) && spec->merges)
		return fail(-EINVAL, "a merge by several ranks cannot be explained yet: what is "
				     "told of ranks is of a sort");
	if (assumed_nbytes && nbytes != INPUT_SIZE_UNKNOWN)
		return fail_hint(-EINVAL, HINT_ABOUT_ASSUMED_SIZE, 0,
				 "the size of the input is known, %" PRIu64
				 " bytes: nothing need be assumed",
				 nbytes);
	if (spec_has_ranks(spec) && !assumed_nbytes && nbytes == INPUT_SIZE_UNKNOWN)
		return fail_hint(-EINVAL, HINT_ASSUME_SIZE, 0,
				 "of an input of unknown size ranks have no parts");
	return spec_has_ranks(spec) && !assumed_nbytes ? share_check_spec(spec) : 0;
}

static struct loads loads_of(const struct sort_spec *spec, const struct job *job)
{
	struct loads loads;

	estimate_loads(&job->plan, &job->request, &loads);
	if (spec->verify)
		loads.nbytes[PHASE_CHECK][STAGE_VERIFY] = loads.nbytes[PHASE_MERGE][STAGE_WRITE];
	return loads;
}

static struct link_rates rates_of(const struct sort_spec *spec, const struct job *job)
{
	struct link_request request = {
		.nbytes = rates_trial_nbytes(&job->plan),
		.budget_ns = LINKS_EXPLAIN_NS,
	};
	struct link_rates rates = { 0 };

	if (spec_has_ranks(spec))
		return rates;
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		request.wanted[stage] = true;
	rates_measure(job, spec, &request, &rates);
	return rates;
}

/* What could be stored in the temporary directories. */
static int find_temporary(const struct sort_spec *spec, const struct job *job, uint64_t *ret_nbytes)
{
	struct spill *spill = NULL;
	int r;

	r = spill_open(job->io, spec->temp_dirs, spec->n_temp_dirs, spec->temp_limit_nbytes,
		       job->plan.host_tier_nbytes, &spill);
	if (r == 0)
		r = spill_free_nbytes(spill, ret_nbytes);
	spill_close(spill);
	return r;
}

/* Directories that nothing is stored in need not be there, nor one that the sort would make. */
static int find_temporary_room(const struct sort_spec *spec, const struct job *job,
			       struct room *ret_room)
{
	struct room room = { .is_needed_known = true,
			     .needed_nbytes = job->plan.most_temporary_nbytes };
	const bool must_be_there = room.needed_nbytes && !spec->checkpoint_path;
	struct messages *before;
	int r;

	if (spec->n_ranks_assumed) {
		*ret_room = room;
		return 0;
	}
	before = must_be_there ? NULL : messages_enter(NULL);
	r = find_temporary(spec, job, &room.available_nbytes);
	if (!must_be_there)
		messages_enter(before);
	room.is_available_known = r == 0;
	*ret_room = room;
	return must_be_there ? r : 0;
}

/* A pipe or a device. */
static bool is_no_file(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

/*
 * Can there be such an output? It is opened, and is gone again; but a pipe or a device, where that
 * could be seen. The rest of what a sort refuses shows when it begins.
 */
static int try_file(const char *path, const struct job *job)
{
	struct output *output;
	const int r = output_open(job->io, path, 0, &output);

	if (r == 0)
		output_abort(output);
	return r;
}

static int try_parts(const struct sort_spec *spec, const struct job *job)
{
	const uint32_t n = spec->n_part_files;
	char *path;
	int r = part_files_check(job->io, spec->output_path, n);

	for (uint32_t i = 0; i <= n && r == 0; i++) {
		r = part_files_make_path(spec->output_path, n, i, &path);
		if (r < 0)
			break;
		r = try_file(path, job);
		free(path);
	}
	return r;
}

static int try_output(const struct sort_spec *spec, const struct job *job)
{
	if (!spec->output_path || spec->checks || spec->n_ranks_assumed)
		return 0;
	if (spec->n_part_files)
		return try_parts(spec, job);
	return is_no_file(spec->output_path) ? 0 : try_file(spec->output_path, job);
}

/* In the directory that a file will be in; false if that cannot be found out. */
static bool find_beside(const char *path, uint64_t *ret_nbytes)
{
	const char *slash = strrchr(path, '/');
	char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
	struct statvfs space;
	const bool is_there = directory && statvfs(directory, &space) == 0;

	if (is_there)
		*ret_nbytes = (uint64_t)space.f_bavail * space.f_frsize;
	free(directory);
	return is_there;
}

static struct room output_room(const struct sort_spec *spec, const struct job *job)
{
	struct room room = { .needed_nbytes = result_expected_nbytes(spec, job) };

	room.is_needed_known = room.needed_nbytes != OUTPUT_SIZE_UNKNOWN;
	if (spec->output_path && !spec->n_ranks_assumed)
		room.is_available_known = find_beside(spec->output_path, &room.available_nbytes);
	return room;
}

/*
 * Would it be written in order? What standard output is, the plan being written to it, does not say
 * what it will be: it may be a pipe.
 */
static bool may_be_ordered(const struct sort_spec *spec)
{
	if (spec_has_ranks(spec)) /* who need a file */
		return false;
	return spec->zstd_level > 0 || !spec->output_path || is_no_file(spec->output_path);
}

/* Is nothing to be read, since the input is not this one? */
static bool is_input_assumed(const struct sort_spec *spec, const struct assumptions *assumed)
{
	return spec_has_ranks(spec) && assumed->nbytes && spec->said != RECORDS_CHOICES;
}

static int make_plan(struct settled *settled, struct setup *setup, struct job *job)
{
	const struct sort_spec *spec = &settled->spec;
	int r = check_assumption(job, spec, setup->assumed_nbytes);

	if (r == 0 && !settled->is_done)
		r = setup_look_ahead(settled, job, false);
	if (r < 0)
		return r;
	setup->counts_first = around_counts_first(spec, &settled->header, may_be_ordered(spec));
	return setup_open(setup, job);
}

static void explain_ranks(const struct job *job, const struct setup *setup,
			  const struct assumptions *assumed, struct explanation *explanation)
{
	if (!spec_has_ranks(setup->spec))
		return;
	explanation->rank_rates = assumed->rank_rates;
	rank_rates_assume(&explanation->rank_rates);
	rank_loads_find(&job->plan, &job->request, &explanation->rank_rates,
			&explanation->rank_loads);
	explanation->rank_loads.all_nbytes = setup_input_nbytes(job, setup);
	explanation->is_size_assumed = input_total_nbytes(job->input) == INPUT_SIZE_UNKNOWN;
}

int sort_explain(const struct sort_spec *given, const struct assumptions *assumed,
		 const struct sort_observer *observer, struct stats *stats,
		 struct explanation *ret_explanation)
{
	struct job job = { .stats = stats };
	struct sort_spec spec = *given;
	struct settled settled;
	struct setup setup = {
		.spec = &settled.spec,
		.explains = true,
		.ordered_output = spec.zstd_level > 0,
		.assumed_nbytes = assumed->nbytes,
	};
	struct room temporary;
	int r;

	if (is_input_assumed(&spec, assumed))
		spec.format = FORMAT_RAW;
	r = setup_open_inputs(&spec, observer, &settled, &job);
	if (r == 0)
		r = make_plan(&settled, &setup, &job);
	if (r == 0)
		r = try_output(&settled.spec, &job);
	if (r == 0)
		r = find_temporary_room(&settled.spec, &job, &temporary);
	if (r == 0) {
		*ret_explanation = (struct explanation){
			.content = input_content(job.input),
			.temporary = temporary,
			.output = output_room(&settled.spec, &job),
			.plan = job.plan,
			.loads = loads_of(&settled.spec, &job),
			.rates = rates_of(&settled.spec, &job),
			.facts = { .record_nbytes = settled.spec.record_nbytes,
				   .n_passes = job.plan.n_passes },
		};
		keys_format(settled.spec.keys, settled.spec.n_keys, settled.spec.record_nbytes,
			    ret_explanation->facts.type);
		facts_note_plan(&job.plan, &ret_explanation->facts);
		explain_ranks(&job, &setup, assumed, ret_explanation);
	}
	setup_close(&job);
	setup_close_inputs(&settled, &job);
	return r;
}
