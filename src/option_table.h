/*
 * option_table - command lines described by a table
 *
 * A program's options are one const table: names, argument, help, and a function that takes the
 * argument. getopt_long's tables, the error messages and the text of --help are all made from it, so
 * an option cannot exist in one of them only. A pair of options that makes no sense together is a row
 * of a second table.
 *
 * Options and operands may be mixed and long names abbreviated, as GNU programs allow; "--" ends the
 * options. Every error is printed with fail(), names the option as the user may know it ("-S,
 * --buffer-size"), and is returned as a negative errno.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option_spec {
	const char *name;     /* long name, without the dashes */
	char letter;          /* short name, 0 if none */
	const char *argument; /* what its argument is called in the help, NULL if it takes none */
	const char *help;     /* sentences; wrapped by the help; '\n' breaks */
	const char *section;  /* heading printed before this option, NULL if the section goes on */
	/*
	 * Take the argument (NULL if none) into the member at `target` within the caller's struct.
	 * Returns 0, a negative errno after fail(), or a positive number to stop parsing.
	 */
	int (*take)(const struct option_spec *spec, const char *argument, void *target);
	size_t offset; /* of the member in the caller's struct */
};

/* Rows a and b (indices of the table) cannot be given together, because ... */
struct option_conflict {
	unsigned a, b;
	const char *why;
};

struct option_table {
	const struct option_spec *specs;
	unsigned n_specs; /* at most 64 */
	const struct option_conflict *conflicts;
	unsigned n_conflicts;
};

/*
 * Parse the command line into the struct at `target`. On success argv's operands stand at its end,
 * from *ret_first_operand on, and bit i of *ret_given tells whether row i was given.
 * Returns 0, a negative errno after fail(), or what a take() returned that stopped the parsing.
 */
int option_table_parse(const struct option_table *table, int argc, char **argv, void *target,
		       uint64_t *ret_given, int *ret_first_operand);

/* Print the options, section by section, to `stream`. */
void option_table_help(const struct option_table *table, FILE *stream);

/* "-S, --buffer-size" for messages; the text lives until the calling thread's next call. */
const char *option_spell(const struct option_spec *spec);

/* take() functions for the common members. */
int option_take_flag(const struct option_spec *spec, const char *argument, void *target);  /* bool */
int option_take_text(const struct option_spec *spec, const char *argument, void *target);  /* const char *, not "" */
int option_take_size(const struct option_spec *spec, const char *argument, void *target);  /* uint64_t, not 0 */
int option_take_count(const struct option_spec *spec, const char *argument, void *target); /* unsigned, not 0 */
