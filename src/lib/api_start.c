/*
 * api_start - what a handle was told becomes a sort, which begins (see include/gsort.h)
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "src/base/thread.h"
#include "src/lib/lib_internal.h"
#include "src/options/files0.h"
#include "src/options/options_finalize.h"

/* Without the environment there is no other that all systems have. */
static const char usual_directory[] = "/tmp";

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
	if (options->n_parts)
		return fail(-EINVAL, "--shard needs input files: the size of what is put is not "
				     "known");
	return 0;
}

/* Where nothing else is read, nothing will say later what a record is. */
static int check_known(const struct gsort *sort)
{
	const struct record_options *record = &sort->options.record;

	return sort->takes_puts && sort->options.n_inputs == 1 && record->said == RECORDS_CHOICES ?
		       record_options_refuse_choices(record) :
		       0;
}

static int check_given(const struct gsort *sort)
{
	const struct options *options = &sort->options;

	if (sort->given_output.kind != GIVEN_PATH && options->output_path)
		return fail(-EINVAL, "the output is '%s' and %s: one of them is too many",
			    options->output_path, sort->output_name);
	if (sort->gives && options->partial == PARTIAL_KEEP)
		return fail(-EINVAL, "--partial=keep: what is got is records, and no part of one");
	for (size_t i = 0; i < options->n_inputs && options->checkpoint_path; i++)
		if (sort->given_inputs[i].kind == GIVEN_DESCRIPTOR)
			return fail(-EINVAL, "--checkpoint needs inputs that are paths, and not %s",
				    options->inputs[i]);
	return sort->takes_puts ? check_puts(sort) : 0;
}

/* The inputs and the output that were not named. */
static int complete_ends(struct gsort *sort, bool takes_puts)
{
	const struct given in = { .kind = GIVEN_HANDOVER, .handover = &sort->in };
	int r = 0;

	sort->takes_puts = takes_puts || sort->options.n_inputs == 0;
	if (sort->takes_puts)
		r = append_input(sort, "what was put", in);
	sort->gives = !sort->options.output_path && sort->given_output.kind == GIVEN_PATH;
	if (sort->gives) {
		sort->given_output =
			(struct given){ .kind = GIVEN_HANDOVER, .handover = &sort->out };
		sort->output_name = "what is got";
	}
	sort->options.unnamed_output = sort->output_name;
	return r;
}

/* What was asked for, and what is not begun by it; the rest of the handle is not settled. */
struct asked {
	struct option_arguments arguments;
	struct options options;
	struct given output;
	const char *output_name;
};

static void note_asked(const struct gsort *sort, struct asked *ret_asked)
{
	*ret_asked = (struct asked){ .arguments = sort->arguments,
				     .options = sort->options,
				     .output = sort->given_output,
				     .output_name = sort->output_name };
}

/* As if nobody had tried to begin. What grew meanwhile stays where it is now. */
static void ask_again(struct gsort *sort, const struct asked *asked)
{
	struct options *options = &sort->options;
	const char **inputs = options->inputs, **temp_dirs = options->temp_dirs;

	free(options->record.keys);  /* which only settling makes, */
	free(options->files0_names); /* and reading a list */
	*options = asked->options;
	options->inputs = inputs;
	options->temp_dirs = temp_dirs;
	sort->arguments = asked->arguments;
	reports_drop(&sort->reports);
	sort->given_output = asked->output;
	sort->output_name = asked->output_name;
}

static int imply(struct gsort *sort, const char *option, const char *value)
{
	return option_take(&options_table, option_find(&options_table, option), value,
			   &sort->arguments, &sort->options);
}

static bool checks(const struct gsort *sort)
{
	return sort->options.mode == MODE_CHECK || sort->options.mode == MODE_CHECK_QUIET;
}

/* What it is used for is an option of the command line, which may have been taken as well. */
static int settle_purpose(struct gsort *sort, enum purpose purpose)
{
	const enum mode mode = sort->options.mode;

	sort->names_disorder = mode == MODE_CHECK;
	sort->checker = mode == MODE_CHECK       ? "gsort -c" :
			mode == MODE_CHECK_QUIET ? "gsort -C" :
						   "gsort_check()";
	if (purpose == PURPOSE_CHECK && !checks(sort))
		return imply(sort, "check", NULL);
	if (purpose == PURPOSE_EXPLAIN && !sort->options.explain)
		return imply(sort, "explain", "json");
	return 0;
}

/* What was taken is done by another function. */
static int check_purpose(const struct gsort *sort, enum purpose purpose)
{
	if (checks(sort) && purpose != PURPOSE_CHECK)
		return fail(-EINVAL, "-c, --check was taken: gsort_check() does it");
	if (sort->options.explain && purpose != PURPOSE_EXPLAIN)
		return fail(-EINVAL, "--explain was taken: gsort_explain() does it");
	return 0;
}

bool begin_has_inputs(const struct gsort *sort)
{
	return sort->options.n_inputs || sort->options.files0_path;
}

