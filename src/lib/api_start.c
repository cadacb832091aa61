/*
 * api_start - what a handle was told becomes a sort, which begins (see include/gsort.h)
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "src/base/thread.h"
#include "config.h"
#include "src/lib/lib_internal.h"
#include "src/options/files0.h"
#include "src/options/options_finalize.h"

/* Without the environment there is no other that all systems have. */
static const char default_temp_dir[] = "/tmp";

/* What a stream of records has no place for. */
static int check_puts(const struct gsort *sort)
{
	const struct options *options = &sort->options;

	if (options->checkpoint_path)
		return fail(-EINVAL, "--checkpoint needs inputs that are paths: what is put cannot "
				     "be read again");
	if (options->format == FORMAT_NPY)
		return fail(-EINVAL, "--format=npy: what is put is records, and no file");
	if (options->skip_nbytes)
		return fail(-EINVAL, "--skip-bytes: what is put is records, and no file");
	if (options->n_shards)
		return fail(-EINVAL, "--shard needs input files: the size of what is put is not "
				     "known");
	return 0;
}

/* Where nothing else is read, nothing will say later what a record is. */
static int check_record_spec(const struct gsort *sort)
{
	const struct record_options *record = &sort->options.record;

	return sort->accepts_puts && sort->options.n_inputs == 1 &&
			       record->spec_kind == RECORD_SPEC_REQUESTS ?
		       record_options_refuse_keys(record) :
		       0;
}

static int check_endpoints(const struct gsort *sort)
{
	const struct options *options = &sort->options;

	if (sort->output_endpoint.kind != ENDPOINT_PATH && options->output_path)
		return fail(-EINVAL, "the output is '%s' and %s: one of them is too many",
			    options->output_path, sort->output_label);
	if (sort->returns_output && options->partial == PARTIAL_KEEP)
		return fail(-EINVAL, "--partial=keep: what is got is records, and no part of one");
	for (size_t i = 0; i < options->n_inputs && options->checkpoint_path; i++)
		if (sort->input_endpoints[i].kind == ENDPOINT_DESCRIPTOR)
			return fail(-EINVAL, "--checkpoint needs inputs that are paths, and not %s",
				    options->inputs[i]);
	return sort->accepts_puts ? check_puts(sort) : 0;
}

/* The inputs and the output that were not named. */
static int add_default_endpoints(struct gsort *sort, bool accepts_puts)
{
	const struct endpoint put_endpoint = { .kind = ENDPOINT_RENDEZVOUS,
					       .rendezvous = &sort->put_channel };
	int r = 0;

	sort->accepts_puts = accepts_puts || sort->options.n_inputs == 0;
	if (sort->accepts_puts)
		r = api_append_input(sort, "what was put", put_endpoint);
	sort->returns_output = !sort->options.output_path &&
			       sort->output_endpoint.kind == ENDPOINT_PATH;
	if (sort->returns_output) {
		sort->output_endpoint = (struct endpoint){ .kind = ENDPOINT_RENDEZVOUS,
							   .rendezvous = &sort->get_channel };
		sort->output_label = "what is got";
	}
	sort->options.output_label = sort->output_label;
	return r;
}

/* What was asked for, and what is not begun by it; the rest of the handle is not settled. */
struct saved_request {
	struct option_arguments arguments;
	struct options options;
	struct endpoint output_endpoint;
	const char *output_label;
};

static void save_request(const struct gsort *sort, struct saved_request *ret_saved)
{
	*ret_saved = (struct saved_request){ .arguments = sort->arguments,
					     .options = sort->options,
					     .output_endpoint = sort->output_endpoint,
					     .output_label = sort->output_label };
}

/* As if nobody had tried to begin. What grew meanwhile stays where it is now. */
static void restore_request(struct gsort *sort, const struct saved_request *saved)
{
	struct options *options = &sort->options;
	const char **inputs = options->inputs, **temp_dirs = options->temp_dirs;

	free(options->record.keys); /* which only settling makes, */
	free(options->files0_text); /* and reading a list */
	*options = saved->options;
	options->inputs = inputs;
	options->temp_dirs = temp_dirs;
	sort->arguments = saved->arguments;
	reports_discard(&sort->reports);
	sort->output_endpoint = saved->output_endpoint;
	sort->output_label = saved->output_label;
}

static int imply_option(struct gsort *sort, const char *option, const char *value)
{
	return option_set(&options_table, option_find(&options_table, option), value,
			  &sort->arguments, &sort->options);
}

static bool has_check_mode(const struct gsort *sort)
{
	return sort->options.mode == MODE_CHECK || sort->options.mode == MODE_CHECK_QUIET;
}

/* What it is used for is an option of the command line, which may have been taken as well. */
static int set_operation(struct gsort *sort, enum api_operation operation)
{
	const enum operation_mode mode = sort->options.mode;

	sort->reports_disorder = mode == MODE_CHECK;
	sort->check_label = mode == MODE_CHECK       ? GSORT_PROGRAM " -c" :
			    mode == MODE_CHECK_QUIET ? GSORT_PROGRAM " -C" :
						       "gsort_check()";
	if (operation == API_CHECK && !has_check_mode(sort))
		return imply_option(sort, "check", NULL);
	if (operation == API_EXPLAIN && !sort->options.explain)
		return imply_option(sort, "explain", "json");
	return 0;
}

