/*
 * completion - what a shell needs to complete a program's options, from its option table
 *
 * The script is printed by the program itself (--completion=SHELL), so it knows what the program
 * knows: names, letters, which options take an argument, and of what: words, a file, a directory.
 * What is no option is completed as the name of a file.
 */
#pragma once

#include <stdio.h>

#include "src/options/answers.h"

/* Print the script for a program of this name and table. */
void completion_print(enum shell shell, const char *program, const struct option_table *table,
		      FILE *stream);
