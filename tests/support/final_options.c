/*
 * final_options - a command line as the options that a sort would have of it (see
 * final_options.h)
 */
#include "tests/support/final_options.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/cli/unsupported_options.h"
#include "src/options/files0.h"
#include "src/options/options_finalize.h"
#include "tools/cli/parse_options.h"

static int take_operands(struct options *options, const struct option_result *given)
{
	options->n_inputs = given->n_operands ? given->n_operands : 1;
	options->inputs = calloc(options->n_inputs, sizeof *options->inputs);
	if (!options->inputs)
		return -ENOMEM;
	options->inputs[0] = "-";
	for (unsigned i = 0; i < given->n_operands; i++)
		options->inputs[i] = given->operands[i];
	return 0;
}

static int settle(struct options *options, const struct option_result *given)
{
	const char *tmpdir = getenv("TMPDIR");
	const int r = options->files0_path ?
			      files0_read(options->files0_path, &options->inputs,
					  &options->n_inputs, &options->files0_names) :
			      take_operands(options, given);

	return r < 0 ? r : options_settle(options, tmpdir && *tmpdir ? tmpdir : "/tmp");
}

int parse_settled(int argc, char **argv, struct options *ret_options)
{
	struct options options = OPTIONS_DEFAULTS;
	struct option_result given;
	int r = table_parse(&options_table, foreign_options, argc, argv, &options, &given);

	if (r == 0)
		r = settle(&options, &given);
	if (r != 0) {
		options_free(&options);
		return r;
	}
	*ret_options = options;
	return 0;
}
