/*
 * builtin_options - options that are answered at once, and end the parsing: --help and its like
 *
 * Rows are the same in all programs; who parses gets one of the numbers below, and prints.
 */
#pragma once

#include "src/options/option_table.h"

enum shell { SHELL_NONE, SHELL_BASH, SHELL_ZSH, SHELL_FISH };

/* What ends the parsing; a shell is added to the last. */
enum { ASKED_FOR_HELP = 1, ASKED_FOR_VERSION, ASKED_FOR_COMPLETION };

/* Rows of a table; help and version need a help. */
#define ANSWERS_ROW_COMPLETION                                                                     \
	.name = "completion", .argument = "bash|zsh|fish",                                         \
	.help = "print a completion script for this shell and exit", .take = answers_take,         \
	.value = ASKED_FOR_COMPLETION, .choices = answers_shells
#define ANSWERS_ROW_HELP .name = "help", .take = answers_take, .value = ASKED_FOR_HELP
#define ANSWERS_ROW_VERSION .name = "version", .take = answers_take, .value = ASKED_FOR_VERSION

extern const struct option_choice answers_shells[];

/* The name of the shell that was asked for, by what ended the parsing. */
const char *answers_shell(int asked);

/* The row's value, and that of the choice, if it has some. */
int answers_take(const struct option_spec *spec, const char *argument, void *target);
