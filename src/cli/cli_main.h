/*
 * cli_main - the command line, from its words to the exit status
 *
 * gsort is this, and so is any program that does the same in other company.
 */
#pragma once

#include "include/gsort.h"

struct command_line_face;

/* What is to be done besides. Zeroed: nothing. */
struct program_hooks {
	void *context;
	const struct command_line_face *face; /* NULL: gsort's */
	/*
	 * Somebody else says what all would: warnings and failures are said, with this in front,
	 * and nothing else. NULL: this is the one.
	 */
	const char *speaker;
	/* Before the command line is taken. As `taken`. */
	int (*begin)(void *context, struct gsort *sort);
	/*
	 * The command line has been taken, or was not: r, as command_line_take() says. Returns what
	 * is to be made of it: 0 to go on, COMMAND_LINE_ASKED, or a negative errno after a
	 * message.
	 */
	int (*taken)(void *context, struct gsort *sort, int r);
};

/* For main(), first of all. */
void program_prepare_memory(void);

/* Parse, run, report. Returns the exit status. */
int program_run(const struct program_hooks *hooks, int argc, char **argv);
