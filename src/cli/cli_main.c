/*
 * cli_main - the command line, from its words to the exit status (see cli_main.h)
 */
#include "src/cli/cli_main.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "src/cli/command_line.h"
#include "src/cli/fatal_signals.h"
#include "src/cli/exit_status.h"
#include "src/cli/process_setup.h"
#include "src/cli/progress_display.h"
#include "src/cli/print_message.h"

/*
 * A descriptor from 0 to 2 that is closed would be given to the next file that is opened, and
 * messages would be written into it. Put something harmless there, on which reads and writes fail.
 */
static int reserve_standard_descriptors(void)
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
static void clear_owner_umask(void)
{
	umask(umask(S_IRWXG | S_IRWXO) & (S_IRWXG | S_IRWXO));
}

/*
 * What is large does not come from malloc, and what does is seldom: one arena does for all threads.
 * By default each has one of its own, which takes 64 MiB of addresses, and these may be limited.
 * (So glibc does; musl has no arenas.)
 */
void cli_configure_malloc(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
}

static bool is_option_set(const struct gsort *sort, const char *option)
{
	return gsort_get_set(sort, option) != NULL;
}

/* --explain */
static int print_explanation(struct gsort *sort, const char *form)
{
	const char *text;
	const int r = strcmp(form, "json") == 0 ? gsort_explain(sort, 0, &text) :
						  gsort_explain_text(sort, 0, &text);

	if (r == 0)
		fputs(text, stdout);
	return r;
}

/* Check, explain, sort or merge. 0; 1: there is disorder; or a negative errno after a message. */
static int run_command(struct gsort *sort)
{
	uint64_t disorder = 0;
	int r;

	if (is_option_set(sort, "explain"))
		return print_explanation(sort, gsort_get_set(sort, "explain"));
	if (!is_option_set(sort, "check") && !is_option_set(sort, "C"))
		return gsort_run(sort);
	r = gsort_check(sort, &disorder);
	return r < 0 ? r : disorder > 0;
}

/* No write to it was refused, so what was asked for is there. */
static int check_standard_error(const struct gsort *sort)
{
	const char *option = is_option_set(sort, "stats") ? "--stats" : "--debug";

	if (!(is_option_set(sort, "stats") || is_option_set(sort, "debug")) || !ferror(stderr))
		return 0;
	return cli_error(-EIO, "%s: standard error cannot be written to", option);
}

/* What is to be told of a run that has succeeded. 0, or the first failure. */
static int print_reports(struct gsort *sort)
{
	int r = 0, write_error;

	if (is_option_set(sort, "stats")) {
		const char *table = gsort_stats_text(sort);

		if (table)
			fputs(table, stderr);
		else
			r = -ENOMEM; /* as was said */
	}
	if (r == 0)
		r = check_standard_error(sort);
	write_error = gsort_write_reports(sort);
	return write_error < 0 ? write_error : r;
}

static enum progress_mode get_progress_mode(const struct gsort *sort)
{
	const char *mode = gsort_get_set(sort, "progress");

	if (!mode || strcmp(mode, "auto") == 0)
		return PROGRESS_AUTO;
	return strcmp(mode, "always") == 0 ? PROGRESS_ALWAYS : PROGRESS_NEVER;
}

static void query_progress(void *sort, struct gsort_progress *ret_progress)
{
	gsort_get_progress(sort, ret_progress, sizeof *ret_progress);
}

static int run_with_progress(const struct cli_hooks *hooks, struct gsort *sort)
{
	struct progress_display *display = NULL;
	int r = 0, report_error;

	/* What is planned for all ranks the first one says. */
	if (hooks->message_prefix && is_option_set(sort, "explain"))
		return 0;
	if (!hooks->message_prefix) /* who asks all of a company for progress is told once */
		r = progress_display_open(get_progress_mode(sort), query_progress, sort, &display);
	if (r == 0)
		r = run_command(sort);
	progress_display_close(display); /* its line goes before the table comes */
	if (r < 0)
		return r;
	report_error = hooks->message_prefix ? 0 : print_reports(sort);
	return report_error < 0 ? report_error : r;
}

/* Descriptors: of a part file, its file and the duplicate that keeps its lock; and of all else. */
enum { DESCRIPTORS_PER_PART_FILE = 2, RESERVED_DESCRIPTORS = 256 };

static int attach_process(struct gsort *sort)
{
	const char *n_part_files = gsort_get_set(sort, "split");
	int r = process_setup();

	if (n_part_files)
		process_raise_file_limit(RESERVED_DESCRIPTORS +
					 DESCRIPTORS_PER_PART_FILE *
						 (unsigned)strtoul(n_part_files, NULL, 10));
	if (r < 0)
		return cli_error(r, "cannot handle signals: %m");
	return process_get() ? gsort_set_process(sort, process_get()) : 0;
}

static void on_library_message(void *context, enum gsort_severity kind, const char *text)
{
	const struct cli_hooks *hooks = context;

	if (!hooks->message_prefix)
		cli_message(kind, text);
	else if (kind == GSORT_ERROR || kind == GSORT_WARNING)
		cli_message_from(hooks->message_prefix, kind, text);
}

static int parse_command_line(const struct cli_hooks *hooks, struct gsort *sort, int argc,
			      char **argv)
{
	int r = hooks->before_parse ? hooks->before_parse(hooks->context, sort) : 0;

	if (r == 0)
		r = command_line_parse(hooks->program, argc, argv, sort);
	return hooks->after_parse ? hooks->after_parse(hooks->context, sort, r) : r;
}

static int parse_and_run(const struct cli_hooks *hooks, struct gsort *sort, int argc, char **argv)
{
	int r = gsort_set_message_callback(sort, on_library_message, (void *)(uintptr_t)hooks);

	if (r == 0)
		r = parse_command_line(hooks, sort, argc, argv);
	if (r == COMMAND_LINE_BUILTIN)
		return hooks->message_prefix ? 0 : command_line_print_builtin(hooks->program, sort);
	if (r < 0)
		return r;
	fatal_signals_install();
	r = attach_process(sort);
	return r < 0 ? r : run_with_progress(hooks, sort);
}

int cli_main(const struct cli_hooks *hooks, int argc, char **argv)
{
	struct gsort *sort = NULL;
	int r = reserve_standard_descriptors();

	clear_owner_umask();
	if (r == 0)
		r = gsort_open(&sort);
	if (r < 0)
		cli_error(r, "cannot begin: %m");
	else
		r = parse_and_run(hooks, sort, argc, argv);
	gsort_close(sort);
	fatal_signals_raise_pending();
	if (r == 0 && fflush(stdout) != 0)
		r = cli_error(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : r;
}
