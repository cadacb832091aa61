/*
 * completion - what a shell needs to complete a program's options, from its option table
 *
 * The script is printed by the program itself (--completion=SHELL), so it knows what the program
 * knows: names, letters, which options take an argument, and of what: words, a file, a directory.
 * What is no option is completed as the name of a file.
 */
#pragma once

#include <stdio.h>

#include "src/cli/option_table.h"

enum shell { SHELL_NONE, SHELL_BASH, SHELL_ZSH, SHELL_FISH };

/* A row of a table that takes the shell; its member is an int. */
#define COMPLETION_ROW                                                                             \
	.name = "completion", .argument = "bash|zsh|fish",                                         \
	.help = "print a script that completes these options in that shell, and stop",             \
	.choices = completion_shells

extern const struct option_choice completion_shells[];

/* Print the script for a program of this name and table. */
void completion_print(enum shell shell, const char *program, const struct option_table *table,
		      FILE *stream);
