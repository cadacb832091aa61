/*
 * main - parse, run, report; the only exit
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "io/output/output.h"
#include "src/base/status.h"
#include "src/cli/check.h"
#include "src/cli/options.h"
#include "src/cli/progress.h"
#include "src/sort/sort.h"

/* Remove what has a name, and die of the signal, as whoever sent it expects. */
static void on_deadly_signal(int signal_number)
{
	output_cleanup_from_signal();
	raise(signal_number); /* its action is the default one again: SA_RESETHAND */
}

static void prepare_signals(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction action = { .sa_handler = on_deadly_signal,
					  .sa_flags = SA_RESETHAND | SA_NODEFER };
	struct sigaction old;

	for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is a full disk: EFBIG, not a signal */
}

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
 * What is large does not come from malloc, and what does is seldom: one arena does for all threads.
 * By default each has one of its own, which takes 64 MiB of addresses, and these may be limited.
 */
static void keep_to_one_arena(void)
{
	mallopt(M_ARENA_MAX, 1);
}

/* Check, sort or merge. */
static int run(const struct options *options, struct stats *stats, struct report_facts *facts)
{
	if (options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET)
		return check_run(options, stats, facts);
	return sort_run(options, stats, facts);
}

static int report(const struct options *options, struct stats *stats,
		  const struct report_facts *facts)
{
	if (options->stats)
		report_print(stats, facts, stderr);
	return options->stats_json_path ?
		       report_write_json(stats, facts, options->stats_json_path) :
		       0;
}

static int run_reporting(const struct options *options)
{
	char type[RECORD_OPTIONS_TEXT_NBYTES];
	struct report_facts facts = { .type = type };
	struct trace *trace = NULL;
	struct stats *stats = NULL;
	struct progress *progress = NULL;
	int r = 0, reported = 0, closed;

	record_options_format(&options->record, type);
	if (options->trace_path)
		r = trace_open(options->trace_path, &trace);
	if (r == 0)
		r = stats_open(trace, &stats);
	if (r == 0)
		r = progress_open(options->progress, stats, &progress);
	if (r == 0)
		r = run(options, stats, &facts);
	stats_finish(stats);
	progress_close(progress); /* its line goes before the table comes */
	if (r >= 0)
		reported = report(options, stats, &facts);
	stats_close(stats);
	closed = trace_close(trace);
	return r < 0 ? r : reported < 0 ? reported : closed < 0 ? closed : r;
}

int main(int argc, char **argv)
{
	struct options options;
	int r = occupy_standard_descriptors();

	keep_to_one_arena();
	if (r == 0)
		r = options_parse(argc, argv, &options);
	if (r == 0) {
		prepare_signals();
		r = run_reporting(&options);
		options_free(&options);
	} else if (r == OPTIONS_ANSWERED) {
		r = 0;
	}
	if (r == 0 && fflush(stdout) != 0)
		r = fail(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : r;
}
