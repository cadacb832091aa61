/*
 * api_start.c - from options to a running sort, check or plan (see include/gsort.h)
 *
 * A sort has two threads of its own. The sort thread runs the job from begin to end; the stages of
 * the job start all other threads. The progress thread exists only if there is a progress callback,
 * which it calls periodically until the job has ended.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "config.h"
#include "src/base/thread.h"
#include "src/lib/lib_internal.h"
#include "src/options/command_files.h"
#include "src/options/file_roles.h"
#include "src/report/explain.h"

const char api_default_temp_dir[] = "/tmp";

/* --- Completing the request --- */

static int check_endpoints(const struct gsort *sort)
{
	const struct sort_spec *spec = &sort->options.spec;

	if (spec->output_endpoint.kind != ENDPOINT_PATH && spec->output_path)
		return fail(-EINVAL, "two outputs: '%s' and %s", spec->output_path,
			    sort->options.output_label);
	if (sort->returns_output && spec->partial == PARTIAL_KEEP)
		return fail(-EINVAL, "--partial=keep requires an output file, not gsort_get()");
	for (size_t i = 0; i < spec->n_inputs && spec->checkpoint_path; i++)
		if (sort->input_endpoints[i].kind == ENDPOINT_DESCRIPTOR)
			return fail(-EINVAL, "--checkpoint requires paths as inputs, not %s",
				    spec->inputs[i]);
	if (sort->accepts_puts && spec->checkpoint_path)
		return fail(-EINVAL, "--checkpoint requires paths as inputs, not gsort_put()");
	if (sort->accepts_puts && spec->format == FORMAT_NPY)
		return fail(-EINVAL, "--format=npy requires files as inputs, not gsort_put()");
	if (sort->accepts_puts && spec->skip_nbytes)
		return fail(-EINVAL, "--skip-bytes requires files as inputs, not gsort_put()");
	return 0;
}

/* Add gsort_put() as an input and gsort_get() as the output where the request names none. */
static int add_default_endpoints(struct gsort *sort, bool accepts_puts)
{
	const struct endpoint put_endpoint = { .kind = ENDPOINT_RENDEZVOUS,
					       .rendezvous = &sort->put_channel };
	struct options *options = &sort->options;
	int r = 0;

	sort->accepts_puts = accepts_puts || options->spec.n_inputs == 0;
	if (sort->accepts_puts)
		r = api_append_input(sort, "gsort_put()", put_endpoint);
	sort->returns_output = !options->spec.output_path && !sort->writes_to_stdout &&
			       options->spec.output_endpoint.kind == ENDPOINT_PATH;
	if (sort->returns_output) {
		options->spec.output_endpoint =
			(struct endpoint){ .kind = ENDPOINT_RENDEZVOUS,
					   .rendezvous = &sort->get_channel };
		options->output_label = "gsort_get()";
	}
	return r;
}

/* What completing a request changes. */
struct saved_request {
	struct option_arguments arguments;
	struct options options;
};

/* Undo completing. Arrays that grew keep their new places. */
static void restore_request(struct gsort *sort, const struct saved_request *saved)
{
	struct options *options = &sort->options;
	const struct sort_spec grown = options->spec;

	free(options->record.keys);
	free(options->files0_text);
	*options = saved->options;
	options->spec.inputs = grown.inputs;
	options->spec.input_endpoints = grown.input_endpoints;
	options->spec.temp_dirs = grown.temp_dirs;
	sort->arguments = saved->arguments;
	reports_discard(&sort->reports);
}

static int imply_option(struct gsort *sort, const char *option, const char *value)
{
	return option_set(sort->engine->option_table,
			  option_find(sort->engine->option_table, option), value, &sort->arguments,
			  &sort->options);
}

/* Set the option that means the operation, unless the command line had it. */
static int set_operation(struct gsort *sort, enum api_operation operation)
{
	const enum operation_mode mode = sort->options.mode;

	sort->operation = operation;
	sort->reports_disorder = mode == MODE_CHECK;
	sort->check_label = mode == MODE_CHECK       ? GSORT_PROGRAM " -c" :
			    mode == MODE_CHECK_QUIET ? GSORT_PROGRAM " -C" :
						       "gsort_check()";
	if (operation == API_CHECK && !options_is_check(&sort->options))
		return imply_option(sort, "check", NULL);
	if (operation == API_EXPLAIN && !sort->options.explain)
		return imply_option(sort, "explain", "json");
	return 0;
}

