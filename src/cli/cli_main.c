/*
 * cli_main.c - run a command: parse, sort, report (see cli_main.h)
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
#include <unistd.h>

#include "config.h"
#include "src/cli/process_setup.h"
#include "src/cli/print_message.h"

/*
 * Open closed standard descriptors, so that no file gets them and receives messages. Reads from the
 * new standard input, and writes to the new outputs, fail.
 */
static int reserve_standard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) < 0)
			return -errno;
	return 0;
}

/*
 * Use one malloc arena. Allocations are few, and large buffers do not come from malloc. By default
 * glibc reserves 64 MiB of address space per thread, which may be limited.
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

static bool is_check(const struct gsort *sort)
{
	return is_option_set(sort, "check") || is_option_set(sort, "C");
}

/* Check, explain, sort or merge. Return 0, 1 (disorder) or a negative errno (reported). */
static int run_command(struct gsort *sort)
{
	const char *form = gsort_get_set(sort, "explain"), *text;
	uint64_t disorder = 0;
	int r;

	if (form) {
		r = strcmp(form, "json") == 0 ? gsort_explain(sort, 0, &text) :
						gsort_explain_text(sort, 0, &text);
		if (r == 0)
			fputs(text, stdout);
		return r;
	}
	if (!is_check(sort))
		return gsort_run(sort);
	r = gsort_check(sort, &disorder);
	return r < 0 ? r : disorder > 0;
}

/* Print statistics and write the report files. Return the first error. */
static int print_reports(struct gsort *sort)
{
	const bool has_stats = is_option_set(sort, "stats");
	int r = 0, write_error;

	if (has_stats) {
		const char *table = gsort_stats_text(sort);

		if (table)
			fputs(table, stderr);
		else
			r = -ENOMEM; /* reported */
	}
	/* Did standard error receive the requested text? */
	if (r == 0 && (has_stats || is_option_set(sort, "debug")) && ferror(stderr))
		r = cli_error(-EIO, "%s: cannot write to standard error",
			      has_stats ? "--stats" : "--debug");
	write_error = gsort_write_reports(sort);
	return write_error < 0 ? write_error : r;
}

/* A progress line would be between lines of output on a terminal. */
static enum progress_mode get_progress_mode(const struct gsort *sort)
{
	const char *mode = gsort_get_set(sort, "progress");

	if (!mode || strcmp(mode, "auto") == 0)
		return !is_check(sort) && !is_option_set(sort, "output") && isatty(STDOUT_FILENO) ?
			       PROGRESS_NEVER :
			       PROGRESS_AUTO;
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

	/* The first rank prints the plan. */
	if (hooks->message_prefix && is_option_set(sort, "explain"))
		return 0;
	if (!hooks->message_prefix) /* the first rank shows the progress */
		r = progress_display_open(get_progress_mode(sort), query_progress, sort, &display);
	if (r == 0)
		r = run_command(sort);
	progress_display_close(display); /* removes the line before other output */
	if (r > 0 && hooks->program->write_disorder)
		hooks->program->write_disorder(sort, stderr);
	if (r < 0)
		return r;
	report_error = hooks->message_prefix ? 0 : print_reports(sort);
	return report_error < 0 ? report_error : r;
}

/* A part file has its descriptor and a duplicate that keeps the lock. */
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

/* --- Launchers of MPI ranks --- */

/* Not SLURM_NTASKS: job scripts, which run once, have it as well. */
static const struct launcher {
	const char *name, *size_variable, *rank_variable, *remedy;
} launchers[] = {
	{ "mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
	  "use the mpirun of that MPI library" },
	{ "mpiexec", "PMI_SIZE", "PMI_RANK", "use the mpiexec of that MPI library" },
	{ "srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",
	  "use srun --mpi=TYPE (see srun --mpi=list) or mpirun" },
};

enum { N_LAUNCHERS = sizeof launchers / sizeof *launchers };

/*
 * Without MPI: warn if a launcher started several processes, each of which sorts everything. Only
 * the first one prints the warning, or all if their numbers are unknown.
 */
static void launcher_warn(void)
{
	char text[256];

	for (size_t i = 0; i < N_LAUNCHERS; i++) {
		const char *size = getenv(launchers[i].size_variable),
			   *rank = getenv(launchers[i].rank_variable);

		if (!size || strtoul(size, NULL, 10) <= 1 || (rank && strtoul(rank, NULL, 10) != 0))
			continue;
		snprintf(text, sizeof text,
			 "%s started several processes (%s=%s); each sorts the whole input; "
			 "use " GSORT_PROGRAM "-mpi",
			 launchers[i].name, launchers[i].size_variable, size);
		cli_message(GSORT_WARNING, text);
		return;
	}
}

int launcher_check_ranks(unsigned n_ranks)
{
	for (size_t i = 0; i < N_LAUNCHERS; i++) {
		const char *size = getenv(launchers[i].size_variable);

		if (!size || strtoul(size, NULL, 10) <= n_ranks)
			continue;
		return cli_error(-EINVAL, "%s started %s ranks (%s), but MPI sees %u; %s",
				 launchers[i].name, size, launchers[i].size_variable, n_ranks,
				 launchers[i].remedy);
	}
	return 0;
}

void launcher_skip_network_probe(void)
{
	const char *size = getenv("OMPI_COMM_WORLD_SIZE");
	const char *local_size = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");

	if (size && local_size && strcmp(size, local_size) == 0)
		setenv("OMPI_MCA_pml", "^cm,ucx", 0);
}

/* --- The command --- */

static int parse_and_run(const struct cli_hooks *hooks, struct gsort *sort, int argc, char **argv)
{
	int r = gsort_set_message_callback(sort, on_library_message, (void *)(uintptr_t)hooks);

	if (r < 0)
		return r;
	if (hooks->before_parse)
		r = hooks->before_parse(hooks->context, sort);
	if (r == 0)
		r = command_line_parse(hooks->program, argc, argv, sort);
	if (hooks->after_parse)
		r = hooks->after_parse(hooks->context, sort, r);
	else if (r == 0 && !is_check(sort) && !is_option_set(sort, "explain") &&
		 !is_option_set(sort, "shard"))
		launcher_warn();
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

	/* Let the owner access new files: gsort opens them again to resume a checkpoint. */
	umask(umask(S_IRWXG | S_IRWXO) & (S_IRWXG | S_IRWXO));
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
