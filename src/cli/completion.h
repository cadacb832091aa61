/*
 * completion - what a shell needs to complete a program's options, from what is known of them
 *
 * The script is printed by the program itself (--completion=SHELL), so it knows what the program
 * knows: names, letters, which options take an argument, and of what: words, a file, a directory.
 * What is no option is completed as the name of a file.
 */
#pragma once

#include <stdbool.h>

#include "src/cli/option_parse.h"

/*
 * Print the script for a program of this name. shell: "bash", "zsh" or "fish"; else false, and
 * nothing is printed.
 */
bool completion_print(const char *shell, const char *program, const struct option_list *options,
		      FILE *stream);
