/*
 * tool_main.h - what gsort-gen and gsort-check share: command line, messages, process
 */
#pragma once

#include "src/cli/option_parse.h"
#include "src/options/option_spec.h"
#include "src/options/record_options.h"

struct tool {
	const char *name;
	const char *usage; /* first lines of --help */
	const char *notes; /* last lines of --help; NULL: none */
	struct option_table options;
};

/* A parsed command line. */
struct parsed_options {
	struct option_arguments arguments;
	char **operands; /* n_operands */
	unsigned n_operands;
};

/*
 * Print messages of the calling thread, and of threads that it starts, to standard error as
 * "PROGRAM: MESSAGE", "PROGRAM: warning: MESSAGE", or "MESSAGE" for debug output, quoted. `program`
 * must stay valid. A second call forgets an error that was reported; no other thread may run then.
 */
void print_diagnostics_as(const char *program);

/*
 * Parse the command line into the struct `target`; argv is permuted: operands last. unsupported: as
 * of option_parse(). Returns 0, a negative errno (reported), or the result of a row that stops.
 */
int option_table_parse(const struct option_table *table,
		       const struct unsupported_option *unsupported, int argc, char **argv,
		       void *target, struct parsed_options *ret_parsed);

/*
 * Print diagnostics as the tool, handle SIGBUS, parse the command line, and answer --help,
 * --version and --completion. Returns 0, 1 if such an option was answered, or a negative errno
 * (reported).
 */
int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct parsed_options *ret_parsed);
