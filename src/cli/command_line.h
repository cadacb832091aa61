/*
 * command_line - what the words of gsort's command line ask for
 */
#pragma once

#include "include/gsort.h"

/*
 * What command_line_parse() returns when only something is to be printed (--help, --version), which
 * command_line_print_builtin() does.
 */
enum { COMMAND_LINE_BUILTIN = 1 };

/* What a program that is not gsort calls itself, and what it takes. */
struct cli_program {
	const char *name;
	const char *usage; /* the first lines of --help */
	/* As gsort_get_option() and gsort_get_option_word(). */
	int (*get_option)(unsigned i, struct gsort_option *ret_option, size_t size);
	const char *(*get_word)(unsigned i, unsigned n, char *text);
};

/*
 * Have the sort take all that is said in argv (which is permuted: operands last), and what it means
 * if something is not said: standard input, standard output, $TMPDIR. Returns 0,
 * COMMAND_LINE_BUILTIN, or a negative errno after one message. face: NULL: gsort's.
 */
int command_line_parse(const struct cli_program *program, int argc, char **argv,
		       struct gsort *sort);

/*
 * Print what the sort has been asked for. 0, or a negative errno after one message. face: as it
 * has taken it.
 */
int command_line_print_builtin(const struct cli_program *program, const struct gsort *sort);
