/*
 * cli_main - the command line, from its words to the exit status
 *
 * gsort is this, and so is any program that does the same in other company.
 */
#pragma once

#include "include/gsort.h"

struct cli_program;

/* What is to be done besides. Zeroed: nothing. */
struct cli_hooks {
	void *context;
	const struct cli_program *program; /* NULL: gsort's */
	/*
	 * Somebody else says what all would: warnings and failures are said, with this in front,
	 * and nothing else. NULL: this is the one.
	 */
	const char *message_prefix;
	/* Before the command line is taken. As `taken`. */
	int (*before_parse)(void *context, struct gsort *sort);
	/*
	 * The command line has been taken, or was not: r, as command_line_parse() says. Returns
	 * what is to be made of it: 0 to go on, COMMAND_LINE_BUILTIN, or a negative errno after a
	 * message.
	 */
	int (*after_parse)(void *context, struct gsort *sort, int r);
};

/* For main(), first of all. */
void cli_configure_malloc(void);

/* Parse, run, report. Returns the exit status. */
int cli_main(const struct cli_hooks *hooks, int argc, char **argv);
