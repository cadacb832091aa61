/*
 * command_line - what the words of gsort's command line ask for (see command_line.h)
 */
#include "src/cli/command_line.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/cli/completion.h"
#include "src/cli/unsupported_options.h"
#include "src/cli/option_parse.h"
#include "src/cli/print_message.h"

/* How the library knows what the caller has open as 1. */
static const char standard_output[] = "/dev/fd/1";

static const struct command_line_face own_face = {
	.program = GSORT_PROGRAM,
	.usage =
		"Usage: " GSORT_PROGRAM " [OPTION]... [FILE]...\n"
		"Sort fixed-size binary records, in files larger than memory.\n"
		"\n"
		"Several files are sorted together. Without FILE, or when FILE is -, standard\n"
		"input is read. Without -o, standard output is written, unless it is a terminal.\n",
	.get_option = gsort_get_option,
	.get_word = gsort_get_option_word,
};

static const char *word_of(const void *context, unsigned i, unsigned n, char *text)
{
	const struct command_line_face *face = context;

	return face->get_word(i, n, text);
}

static void list_options(const struct command_line_face *face, struct option_list *options)
{
	options->n = 0;
	options->word = word_of;
	options->context = face;
	while (options->n < OPTION_LIST_MOST &&
	       face->get_option(options->n, &options->all[options->n], sizeof options->all[0]) == 0)
		options->n++;
}

/* What takes the words. */
struct taker {
	const struct command_line_face *face;
	const struct option_list *options;
	struct gsort *sort;
};

static int take(void *context, unsigned i, const char *value)
{
	/* They end the parsing, so of a sort at most one is taken. */
	static const char *const questions[] = { "help", "version", "completion" };
	const struct taker *taker = context;
	const char *name = taker->options->all[i].name;
	const int r = gsort_set_from_cli(taker->sort, name, value);

	for (size_t k = 0; r == 0 && k < sizeof questions / sizeof questions[0]; k++)
		if (strcmp(questions[k], name) == 0)
			return COMMAND_LINE_ASKED;
	return r;
}

static void print_help(const char *usage, const struct option_list *options)
{
	fputs(usage, stdout);
	option_print_help(options, stdout);
	printf("\n%s\n"
	       "Exit status: 0 success; 1 -c or -C found disorder; 2 error, with a message.\n",
	       gsort_describe_types());
}

static void print_answer(const struct command_line_face *face, const struct gsort *sort)
{
	struct option_list options;

	list_options(face, &options);
	if (gsort_get_set(sort, "help"))
		print_help(face->usage, &options);
	else if (gsort_get_set(sort, "version"))
		printf("%s %s (back ends: cpu%s)\n", face->program, gsort_version(),
		       HAVE_CUDA ? ", cuda" : "");
	else
		completion_print(gsort_get_set(sort, "completion"), face->program, &options,
				 stdout);
}

/* What was printed must have arrived: --help to a full disk is an error too. */
int command_line_answer(const struct command_line_face *face, const struct gsort *sort)
{
	print_answer(face ? face : &own_face, sort);
	if (fflush(stdout) != 0 || ferror(stdout))
		return complain(-errno, "standard output: %m");
	return 0;
}

/* The inputs: operands, names from a file, or standard input. */
static int take_inputs(struct gsort *sort, const struct parsed_words *words)
{
	int r = 0;

	for (unsigned i = 0; i < words->n_operands && r == 0; i++)
		r = *words->operands[i] ?
			    gsort_add_input_path(sort, words->operands[i]) :
			    complain(-ENOENT, "'': cannot open: %m"); /* a name that no file has */
	if (r == 0 && words->n_operands == 0 && !gsort_get_set(sort, "files0-from"))
		r = gsort_add_input_path(sort, "-");
	return r;
}

/* What is meant where nothing is said. */
static int take_defaults(struct gsort *sort)
{
	const bool checks = gsort_get_set(sort, "check") || gsort_get_set(sort, "C");
	const char *tmpdir = getenv("TMPDIR");
	int r = 0;

	if (!checks && !gsort_get_set(sort, "output"))
		r = gsort_set_output_path(sort, standard_output);
	if (r == 0 && tmpdir && *tmpdir && !gsort_get_set(sort, "temporary-directory") &&
	    !gsort_get_set(sort, "checkpoint"))
		r = gsort_add_temporary_directory(sort, tmpdir);
	return r;
}

int command_line_take(const struct command_line_face *face, int argc, char **argv,
		      struct gsort *sort)
{
	struct option_list options;
	struct taker taker = { .face = face ? face : &own_face, .options = &options, .sort = sort };
	struct parsed_words words;
	int r;

	list_options(taker.face, &options);
	r = option_parse(&options, foreign_options, argc, argv, take, &taker, &words);
	if (r > 0)
		return r;
	if (r < 0)
		return *words.refusal ? complain(r, "%s", words.refusal) : r;
	r = take_inputs(sort, &words);
	return r < 0 ? r : take_defaults(sort);
}
