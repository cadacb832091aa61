/*
 * cli_main.h - run a command of gsort or gsort-mpi: parse, sort, report
 */
#pragma once

#include "include/gsort.h"

struct cli_program;

/* Differences of gsort-mpi. Zero-initialised: gsort. */
struct cli_hooks {
	void *context;
	const struct cli_program *program; /* NULL: gsort */
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