/* What was taken is done by another function. */
static int check_operation(const struct gsort *sort, enum api_operation operation)
{
	if (has_check_mode(sort) && operation != API_CHECK)
		return fail(-EINVAL, "-c, --check was taken: gsort_check() does it");
	if (sort->options.explain && operation != API_EXPLAIN)
		return fail(-EINVAL, "--explain was taken: gsort_explain() does it");
	return 0;
}

bool api_has_inputs(const struct gsort *sort)
{
	return sort->options.n_inputs || sort->options.files0_path;
}

/* The inputs that a list names. */
static int read_input_list(struct gsort *sort)
{
	struct options *options = &sort->options;
	const char **names;
	size_t n;
	int r;

	if (!options->files0_path)
		return 0;
	if (options->n_inputs)
		return fail(-EINVAL,
			    "--files0-from: operand '%s' cannot be given as well: all file names "
			    "come from '%s'",
			    options->inputs[0], options->files0_path);
	r = api_distributed_check_files0(sort, options->files0_path);
	if (r < 0)
		return r;
	r = files0_read(options->files0_path, options->buffer_nbytes, &names, &n,
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
	int r = set_operation(sort, operation);

	if (r == 0)
		r = option_check_conflicts(&options_table, &sort->arguments);
	if (r == 0)
		r = check_operation(sort, operation);
	if (r == 0)
		r = read_input_list(sort);
	if (r == 0 && operation != API_CHECK)
		r = add_default_endpoints(sort, accepts_puts);
	if (r == 0)
		r = check_endpoints(sort);
	if (r == 0)
		r = options_finalize(&sort->options, default_temp_dir);
	if (r == 0)
		r = check_record_spec(sort);
	if (r < 0)
		return r;
	sort->spec = options_spec(&sort->options);
	sort->spec.input_endpoints = sort->input_endpoints;
	sort->spec.output_endpoint = sort->output_endpoint;
	if (sort->output_endpoint.kind != ENDPOINT_PATH)
		sort->spec.output_path = sort->output_label;
	sort->spec.omit_header = sort->returns_output;
	sort->spec.cancellation = &sort->cancellation;
	sort->spec.io = process_syscalls(sort->process);
	sort->spec.comm = sort->comm;
	if (sort->comm)
		api_distributed_divide_host(sort->comm, &sort->spec);
	return sort->comm ? 0 : api_distributed_check_planned(sort, &sort->spec);
}

/* Others may ask how far it is. */
static void replace_stats(struct gsort *sort, struct stats *stats)
{
	struct stats *old_stats;

	pthread_mutex_lock(&sort->lock);
	old_stats = sort->stats;
	sort->stats = stats;
	pthread_mutex_unlock(&sort->lock);
	stats_close(old_stats);
}

static int open_stats(struct gsort *sort)
{
	struct reports *reports = &sort->reports;
	struct stats *stats;
	const int r = stats_open_with_time_series(reports->trace, reports->time_series, &stats);

	if (r < 0)
		return r;
	replace_stats(sort, stats);
	return 0;
}

struct command_files api_command_files(const struct gsort *sort)
{
	return (struct command_files){ .options = &sort->options,
				       .input_endpoints = sort->input_endpoints,
				       .has_output_endpoint = sort->output_endpoint.kind !=
							      ENDPOINT_PATH,
				       .uses_standard_streams = sort->process };
}

/* No file is two things, and those that tell of it can be written, by who writes them. */
static int open_reports(struct gsort *sort)
{
	const struct command_files files = api_command_files(sort);
	const int r = command_files_check(&files);

	return r < 0 || !is_reporting_rank(sort) ?
		       r :
		       reports_open(&sort->options, sort->spec.io, &sort->reports);
}

/*
 * The engine opens devices, whose drivers may have to compile what runs there: it has the stack
 * that the first thread of a program mostly has, unless addresses are limited.
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
 * Signals are the caller's: none comes to these threads, and a broken pipe is only an error; unless
 * the caller handles them.
 */
static int start_threads(struct gsort *sort)
{
	const bool blocks_signals = !sort->process;
	char limits[THREAD_LIMITS_NBYTES];
	sigset_t saved_mask;
	int r;

	if (blocks_signals)
		thread_block_signals(&saved_mask);
	r = thread_start(api_sort_thread, sort, sort_thread_stack_nbytes(), &sort->sort_thread);
	if (r == 0 && sort->progress_callback)
		sort->has_progress_thread =
			thread_start(api_progress_thread, sort, 0, &sort->progress_thread) == 0;
	if (blocks_signals)
		thread_restore_signals(&saved_mask);
	return r < 0 ? fail(r, "cannot start a thread for the sort: %m%s",
			    thread_format_limits(r, limits)) :
		       0;
}

int api_start_check(struct gsort *sort, enum api_operation operation)
{
	struct saved_request saved;
	int r;

	save_request(sort, &saved);
	r = finalize_request(sort, operation, false);
	restore_request(sort, &saved);
	return r;
}

/* One that could not be begun has not: what was asked for can be mended, and begun again. */
int api_start(struct gsort *sort, enum api_operation operation, bool accepts_puts)
{
	struct saved_request saved;
	int r;

	if (sort->has_started && sort->operation != operation)
		return fail(-EINVAL, "this handle was used for something else: open another one");
	if (sort->has_started)
		return 0;
	save_request(sort, &saved);
	sort->operation = operation;
	r = finalize_request(sort, operation, accepts_puts);
	if (r == 0)
		r = open_reports(sort);
	if (r == 0 && operation != API_EXPLAIN)
		r = api_distributed_open_trace(sort);
	if (r == 0)
		r = open_stats(sort);
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
