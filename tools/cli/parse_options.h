/*
 * parse_options - command lines described by a table (src/options/option_spec.h)
 *
 * What a command line is says src/cli/option_parse.h. An option with an argument that is given
 * twice with different values is refused, unless its row says that each adds something.
 */
#pragma once

#include "src/cli/option_parse.h"
#include "src/options/option_spec.h"

/* The operands of a command line, and bit i of `given` if row i of the table was there. */
struct parsed_options {
	char **operands;
	unsigned n_operands;
	uint64_t present;
};

static inline bool option_is_present(const struct parsed_options *parsed, unsigned row)
{
	return parsed->present >> row & 1;
}

/* The rows, as a command line has them. The table must outlive them. */
void option_table_list(const struct option_table *table, struct option_list *ret_options);

/*
 * Parse the command line into the struct element_at `target`. argv is permuted: operands last.
 * foreign: as of option_parse(). Returns 0, a negative errno after fail(), or what a take()
 * returned that stopped the parsing.
 */
int option_table_parse(const struct option_table *table,
		       const struct unsupported_option *unsupported, int argc, char **argv,
		       void *target, struct parsed_options *ret_parsed);
