/*
 * lines_main.h - the command gsort --lines
 */
#pragma once

#include <stdbool.h>

struct comm;

/* Differences of gsort-mpi. Zero-initialised: gsort. */
struct lines_hooks {
	struct comm *comm; /* several ranks; NULL: one process */
	/* Prefix of warnings and errors of a rank that prints nothing else; NULL: it prints all. */
	const char *message_prefix;
	bool accepts_ranks; /* the program is gsort-mpi: accept its options */
};

/*
 * Return whether the command line is one of lines: the program is called "sort" or "lsort", or one
 * of the words before "--" is --lines, or an unambiguous abbreviation of it.
 */
bool lines_is_requested(int argc, char **argv);

/* Sort or check lines. Returns the exit status. */
int lines_main(const struct lines_hooks *hooks, int argc, char **argv);
