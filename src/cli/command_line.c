/*
 * command_line.c - the command line of gsort and gsort-mpi (see cli_main.h)
 */
#include "src/cli/cli_main.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/cli/option_parse.h"
#include "src/cli/print_message.h"

/* The path of standard output for the library. */
static const char standard_output_path[] = "/dev/fd/1";

const struct cli_program record_program = {
	.name = GSORT_PROGRAM,
	.usage = "Usage: " GSORT_PROGRAM " [OPTION]... [FILE]...\n"
		 "Sort fixed-size binary records, in files larger than memory.\n"
		 "\n"
		 "Several files are sorted together. Without FILE, or when FILE is -, standard\n"
		 "input is read. Without -o, standard output is written, unless it is a terminal.\n"
		 "With --lines, lines of text are sorted as sort(1) does: see --lines --help.\n",
	.unsupported = unsupported_options,
	.get_option = gsort_get_option,
	.get_word = gsort_get_option_word,
};

/* --- Options of GNU sort --- */

#define NO_TEXT "records are binary; for lines of text use --lines"

/* Return whether a key is one of columns of text: "2,2", "1.3,1.5", "2n,2". */
static bool is_text_key(const char *value)
{
	const size_t n = value ? strspn(value, "0123456789") : 0;

	if (n == 0)
		return false;
	value += n;
	if (*value == '.')
		value += 1 + strspn(value + 1, "0123456789");
	return value[strspn(value, "bdfgiMhnRrV")] == ',';
}

/* Return whether a value is one character that separates columns: ",", "\\t". */
static bool is_separator(const char *value)
{
	return value && *value &&
	       ((!value[1] && !isalnum((unsigned char)*value)) || strcmp(value, "\\t") == 0 ||
		strcmp(value, "\\0") == 0);
}

/* Return whether a value is missing, or begins like the name of a file. */
static bool is_no_size(const char *value)
{
	return !value || isalpha((unsigned char)*value) || *value == '.' || *value == '/';
}

/* Options of GNU sort. Its -t, -k and -R mean something else here. */
const struct unsupported_option unsupported_options[] = {
	{ "ignore-leading-blanks", 'b', NO_TEXT "; -k gives the first byte of a key", NULL },
	{ "dictionary-order", 'd', NO_TEXT "; bytes (-t bN) are in memcmp order", NULL },
	{ "ignore-case", 'f', NO_TEXT "; bytes (-t bN) are in memcmp order", NULL },
	{ "ignore-nonprinting", 'i', NO_TEXT "; bytes (-t bN) are in memcmp order", NULL },
	{ "general-numeric-sort", 'g', NO_TEXT "; give the type of the numbers, such as -t f64",
	  NULL },
	{ "human-numeric-sort", 'h',
	  NO_TEXT "; give the type of the numbers with -t; for help use --help", NULL },
	{ "numeric-sort", 'n', NO_TEXT "; give the type of the numbers, such as -t i64", NULL },
	{ "month-sort", 'M', NO_TEXT "; give the type of the keys with -t", NULL },
	{ "version-sort", 'V', NO_TEXT "; give the type of the keys with -t; see also --version",
	  NULL },
	{ "sort", 0, NO_TEXT "; give the type of the keys with -t, or -R and -k", NULL },
	{ "random-sort", 0, "random order is not supported; -R, --record-size is the record size",
	  NULL },
	{ "random-source", 0, "random order is not supported", NULL },
	{ "field-separator", 0, NO_TEXT "; use -k OFFSET:TYPE for each key", NULL },
	{ "zero-terminated", 'z', NO_TEXT "; -t or -R set their size", NULL },
	{ "header", 0, NO_TEXT, NULL },
	{ "compress-program", 0, "use --temp-compress", NULL },
	{ "memory", 0, "use -S, --buffer-size", NULL },
	{ "threads", 'j', "use --parallel", NULL },
	{ "key", 'k', NO_TEXT "; use OFFSET:TYPE, and repeat -k for each key", is_text_key },
	{ "type", 't', NO_TEXT "; -t is the type, and -k OFFSET:TYPE a key", is_separator },
	{ "record-size", 'R',
	  "random order is not supported; -R requires the record size in bytes; for lines of "
	  "text use --lines",
	  is_no_size },
	{ 0 },
};

/* --- Parsing --- */

static const char *get_program_word(const void *context, unsigned i, unsigned n, char *text)
{
	const struct cli_program *program = context;

	return program->get_word(i, n, text);
}

