/*
 * lines_main.h - the command gsort --lines
 */
#pragma once

#include "src/cli/cli_main.h"

/*
 * Return whether the command line is one of lines: the program is called "sort" or "lsort", or one
 * of the words before "--" is --lines, or an unambiguous abbreviation of it.
 */
bool lines_is_requested(int argc, char **argv);

/* gsort --lines and gsort-mpi --lines, for cli_main(). */
extern const struct cli_program lines_program, lines_mpi_program;
