/*
 * builtin_options - options that are answered at once, and end the parsing: --help and its like
 *
 * Rows are the same in all programs; who parses gets one of the numbers below, and prints.
 */
#pragma once

#include "src/options/option_spec.h"

enum shell { SHELL_NONE, SHELL_BASH, SHELL_ZSH, SHELL_FISH };

/* What ends the parsing; a shell is added to the last. */
enum { BUILTIN_OPTION_HELP = 1, BUILTIN_OPTION_VERSION, BUILTIN_OPTION_COMPLETION };

/* Rows of a table; help and version need a help. */
#define BUILTIN_OPTIONS_ROW_COMPLETION                                                             \
	.name = "completion", .argument = "bash|zsh|fish",                                         \
	.help = "print a completion script for this shell and exit",                               \
	.parse = builtin_options_parse, .value = BUILTIN_OPTION_COMPLETION,                        \
	.choices = builtin_options_shells
#define BUILTIN_OPTIONS_ROW_HELP                                                                   \
	.name = "help", .parse = builtin_options_parse, .value = BUILTIN_OPTION_HELP
#define BUILTIN_OPTIONS_ROW_VERSION                                                                \
	.name = "version", .parse = builtin_options_parse, .value = BUILTIN_OPTION_VERSION

extern const struct option_choice builtin_options_shells[];

/* The name of the shell that was asked for, by what ended the parsing. */
const char *builtin_options_shell_name(int action);

/* The row's value, and that of the choice, if it has some. */
int builtin_options_parse(const struct option_spec *spec, const char *argument, void *target);
