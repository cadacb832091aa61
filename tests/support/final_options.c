/*
 * final_options.c - the options that a command line gives a sort (see final_options.h)
 */
#include "tests/support/final_options.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/cli/unsupported_options.h"
#include "src/options/files0.h"
#include "src/options/options_finalize.h"
#include "tools/cli/parse_options.h"

static int set_operands(struct options *options, const struct parsed_options *parsed)
{
	options->n_inputs = parsed->n_operands ? parsed->n_operands : 1;
	options->inputs = calloc(options->n_inputs, sizeof *options->inputs);
	if (!options->inputs)
		return -ENOMEM;
	options->inputs[0] = "-";
	for (unsigned i = 0; i < parsed->n_operands; i++)
		options->inputs[i] = parsed->operands[i];
	return 0;
}

static int finalize(struct options *options, const struct parsed_options *parsed)
{
	const char *tmpdir = getenv("TMPDIR");
	const int r = options->files0_path ?
			      files0_read(options->files0_path, 0, &options->inputs,
					  &options->n_inputs, &options->files0_text) :
			      set_operands(options, parsed);

	return r < 0 ? r : options_finalize(options, tmpdir && *tmpdir ? tmpdir : "/tmp");
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
