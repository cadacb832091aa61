/*
 * command_line - what the words of gsort's command line ask for (see command_line.h)
 */
#include "src/cli/command_line.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "src/base/messages.h"
#include "src/cli/completion.h"
#include "src/options/files0.h"
#include "src/cli/option_parse.h"
#include "src/options/answers.h"
#include "src/options/options_settle.h"

/* The inputs: operands, names from a file, or standard input. */
static int settle_inputs(struct options *options, const struct option_result *result)
{
	if (options->files0_path && result->n_operands)
		return fail(-EINVAL,
			    "--files0-from: operand '%s' cannot be given as well: all file names "
			    "come from '%s'",
			    result->operands[0], options->files0_path);
	if (options->files0_path)
		return files0_read(options->files0_path, &options->inputs, &options->n_inputs,
				   &options->files0_names);
	options->n_inputs = result->n_operands ? result->n_operands : 1;
	options->inputs = calloc(options->n_inputs, sizeof *options->inputs);
	if (!options->inputs)
		return fail(-ENOMEM, "file names: %m");
	options->inputs[0] = "-";
	for (unsigned i = 0; i < result->n_operands; i++)
		options->inputs[i] = result->operands[i];
	return 0;
}

static void print_help(void)
{
	fputs("Usage: " GSORT_PROGRAM " [OPTION]... [FILE]...\n"
	      "Sort fixed-size binary records, more of them than memory holds.\n"
	      "\n"
	      "Several files are sorted together. Without FILE, or when FILE is -, standard\n"
	      "input is read. Without -o, standard output is written, unless it is a terminal.\n",
	      stdout);
	option_table_help(&options_table, stdout);
	fputs("\n" RECORD_OPTIONS_TYPES "\n"
	      "Exit status: 0 done, and checked; 1 -c or -C found disorder; 2 anything else,\n"
	      "with a message that says what, where, and what to do.\n",
	      stdout);
}

/* What was printed must have arrived: --help to a full disk is an error too. */
static int answer(int asked)
{
	if (asked == ASKED_FOR_HELP)
		print_help();
	else if (asked == ASKED_FOR_VERSION)
		printf(GSORT_PROGRAM " %s (back ends: cpu%s)\n", GSORT_VERSION,
		       HAVE_CUDA ? ", cuda" : "");
	else
		completion_print((enum shell)(asked - ASKED_FOR_COMPLETION), GSORT_PROGRAM,
				 &options_table, stdout);
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail(-errno, "standard output: %m");
	return OPTIONS_ANSWERED;
}

static int settle(struct options *options, const struct option_result *result)
{
	const char *tmpdir = getenv("TMPDIR");
	const int r = settle_inputs(options, result);

	return r < 0 ? r : options_settle(options, tmpdir && *tmpdir ? tmpdir : "/tmp");
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	struct options options = OPTIONS_DEFAULTS;
	struct option_result result;
	int r = option_table_parse(&options_table, argc, argv, &options, &result);

	if (r > 0)
		r = answer(r);
	else if (r == 0)
		r = settle(&options, &result);
	if (r != 0) {
		options_free(&options);
		return r;
	}
	*ret_options = options;
	return 0;
}