bool api_has_inputs(const struct gsort *sort)
{
	return sort->options.spec.n_inputs || sort->options.files0_path;
}

/* Add the inputs of --files0-from. */
static int read_input_list(struct gsort *sort)
{
	struct options *options = &sort->options;
	const char **names;
	size_t n;
	int r;

	if (!options->files0_path)
		return 0;
	if (options->spec.n_inputs)
		return fail(-EINVAL, "--files0-from: operand '%s' cannot be given as well",
			    options->spec.inputs[0]);
	r = api_distributed_check_files0(sort, options->files0_path);
	if (r < 0)
		return r;
	r = files0_read(options->files0_path, options->spec.memory_nbytes, &names, &n,
			&options->files0_text);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++)
		r = api_append_input(sort, names[i], (struct endpoint){ .kind = ENDPOINT_PATH });
	free(names);
	return r;
}

static int finalize_request(struct gsort *sort, enum api_operation operation, bool accepts_puts)
{
	struct sort_spec *spec = &sort->options.spec;
	int r = set_operation(sort, operation);

	if (r == 0)
		r = option_check_conflicts(sort->engine->option_table, &sort->arguments);
	/* Refuse options of another operation. */
	if (r == 0 && options_is_check(&sort->options) && operation != API_CHECK)
		r = fail(-EINVAL, "-c, --check: call gsort_check()");
	if (r == 0 && sort->options.explain && operation != API_EXPLAIN)
		r = fail(-EINVAL, "--explain: call gsort_explain()");
	if (r == 0)
		r = read_input_list(sort);
	if (r == 0 && operation != API_CHECK)
		r = add_default_endpoints(sort, accepts_puts);
	if (r == 0)
		r = check_endpoints(sort);
	if (r == 0)
		r = sort->engine->finalize(sort);
	if (r < 0)
		return r;
	if (spec->output_endpoint.kind != ENDPOINT_PATH)
		spec->output_path = sort->options.output_label;
	spec->cancellation = &sort->cancellation;
	spec->io = process_syscalls(sort->process);
	return 0;
}

/* --- Starting --- */

/* Other threads may be reading the progress. */
static void replace_stats(struct gsort *sort, struct stats *stats)
{
	struct stats *old_stats;

	pthread_mutex_lock(&sort->lock);
	old_stats = sort->stats;
	sort->stats = stats;
	pthread_mutex_unlock(&sort->lock);
	stats_close(old_stats);
}

int api_check_files(const struct gsort *sort)
{
	const struct options *options = &sort->options;
	const bool has_reports = reports_are_requested(options) || options->debug ||
				 options->progress == PROGRESS_OPTION_ALWAYS;

	if (sort->engine->follows_gnu_sort && sort->process && !has_reports &&
	    !options->spec.checkpoint_path)
		return 0;
	return command_files_check(options, sort->process != NULL);
}

/* Check all files; then open the reports on the rank that writes them. */
static int open_reports(struct gsort *sort)
{
	const struct options *options = &sort->options;
	const int r = api_check_files(sort);

	sort->drops_warnings = sort->process && !sort->engine->follows_gnu_sort &&
			       command_files_mix_messages(options);
	if (r < 0 || !api_is_reporting_rank(sort))
		return r;
	return reports_open(options->spec.io, options->report_paths, &sort->reports);
}

/*
 * GPU drivers may compile code in the sort's thread, so it gets the usual stack of a main thread,
 * unless address space is limited.
 */
static size_t sort_thread_stack_nbytes(void)
{
	static const int resources[] = { RLIMIT_AS, RLIMIT_DATA };

	for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++) {
		struct rlimit limit;

		if (getrlimit(resources[i], &limit) < 0 || limit.rlim_cur != RLIM_INFINITY)
			return 0;
	}
	return 8 << 20;
}

/*
 * Without a struct gsort_process, the caller's signals must not reach threads of the sort, and a
 * broken pipe must only be an error. So the threads block all signals.
 */
static int start_threads(struct gsort *sort)
{
	const bool blocks_signals = !sort->process;
	sigset_t saved_mask;
	int r;

	if (blocks_signals)
		thread_block_signals(&saved_mask);
	api_start_progress_thread(sort);
	r = thread_start(api_sort_thread, sort, sort_thread_stack_nbytes(), &sort->sort_thread);
	if (r < 0)
		api_end_progress_thread(sort, r);
	if (blocks_signals)
		thread_restore_signals(&saved_mask);
	return r < 0 ? fail(r, "cannot start a thread for the sort: %m%s",
			    thread_format_limits(r).text) :
		       0;
}

