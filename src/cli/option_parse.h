/*
 * option_parse - command lines, by what is known of a program's options
 *
 * Options and operands may be mixed (unless POSIXLY_CORRECT is set) and long names abbreviated, as
 * GNU programs allow; "--" ends the options. What an option means is for whoever takes it.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "include/gsort.h"

/* A program's options, in the order of --help. */
enum { OPTION_LIST_MAX = 64 };

struct option_list {
	struct gsort_option options[OPTION_LIST_MAX];
	unsigned n;
	/* As gsort_get_option_word(). */
	const char *(*get_word)(const void *context, unsigned i, unsigned n, char *text);
	const void *context;
};

/*
 * An option of other programs of the kind, which users will try: `reason` says what to do instead.
 * With `is_foreign_value`, an option that exists, with a value that means something else there.
 */
struct unsupported_option {
	const char *name; /* long name, without the dashes */
	int letter;       /* 0: none */
	const char *reason;
	bool (*is_foreign_value)(const char *value); /* value NULL: missing */
};

/*
 * Option number i was there, with that value, NULL if without. Returns 0, a negative errno after a
 * message, or a positive number to stop.
 */
typedef int option_callback(void *context, unsigned i, const char *value);

/* What is left of a command line, or what is wrong with it. */
enum { PARSE_ERROR_NBYTES = 8192 };

struct parsed_command_line {
	char **operands;
	unsigned n_operands;
	char error[PARSE_ERROR_NBYTES]; /* "": nothing, or somebody has said it */
};

/*
 * Parse the command line; argv is permuted: operands last. foreign: ends with a name of NULL; NULL:
 * none. Returns 0, -EINVAL with a refusal, or what take() returned that stopped the parsing.
 */
int option_parse(const struct option_list *options, const struct unsupported_option *unsupported,
		 int argc, char **argv, option_callback *callback, void *context,
		 struct parsed_command_line *ret_parsed);

/* Print the options, section by section, to `stream`. */
void option_print_help(const struct option_list *options, FILE *stream);
