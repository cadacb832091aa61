/*
 * option_parse - command lines described by a table (src/options/option_table.h)
 *
 * Options and operands may be mixed (unless POSIXLY_CORRECT is set) and long names abbreviated, as
 * GNU programs allow; "--" ends the options. An option with an argument that is given twice with
 * different values is refused, unless its row says that each adds something.
 */
#pragma once

#include <stdio.h>

#include "src/options/option_table.h"

/* The operands of a command line, and bit i of `given` if row i of the table was there. */
struct option_result {
	char **operands;
	unsigned n_operands;
	uint64_t given;
};

static inline bool option_is_given(const struct option_result *result, unsigned row)
{
	return result->given >> row & 1;
}

/*
 * Parse the command line into the struct at `target`. argv is permuted: operands last.
 * Returns 0, a negative errno after fail(), or what a take() returned that stopped the parsing.
 */
int option_table_parse(const struct option_table *table, int argc, char **argv, void *target,
		       struct option_result *ret_result);

/* Print the options, section by section, to `stream`. */
void option_table_help(const struct option_table *table, FILE *stream);
