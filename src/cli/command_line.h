/*
 * command_line - what the words of gsort's command line ask for
 */
#pragma once

#include "include/gsort.h"

/* What command_line_take() returns when it has done all there was to do (--help, --version). */
enum { COMMAND_LINE_ANSWERED = 1 };

/*
 * Have the sort take all that is said in argv (which is permuted: operands last), and what it means
 * if something is not said: standard input, standard output, $TMPDIR. Returns 0,
 * COMMAND_LINE_ANSWERED, or a negative errno after one message. usage: the first lines of --help;
 * NULL: gsort's.
 */
int command_line_take(const char *usage, int argc, char **argv, struct gsort *sort);
