/*
 * cli_main.h - run a command of gsort or gsort-mpi: parse, sort, show progress, report
 */
#pragma once

#include "include/gsort.h"
#include "src/cli/option_parse.h"

/* A program, and differences of gsort-mpi. */
struct cli_hooks {
	void *context;
	const struct cli_program *program;
	/*
	 * Prefix of warnings and errors of a rank that prints nothing else; NULL: this process
	 * prints everything.
	 */
	const char *message_prefix;
	/* Called before the command line is parsed. Returns 0 or a negative errno (reported). */
	int (*before_parse)(void *context, struct gsort *sort);
	/*
	 * Called with the result of command_line_parse(). Returns the result to use: 0,
	 * COMMAND_LINE_BUILTIN or a negative errno (reported).
	 */
	int (*after_parse)(void *context, struct gsort *sort, int r);
};

/* Configure malloc(). To be called at the beginning of main(). */
void cli_configure_malloc(void);

/* Run the command. Returns the exit status. */
int cli_main(const struct cli_hooks *hooks, int argc, char **argv);

/*
 * Check that MPI knows all ranks that the launcher started. With the launcher of another MPI
 * library, each rank takes itself for the only one and would sort everything. Returns 0 or -EINVAL
 * (reported).
 */
int launcher_check_ranks(unsigned n_ranks);

/*
 * Before MPI starts: if all ranks are on this host, keep Open MPI from probing networks (0.2 s),
 * unless the user has chosen a network.
 */
void launcher_skip_network_probe(void);

/* --- the command line (command_line.c) --- */

/* Result of command_line_parse() for --help, --version and --completion. */
enum { COMMAND_LINE_BUILTIN = 1 };

/* A program with options of the library. */
struct cli_program {
	const char *name;
	const char *completed_name; /* the name that a completion script completes; NULL: name */
	const char *usage;          /* first lines of --help */
	bool sorts_lines;
	/* Ends with a NULL name. */
	const struct unsupported_option *unsupported;
	/*
	 * Rewrite the words of the command line before they are parsed. NULL: they are not.
	 * *ret_words, set in any case, is a list that ends with NULL: free it and the words.
	 * Returns the number of words, or a negative errno (reported).
	 */
	int (*rewrite)(int argc, char **argv, char ***ret_words);
	/* Let the sort write to standard output. NULL: that is a path. */
	void (*write_to_stdout)(struct gsort *sort);
	/* Write a message about a disorder. NULL: the library reports it. */
	void (*write_disorder)(const struct gsort *sort, FILE *stream);
	/* As gsort_get_option() and gsort_get_option_word(). */
	int (*get_option)(unsigned i, struct gsort_option *ret_option, size_t size);
	const char *(*get_word)(unsigned i, unsigned n, char *text);
};

/* gsort, for records. */
extern const struct cli_program record_program;

/* Options of GNU sort that records do not have. */
extern const struct unsupported_option unsupported_options[];

/*
 * Set the options and inputs of a command line, and the defaults of a command: standard input,
 * standard output, $TMPDIR. argv is permuted: operands last. Returns 0, COMMAND_LINE_BUILTIN, or a
 * negative errno (reported).
 */
int command_line_parse(const struct cli_program *program, int argc, char **argv,
		       struct gsort *sort);

/*
 * Print the help, version or completion script after COMMAND_LINE_BUILTIN. Returns 0 or a negative
 * errno (reported).
 */
int command_line_print_builtin(const struct cli_program *program, const struct gsort *sort);

/*
 * --- one line that shows the progress on standard error (progress_display.c) ---
 *
 * A thread queries the progress at intervals and prints a line: phase, percentage, rate and
 * remaining time of the phase, and percentage and remaining time of the whole sort. On a terminal
 * the line is rewritten in place several times a second and removed at the end. Elsewhere a line is
 * printed once a second.
 *
 * SIGUSR1 prints the line once, in any mode. There is no signal handler: progress_display_open()
 * blocks SIGUSR1 for the calling thread and for all threads that are started later, and the
 * thread waits for the signal with a timeout, which is its clock as well. So the signal interrupts
 * nothing, and the code need not be async-signal-safe.
 */

enum progress_mode {
	PROGRESS_AUTO, /* if standard error is a terminal, and after a second */
	PROGRESS_ALWAYS,
	PROGRESS_NEVER,
};

struct progress_display;

/* Get the progress, as gsort_get_progress() does. Must be thread-safe. */
typedef void progress_query(void *context, struct gsort_progress *ret_display);

/*
 * Block SIGUSR1 in this thread and those that are started later, until progress_display_open()
 * handles it. For programs that start threads before that.
 */
void progress_display_block_signal(void);

/*
 * Start the display. All threads that exist must block SIGUSR1, which stays blocked until the
 * process ends. `query` is called until progress_display_close(). Returns 0 or a negative errno
 * (reported).
 */
int progress_display_open(enum progress_mode mode, progress_query *query, void *context,
			  struct progress_display **ret_display);

/*
 * Stop the display, wait for its thread, and remove the line. Call it before the last messages.
 * NULL is ignored.
 */
void progress_display_close(struct progress_display *display);
