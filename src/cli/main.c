/*
 * main - parse, run, report; the only exit
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/messages.h"
#include "src/base/thread.h"
#include "src/cli/check.h"
#include "src/cli/command_line.h"
#include "src/cli/deadly_signals.h"
#include "src/report/debug.h"
#include "src/cli/exit_status.h"
#include "src/cli/messages_print.h"
#include "src/cli/process.h"
#include "src/cli/progress.h"
#include "src/cli/reports.h"
#include "src/options/roles.h"
#include "src/report/explain.h"
#include "src/sort/sort.h"

/*
 * A descriptor from 0 to 2 that is closed would be given to the next file that is opened, and
 * messages would be written into it. Put something harmless there, on which reads and writes fail.
 */
static int occupy_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
			return -errno;
	return 0;
}

/*
 * Files that the umask closes to their owner, too, could be neither opened a second time nor, in a
 * checkpoint, taken up. It counts for everybody else.
 */
static void open_files_to_their_owner(void)
{
	umask(umask(S_IRWXG | S_IRWXO) & (S_IRWXG | S_IRWXO));
}

/*
 * What is large does not come from malloc, and what does is seldom: one arena does for all threads.
 * By default each has one of its own, which takes 64 MiB of addresses, and these may be limited.
 * (So glibc does; musl has no arenas.)
 */
static void keep_to_one_arena(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
}

/* The files that inputs turn out to be have one role, too; and --debug. */
static int look_at_inputs(void *context, const struct sort_spec *spec, const struct layout *layout,
			  struct input *input)
{
	const struct options *options = context;
	const int r = roles_check_opened(options, input);

	return r < 0 || !options->debug ? r : debug_tell(spec, layout, input);
}

/* What is left is reports. */
static void end_with_reports(void *context)
{
	(void)context;
	deadly_signals_end_reports();
}

static struct sort_spec spec_of(const struct options *options)
{
	struct sort_spec spec = options_spec(options);

	spec.io = process_calls();
	return spec;
}

/* --explain */
static int explain(const struct options *options, const struct sort_observer *observer,
		   struct stats *stats, struct sort_facts *facts)
{
	const struct sort_spec spec = spec_of(options);
	struct explanation explanation;
	int r = sort_explain(&spec, options->assumed_nbytes, observer, stats, &explanation);

	if (r < 0)
		return r;
	if (options->explain == EXPLAIN_JSON)
		r = explain_write_json(&explanation, stdout);
	else
		explain_print(&explanation, stdout);
	*facts = explanation.facts;
	return r;
}

/* Check, sort or merge. */
static int run(const struct options *options, struct stats *stats, struct sort_facts *facts)
{
	const struct sort_observer observer = { .context = (void *)options,
						.opened = look_at_inputs,
						.committed = reports_are_wanted(options) ?
								     end_with_reports :
								     NULL };
	const struct sort_spec spec = spec_of(options);

	if (options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET)
		return check_run(options, &spec, &observer, stats, facts);
	if (options->explain)
		return explain(options, &observer, stats, facts);
	return sort_run(&spec, &observer, stats, facts);
}

/* Who calls it with too few names waits for it, while it waits for them. */
static void tell_of_terminal(const struct options *options)
{
	const bool is_refused = options->mode != MODE_CHECK && options->mode != MODE_CHECK_QUIET &&
				!options->output_path && isatty(STDOUT_FILENO);

	if (options->explain || is_refused || !isatty(STDIN_FILENO))
		return;
	for (size_t i = 0; i < options->n_inputs; i++)
		if (!strcmp(options->inputs[i], "-"))
			tell("reading standard input, which is a terminal: Ctrl-D ends it, Ctrl-C "
			     "gives up");
}

static int run_reporting(const struct options *options)
{
	struct sort_facts facts = { 0 };
	struct reports reports = { 0 };
	struct stats *stats = NULL;
	struct progress *progress = NULL;
	int r, reported = 0;

	r = roles_check(options);
	if (r == 0)
		r = reports_open(options, &reports);
	if (r == 0)
		r = stats_open_watched(reports.trace, reports.history, &stats);
	if (r == 0)
		r = progress_open(options->progress, stats, &progress);
	if (r == 0)
		tell_of_terminal(options);
	if (r == 0)
		r = run(options, stats, &facts);
	reports.found_disorder = r > 0;
	stats_finish(stats);
	progress_close(progress); /* its line goes before the table comes */
	if (r >= 0)
		reported = reports_write(options, &(struct report){ stats, &facts }, &reports);
	else
		reports_drop(&reports);
	stats_close(stats);
	return reported < 0 ? reported : r;
}

/* Descriptors: of a part of the output, its file, directory and old file; and of all else. */
enum { FILES_OF_A_PART = 4, FILES_BESIDE = 256 };

static int run_program(int argc, char **argv)
{
	struct options options;
	int r = occupy_standard_descriptors();

	messages_print_as("gsort");
	open_files_to_their_owner();
	if (r == 0)
		r = options_parse(argc, argv, &options);
	if (r == 0) {
		deadly_signals_handle();
		process_lend();
		if (options.n_part_files)
			process_allow_files(FILES_BESIDE + FILES_OF_A_PART * options.n_part_files);
		r = run_reporting(&options);
		deadly_signals_make_up();
		options_free(&options);
	} else if (r == OPTIONS_ANSWERED) {
		r = 0;
	}
	if (r == 0 && fflush(stdout) != 0)
		r = fail(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : r;
}

int main(int argc, char **argv)
{
	keep_to_one_arena();
	return thread_run_program(run_program, argc, argv);
}