/* The inputs that a list names. */
static int take_list(struct gsort *sort)
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
	r = company_check_list(sort, options->files0_path);
	if (r < 0)
		return r;
	r = files0_read(options->files0_path, &names, &n, &options->files0_names);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++)
		r = append_input(sort, names[i], (struct given){ .kind = GIVEN_PATH });
	free(names);
	return r;
}

static int settle(struct gsort *sort, enum purpose purpose, bool takes_puts)
{
	int r = settle_purpose(sort, purpose);

	if (r == 0)
		r = option_check_conflicts(&options_table, &sort->arguments);
	if (r == 0)
		r = check_purpose(sort, purpose);
	if (r == 0)
		r = take_list(sort);
	if (r == 0 && purpose != PURPOSE_CHECK)
		r = complete_ends(sort, takes_puts);
	if (r == 0)
		r = check_given(sort);
	if (r == 0)
		r = options_settle(&sort->options, usual_directory);
	if (r == 0)
		r = check_known(sort);
	if (r < 0)
		return r;
	sort->spec = options_spec(&sort->options);
	sort->spec.given_inputs = sort->given_inputs;
	sort->spec.given_output = sort->given_output;
	if (sort->given_output.kind != GIVEN_PATH)
		sort->spec.output_path = sort->output_name;
	sort->spec.records_only = sort->gives;
	sort->spec.cancellation = &sort->cancellation;
	sort->spec.io = process_calls(sort->process);
	sort->spec.ranks = sort->ranks;
	if (sort->ranks)
		company_share_machine(sort->ranks, &sort->spec);
	return sort->ranks ? 0 : company_imagine(sort, &sort->spec);
}

/* Others may ask how far it is. */
static void set_stats(struct gsort *sort, struct stats *stats)
{
	struct stats *before;

	pthread_mutex_lock(&sort->lock);
	before = sort->stats;
	sort->stats = stats;
	pthread_mutex_unlock(&sort->lock);
	stats_close(before);
}

static int open_stats(struct gsort *sort)
{
	struct reports *reports = &sort->reports;
	struct stats *stats;
	const int r = stats_open_watched(reports->trace, reports->history, &stats);

	if (r < 0)
		return r;
	set_stats(sort, stats);
	return 0;
}

struct run_files begin_files(const struct gsort *sort)
{
	return (struct run_files){ .options = &sort->options,
				   .given_inputs = sort->given_inputs,
				   .output_is_given = sort->given_output.kind != GIVEN_PATH,
				   .has_streams = sort->process };
}

/* No file is two things, and those that tell of it can be written, by who writes them. */
static int open_reports(struct gsort *sort)
{
	const struct run_files files = begin_files(sort);
	const int r = run_files_check(&files);

	return r < 0 || !company_tells(sort) ?
		       r :
		       reports_open(&sort->options, sort->spec.io, &sort->reports);
}

/*
 * The engine opens devices, whose drivers may have to compile what runs there: it has the stack
 * that the first thread of a program mostly has, unless addresses are limited.
 */
static size_t engine_stack_nbytes(void)
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
	const bool holds_signals = !sort->process;
	char limits[THREAD_LIMITS_NBYTES];
	sigset_t before;
	int r;

	if (holds_signals)
		thread_hold_signals(&before);
	r = thread_start(engine_run, sort, engine_stack_nbytes(), &sort->engine);
	if (r == 0 && sort->watcher)
		sort->is_watched = thread_start(told_watch, sort, 0, &sort->watching) == 0;
	if (holds_signals)
		thread_let_signals(&before);
	return r < 0 ? fail(r, "cannot start a thread for the sort: %m%s",
			    thread_limits(r, limits)) :
		       0;
}

int begin_try(struct gsort *sort, enum purpose purpose)
{
	struct asked asked;
	int r;

	note_asked(sort, &asked);
	r = settle(sort, purpose, false);
	ask_again(sort, &asked);
	return r;
}

/* One that could not be begun has not: what was asked for can be mended, and begun again. */
int begin(struct gsort *sort, enum purpose purpose, bool takes_puts)
{
	struct asked asked;
	int r;

	if (sort->has_begun && sort->purpose != purpose)
		return fail(-EINVAL, "this handle was used for something else: open another one");
	if (sort->has_begun)
		return 0;
	note_asked(sort, &asked);
	sort->purpose = purpose;
	r = settle(sort, purpose, takes_puts);
	if (r == 0)
		r = open_reports(sort);
	if (r == 0 && purpose != PURPOSE_EXPLAIN)
		r = company_open_trace(sort);
	if (r == 0)
		r = open_stats(sort);
	if (r == 0 && purpose != PURPOSE_EXPLAIN)
		r = company_open_news(sort);
	if (r == 0)
		r = start_threads(sort);
	sort->has_begun = r == 0;
	if (r < 0) {
		company_close_news(sort);
		set_stats(sort, NULL);
		ask_again(sort, &asked);
	}
	return r;
}
