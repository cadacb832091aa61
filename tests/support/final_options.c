/*
 * final_options.c - the options of a command line, completed as for a sort (see final_options.h)
 */
#include "tests/support/final_options.h"

#include <stdlib.h>

#include "src/cli/cli_main.h"
#include "src/options/file_roles.h"
#include "tools/cli/tool_main.h"

static int add_list(struct options *options)
{
	const char **names;
	size_t n;
	int r = files0_read(options->files0_path, 0, &names, &n, &options->files0_text);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && r == 0; i++)
		r = options_add_input(options, names[i]);
	free(names);
	return r;
}

static int add_operands(struct options *options, const struct parsed_options *parsed)
{
	int r = parsed->n_operands ? 0 : options_add_input(options, "-");

	for (unsigned i = 0; i < parsed->n_operands && r == 0; i++)
		r = options_add_input(options, parsed->operands[i]);
	return r;
}

static int finalize(struct options *options, const struct parsed_options *parsed)
{
	const char *tmpdir = getenv("TMPDIR");
	int r = options->files0_path ? add_list(options) : add_operands(options, parsed);

	if (r == 0)
		r = options_finalize(options, tmpdir && *tmpdir ? tmpdir : "/tmp");
	if (r == 0)
		options_default_resources(&options->spec);
	return r;
}

int parse_final_options(int argc, char **argv, struct options *ret_options)
{
	struct options options = OPTIONS_DEFAULTS;
	struct parsed_options parsed;
	int r = option_table_parse(&options_table, unsupported_options, argc, argv, &options,
				   &parsed);

	if (r == 0)
		r = finalize(&options, &parsed);
	if (r != 0) {
		options_free(&options);
		return r;
	}
	*ret_options = options;
	return 0;
}
