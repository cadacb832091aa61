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
void program_prepare_memory(void)
{
#ifdef M_ARENA_MAX
	mallopt(M_ARENA_MAX, 1);
#endif
}

static bool is_taken(const struct gsort *sort, const char *option)
{
	return gsort_get_set(sort, option) != NULL;
}

/* --explain */
static int explain(struct gsort *sort, const char *form)
{
	const char *text;
	const int r = strcmp(form, "json") == 0 ? gsort_explain(sort, 0, &text) :
						  gsort_explain_text(sort, 0, &text);

	if (r == 0)
		fputs(text, stdout);
	return r;
}

/* Check, explain, sort or merge. 0; 1: there is disorder; or a negative errno after a message. */
static int run(struct gsort *sort)
{
	uint64_t disorder = 0;
	int r;

	if (is_taken(sort, "explain"))
		return explain(sort, gsort_get_set(sort, "explain"));
	if (!is_taken(sort, "check") && !is_taken(sort, "C"))
		return gsort_run(sort);
	r = gsort_check(sort, &disorder);
	return r < 0 ? r : disorder > 0;
}

/* No write to it was refused, so what was asked for is there. */
static int check_standard_error(const struct gsort *sort)
{
	const char *option = is_taken(sort, "stats") ? "--stats" : "--debug";

	if (!(is_taken(sort, "stats") || is_taken(sort, "debug")) || !ferror(stderr))
		return 0;
	return complain(-EIO, "%s: standard error cannot be written to", option);
}

/* What is to be told of a run that has succeeded. 0, or the first failure. */
static int report(struct gsort *sort)
{
	int r = 0, written;

	if (is_taken(sort, "stats")) {
		const char *table = gsort_stats_text(sort);

		if (table)
			fputs(table, stderr);
		else
			r = -ENOMEM; /* as was said */
	}
	if (r == 0)
		r = check_standard_error(sort);
	written = gsort_write_reports(sort);
	return written < 0 ? written : r;
}

static enum progress_mode progress_mode_of(const struct gsort *sort)
{
	const char *mode = gsort_get_set(sort, "progress");

	if (!mode || strcmp(mode, "auto") == 0)
		return PROGRESS_AUTO;
	return strcmp(mode, "always") == 0 ? PROGRESS_ALWAYS : PROGRESS_NEVER;
}

static void ask_for_progress(void *sort, struct gsort_progress *ret_progress)
{
	gsort_get_progress(sort, ret_progress, sizeof *ret_progress);
}

static int run_reporting(const struct program_hooks *hooks, struct gsort *sort)
{
	struct progress *progress = NULL;
	int r = 0, reported;

	/* What is planned for all ranks the first one says. */
	if (hooks->speaker && is_taken(sort, "explain"))
		return 0;
	if (!hooks->speaker) /* who asks all of a company for progress is told once */
		r = progress_open(progress_mode_of(sort), ask_for_progress, sort, &progress);
	if (r == 0)
		r = run(sort);
	progress_close(progress); /* its line goes before the table comes */
	if (r < 0)
		return r;
	reported = hooks->speaker ? 0 : report(sort);
	return reported < 0 ? reported : r;
}

/* Descriptors: of a part of the output, its file, directory and old file; and of all else. */
enum { FILES_OF_A_PART = 4, FILES_BESIDE = 256 };

static int lend_process(struct gsort *sort)
{
	const char *n_parts = gsort_get_set(sort, "split");
	int r = process_lend();

	if (n_parts)
		process_allow_files(FILES_BESIDE +
				    FILES_OF_A_PART * (unsigned)strtoul(n_parts, NULL, 10));
	if (r < 0)
		return complain(r, "cannot handle signals: %m");
	return process_lent() ? gsort_set_process(sort, process_lent()) : 0;
}

static void hear(void *context, enum gsort_severity kind, const char *text)
{
	const struct program_hooks *hooks = context;

	if (!hooks->speaker)
		say(kind, text);
	else if (kind == GSORT_ERROR || kind == GSORT_WARNING)
		say_as(hooks->speaker, kind, text);
}

static int take_command_line(const struct program_hooks *hooks, struct gsort *sort, int argc,
			     char **argv)
{
	int r = hooks->begin ? hooks->begin(hooks->context, sort) : 0;

	if (r == 0)
		r = command_line_take(hooks->face, argc, argv, sort);
	return hooks->taken ? hooks->taken(hooks->context, sort, r) : r;
}

static int serve(const struct program_hooks *hooks, struct gsort *sort, int argc, char **argv)
{
	int r = gsort_set_message_callback(sort, hear, (void *)(uintptr_t)hooks);

	if (r == 0)
		r = take_command_line(hooks, sort, argc, argv);
	if (r == COMMAND_LINE_ASKED)
		return hooks->speaker ? 0 : command_line_answer(hooks->face, sort);
	if (r < 0)
		return r;
	deadly_signals_handle();
	r = lend_process(sort);
	return r < 0 ? r : run_reporting(hooks, sort);
}

int program_run(const struct program_hooks *hooks, int argc, char **argv)
{
	struct gsort *sort = NULL;
	int r = occupy_standard_descriptors();

	open_files_to_their_owner();
	if (r == 0)
		r = gsort_open(&sort);
	if (r < 0)
		complain(r, "cannot begin: %m");
	else
		r = serve(hooks, sort, argc, argv);
	gsort_close(sort);
	deadly_signals_make_up();
	if (r == 0 && fflush(stdout) != 0)
		r = complain(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : r;
}
