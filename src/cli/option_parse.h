/*
 * option_parse.h - command lines, --help and shell completion of a list of options
 *
 * As with GNU programs, options and operands may be mixed (unless POSIXLY_CORRECT is set), long
 * names may be abbreviated, and "--" ends the options.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "include/gsort.h"

enum { OPTION_LIST_MAX = 64 };

/* The options of a program, in the order of --help. */
struct option_list {
	struct gsort_option options[OPTION_LIST_MAX];
	unsigned n;
	/* Return word n of option i, as gsort_get_option_word(). */
	const char *(*get_word)(const void *context, unsigned i, unsigned n, char *text);
	const void *context;
};

/*
 * An option of similar programs that users will try; `reason` says what to use instead. With
 * is_foreign_value: an option that exists, with a value that means something else there.
 */
struct unsupported_option {
	const char *name; /* long name without the dashes */
	int letter;       /* 0: none */
	const char *reason;
	bool (*is_foreign_value)(const char *value); /* value NULL: missing */
};

/*
 * Called for each option i with its value (NULL: none). Returns 0, a negative errno (reported), or
 * a positive number to stop.
 */
typedef int option_callback(void *context, unsigned i, const char *value);

enum { PARSE_ERROR_NBYTES = 8192 };

struct parsed_command_line {
	char **operands; /* n_operands */
	unsigned n_operands;
	char error[PARSE_ERROR_NBYTES]; /* "": none, or the callback reported it */
};

/*
 * Parse the command line; argv is permuted: operands last. unsupported: ends with a NULL name; may
 * be NULL. Returns 0, -EINVAL with ret_parsed->error, or the non-zero result of the callback.
 */
int option_parse(const struct option_list *options, const struct unsupported_option *unsupported,
		 int argc, char **argv, option_callback *callback, void *context,
		 struct parsed_command_line *ret_parsed);

/* Print the options by section, as in --help. */
void option_print_help(const struct option_list *options, FILE *stream);

/*
 * Print a completion script for "bash", "zsh" or "fish"; for other shells print nothing and return
 * false. Operands are completed as file names.
 */
bool option_print_completion(const char *shell, const char *program,
			     const struct option_list *options, FILE *stream);
