/*
 * command_line.h - the command line of gsort and gsort-mpi
 */
#pragma once

#include "include/gsort.h"
#include "src/cli/option_parse.h"

/* Result of command_line_parse() for --help, --version and --completion. */
enum { COMMAND_LINE_BUILTIN = 1 };

/* A program with options of the library. */
struct cli_program {
	const char *name;
	const char *usage; /* first lines of --help */
	/* As gsort_get_option() and gsort_get_option_word(). */
	int (*get_option)(unsigned i, struct gsort_option *ret_option, size_t size);
	const char *(*get_word)(unsigned i, unsigned n, char *text);
};

/* Options of GNU sort that gsort refuses. Ends with a NULL name. */
extern const struct unsupported_option unsupported_options[];

/*
 * Set the options and inputs of a command line, and the defaults of a command: standard input,
 * standard output, $TMPDIR. argv is permuted: operands last. program NULL: gsort. Returns 0,
 * COMMAND_LINE_BUILTIN, or a negative errno (reported).
 */
int command_line_parse(const struct cli_program *program, int argc, char **argv,
		       struct gsort *sort);

/*
 * Print the help, version or completion script after COMMAND_LINE_BUILTIN. program: as for
 * command_line_parse(). Returns 0 or a negative errno (reported).
 */
int command_line_print_builtin(const struct cli_program *program, const struct gsort *sort);