int api_start_check(struct gsort *sort, enum api_operation operation)
{
	const struct saved_request saved = { sort->arguments, sort->options };
	const int r = finalize_request(sort, operation, false);

	restore_request(sort, &saved);
	return r;
}

int api_start(struct gsort *sort, enum api_operation operation, bool accepts_puts)
{
	const struct saved_request saved = { sort->arguments, sort->options };
	struct stats *stats = NULL;
	int r;

	if (sort->has_started && sort->operation != operation)
		return fail(-EINVAL, "handle is in use for another operation; open another one");
	if (sort->has_started)
		return 0;
	r = finalize_request(sort, operation, accepts_puts);
	if (r == 0)
		r = open_reports(sort);
	if (r == 0 && sort->comm && operation != API_EXPLAIN)
		r = reports_open_rank_trace(&sort->reports, sort->comm);
	if (r == 0)
		r = stats_open(sort->reports.trace, sort->reports.time_series, &stats);
	if (r == 0)
		replace_stats(sort, stats);
	if (r == 0 && operation != API_EXPLAIN)
		r = api_distributed_open_progress(sort);
	if (r == 0)
		r = start_threads(sort);
	sort->has_started = r == 0;
	if (r < 0) {
		api_distributed_close_progress(sort);
		replace_stats(sort, NULL);
		restore_request(sort, &saved);
	}
	return r;
}

/* --- Checks and plans --- */

/* A check or plan must be the first operation of the handle. */
static int check_unused(const struct gsort *sort, const char *name)
{
	return sort->has_started ? fail(-EBUSY, "%s: handle is in use; open another one", name) : 0;
}

static int check_sort_order(struct gsort *sort, uint64_t *ret_first_unsorted)
{
	int r = api_check_pointer(ret_first_unsorted, "ret_first_unsorted");

	if (r < 0)
		return r;
	r = check_unused(sort, "gsort_check()");
	if (r < 0)
		return r;
	if (!api_has_inputs(sort))
		return fail(-EINVAL, "no input; call gsort_add_input_path()");
	if (sort->options.spec.output_endpoint.kind != ENDPOINT_PATH)
		return fail(-EINVAL, "output is %s, but a check writes nothing",
			    sort->options.output_label);
	r = api_start(sort, API_CHECK, false);
	if (r < 0)
		return r;
	r = api_wait(sort);
	if (r == 0)
		*ret_first_unsorted = sort->disorder;
	return r;
}

int gsort_check(struct gsort *sort, uint64_t *ret_first_unsorted)
{
	return API_CALL(sort, check_sort_order(sort, ret_first_unsorted));
}

static int write_explanation_json(const struct gsort *sort, FILE *stream)
{
	return explain_write_json(&sort->explanation, stream);
}

static int write_explanation_text(const struct gsort *sort, FILE *stream)
{
	explain_print(&sort->explanation, stream);
	return 0;
}

/* name: the function that the caller called. */
static int explain_sort(struct gsort *sort, uint64_t assumed_nbytes, api_text_writer *write,
			const char *name, const char *text_name, const char **ret_text)
{
	int r = api_check_pointer(ret_text, text_name);

	if (r == 0)
		r = check_unused(sort, name);
	if (r < 0)
		return r;
	sort->assumed_nbytes = assumed_nbytes ? assumed_nbytes : sort->options.assumed_nbytes;
	r = api_start(sort, API_EXPLAIN, false);
	if (r == 0)
		r = api_wait(sort);
	if (r == 0)
		r = api_make_text(sort, write, ret_text);
	if (r == 0)
		api_distributed_notice_assumed(sort);
	return r;
}

int gsort_explain(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_json)
{
	return API_CALL(sort, explain_sort(sort, assumed_nbytes, write_explanation_json,
					   "gsort_explain()", "ret_json", ret_json));
}

int gsort_explain_text(struct gsort *sort, uint64_t assumed_nbytes, const char **ret_text)
{
	return API_CALL(sort, explain_sort(sort, assumed_nbytes, write_explanation_text,
					   "gsort_explain_text()", "ret_text", ret_text));
}