static void list_options(const struct cli_program *program, struct option_list *options)
{
	options->n = 0;
	options->get_word = get_program_word;
	options->context = program;
	while (options->n < OPTION_LIST_MAX &&
	       program->get_option(options->n, &options->options[options->n],
				   sizeof options->options[0]) == 0)
		options->n++;
}

struct sort_option_target {
	const struct option_list *options;
	struct gsort *sort;
};

static int set_sort_option(void *context, unsigned i, const char *value)
{
	/* These end the parsing. */
	static const char *const builtin_names[] = { "help", "version", "completion" };
	const struct sort_option_target *target = context;
	const char *name = target->options->options[i].name;
	const int r = gsort_set_from_cli(target->sort, name, value);

	for (size_t k = 0; r == 0 && k < sizeof builtin_names / sizeof builtin_names[0]; k++)
		if (strcmp(builtin_names[k], name) == 0)
			return COMMAND_LINE_BUILTIN;
	return r;
}

/* A full disk is an error of --help, too. */
int command_line_print_builtin(const struct cli_program *program, const struct gsort *sort)
{
	struct option_list options;

	list_options(program, &options);
	if (gsort_get_set(sort, "help")) {
		fputs(program->usage, stdout);
		option_print_help(&options, stdout);
		printf("\n%s%s"
		       "Exit status: 0 success; 1 -c or -C found disorder; "
		       "2 error, with a message.\n",
		       program->sorts_lines ? "" : gsort_describe_types(),
		       program->sorts_lines ? "" : "\n");
	} else if (gsort_get_set(sort, "version")) {
		printf("%s %s (back ends: cpu%s)\n", program->name, gsort_version(),
		       HAVE_CUDA ? ", cuda" : "");
	} else {
		option_print_completion(gsort_get_set(sort, "completion"),
					program->completed_name ? program->completed_name :
								  program->name,
					&options, stdout);
	}
	if (fflush(stdout) != 0 || ferror(stdout))
		return cli_error(-errno, "standard output: %m");
	return 0;
}

/* Write to standard output without -o; spill to $TMPDIR without -T. */
static int apply_defaults(const struct cli_program *program, struct gsort *sort)
{
	const bool is_check = gsort_get_set(sort, "check") || gsort_get_set(sort, "C");
	const char *tmpdir = getenv("TMPDIR");
	int r = 0;

	if (!is_check && !gsort_get_set(sort, "output")) {
		if (program->write_to_stdout)
			program->write_to_stdout(sort);
		else
			r = gsort_set_output_path(sort, standard_output_path);
	}
	if (r == 0 && tmpdir && *tmpdir && !gsort_get_set(sort, "temporary-directory") &&
	    !gsort_get_set(sort, "checkpoint"))
		r = gsort_add_temporary_directory(sort, tmpdir);
	return r;
}

static int parse_words(const struct cli_program *program, int argc, char **argv, struct gsort *sort)
{
	struct option_list options;
	struct sort_option_target target = { .options = &options, .sort = sort };
	struct parsed_command_line parsed;
	int r;

	list_options(program, &options);
	r = option_parse(&options, program->unsupported, argc, argv, set_sort_option, &target,
			 &parsed);
	if (r > 0)
		return r;
	if (r < 0)
		return *parsed.error ? cli_error(r, "%s", parsed.error) : r;
	/* Operands are inputs; without operands and --files0-from, standard input is. */
	for (unsigned i = 0; i < parsed.n_operands && r == 0; i++)
		r = *parsed.operands[i] ?
			    gsort_add_input_path(sort, parsed.operands[i]) :
			    cli_error(-ENOENT, program->sorts_lines ? "cannot read: '': %m" :
								      "'': cannot open: %m");
	if (r == 0 && parsed.n_operands == 0 && !gsort_get_set(sort, "files0-from"))
		r = gsort_add_input_path(sort, "-");
	return r < 0 ? r : apply_defaults(program, sort);
}

int command_line_parse(const struct cli_program *program, int argc, char **argv, struct gsort *sort)
{
	char **words = NULL;
	int n, r;

	if (!program->rewrite)
		return parse_words(program, argc, argv, sort);
	n = program->rewrite(argc, argv, &words);
	r = n < 0 ? n : gsort_set(sort, "lines", NULL);
	if (r == 0)
		r = parse_words(program, n, words, sort);
	for (char **word = words; word && *word; word++)
		free(*word);
	free(words);
	return r;
}
