/*
 * lines_main.c - the command line of lines, with the options of GNU sort (see lines_main.h)
 */
#include "src/lines/cli/lines_main.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "src/cli/print_message.h"
#include "src/lib/api_cli.h"
#include "src/lines/line_options.h"

bool lines_is_requested(int argc, char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;

	name = name ? name + 1 : argc > 0 ? argv[0] : "";
	if (strcmp(name, "sort") == 0 || strcmp(name, "lsort") == 0)
		return true;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--lines") == 0 || strcmp(argv[i], "--line") == 0 ||
		    strcmp(argv[i], "--lin") == 0)
			return true;
	return false;
}

/* Options of GNU sort and of other programs. */
static const struct unsupported_option unsupported_line_options[] = {
	{ "random-sort", 'R', "random order is not supported", NULL },
	{ "memory", 0, "use -S, --buffer-size", NULL },
	{ "threads", 'j', "use --parallel", NULL },
	{ 0 },
};

/*
 * Parse an obsolete position, F[.C][LETTERS], which counts from 0. Returns the text after the
 * numbers.
 */
static const char *parse_obsolete(const char *text, unsigned long *ret_field,
				  unsigned long *ret_character)
{
	char *end;

	*ret_field = strtoul(text, &end, 10);
	*ret_character = 0;
	if (*end == '.')
		*ret_character = strtoul(end + 1, &end, 10);
	return end;
}

/*
 * Turn the obsolete key "+POS1 [-POS2]" at argv[i] into words of -k. Returns the number of words
 * that it takes, or 0 if there is none.
 */
static int convert_obsolete_key(int argc, char **argv, int i, char **ret_key)
{
	unsigned long field, character, end_field, end_character;
	const char *letters, *end_letters;
	const bool has_end = i + 1 < argc && argv[i + 1][0] == '-' && argv[i + 1][1] >= '0' &&
			     argv[i + 1][1] <= '9';

	if (argv[i][0] != '+' || argv[i][1] < '0' || argv[i][1] > '9')
		return 0;
	letters = parse_obsolete(argv[i] + 1, &field, &character);
	if (!has_end) {
		if (asprintf(ret_key, "%lu.%lu%s", field + 1, character + 1, letters) < 0)
			*ret_key = NULL;
		return 1;
	}
	end_letters = parse_obsolete(argv[i + 1] + 1, &end_field, &end_character);
	/* -F without characters ends after field F, counted from 1. */
	if (asprintf(ret_key, "%lu.%lu%s,%lu.%lu%s", field + 1, character + 1, letters,
		     end_character ? end_field + 1 : end_field, end_character, end_letters) < 0)
		*ret_key = NULL;
	return 2;
}

/* Return whether the option before a word takes it as its value. */
static bool takes_next_word(const char *word)
{
	for (unsigned i = 0; i < line_option_table.n_specs; i++) {
		const struct option_spec *spec = &line_option_table.specs[i];

		if (spec->argument && !spec->default_value && word[0] == '-' &&
		    ((spec->letter && word[1] == spec->letter && !word[2]) ||
		     (word[1] == '-' && strcmp(word + 2, spec->name) == 0)))
			return true;
	}
	return false;
}

/*
 * Find the option of GNU sort that a word abbreviates, if it could also be one that only gsort has.
 * NULL: there is none, or more than one.
 */
static const struct option_spec *find_gnu_option(const char *word)
{
	const size_t n = strcspn(word, "=");
	const struct option_spec *found = NULL;

	if (strncmp(word, "--", 2) != 0 || n == 2)
		return NULL;
	for (unsigned i = 0; i < line_option_table.n_specs; i++) {
		const struct option_spec *spec = &line_option_table.specs[i];

		if (strncmp(word + 2, spec->name, n - 2) != 0)
			continue;
		if (spec->name[n - 2] == '\0' || (spec->is_of_gnu_sort && found))
			return NULL;
		if (spec->is_of_gnu_sort)
			found = spec;
	}
	return found;
}

/* Return whether a word is an option that only records have, such as --argsort. */
static bool is_record_option(const char *word)
{
	const size_t n = strcspn(word, "=") - 2;
	struct gsort_option option;

	for (unsigned i = 0; i < line_option_table.n_specs; i++)
		if (strncmp(word + 2, line_option_table.specs[i].name, n) == 0)
			return false; /* maybe an abbreviation */
	for (unsigned i = 0; gsort_get_option(i, &option, sizeof option) == 0; i++)
		if (strlen(option.name) == n && strncmp(word + 2, option.name, n) == 0)
			return true;
	return false;
}

/*
 * Write the abbreviated options of GNU sort out, so that the names of other options do not make
 * them ambiguous. Refuse options of records. Returns 0 or a negative errno after a message.
 */
static int complete_option_names(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct option_spec *option;
		char *word;

		if (strncmp(argv[i], "--", 2) != 0 || takes_next_word(argv[i - 1]))
			continue;
		if (is_record_option(argv[i]))
			return cli_error(-EINVAL, "%.*s: not with --lines",
					 (int)strcspn(argv[i], "="), argv[i]);
		option = find_gnu_option(argv[i]);
		if (!option)
			continue;
		if (asprintf(&word, "--%s%s", option->name, argv[i] + strcspn(argv[i], "=")) < 0)
			return cli_error(-ENOMEM, "no memory for the option %s", argv[i]);
		free(argv[i]);
		argv[i] = word;
	}
	return 0;
}

static int add_word(char **words, int *n, const char *word)
{
	words[*n] = strdup(word);
	if (!words[*n])
		return cli_error(-ENOMEM, "no memory for the command line");
	(*n)++;
	return 0;
}

/* Return the number of words of the obsolete option "-y[N]" or "-y N", which is ignored. */
static int count_obsolete_option(int argc, char **argv, int i)
{
	if (strncmp(argv[i], "-y", 2) != 0)
		return 0;
	return !argv[i][2] && i + 1 < argc && argv[i + 1][0] >= '0' && argv[i + 1][0] <= '9' ? 2 :
											       1;
}

/*
 * Copy the command line, without obsolete keys. They end at "--", and are accepted as by GNU sort:
 * unless _POSIX2_VERSION is from 200112 to 200808. The caller frees the words. Returns their
 * number, or -ENOMEM after a message.
 */
static int convert_obsolete_keys(int argc, char **argv, char **ret_words)
{
	const char *version = getenv("_POSIX2_VERSION");
	const long posix_version = version ? strtol(version, NULL, 10) : 200809;
	const bool accepts = posix_version < 200112 || posix_version >= 200809;
	int n = 0, i = 1, r;

	r = add_word(ret_words, &n, GSORT_PROGRAM);
	while (r == 0 && i < argc && strcmp(argv[i], "--") != 0) {
		const bool is_value = takes_next_word(argv[i - 1]);
		const int n_ignored = is_value ? 0 : count_obsolete_option(argc, argv, i);
		char *key = NULL;
		const int n_taken =
			accepts && !is_value ? convert_obsolete_key(argc, argv, i, &key) : 0;

		i += n_ignored;
		if (n_ignored > 0)
			continue;
		if (n_taken == 0) {
			r = add_word(ret_words, &n, argv[i++]);
			continue;
		}
		if (!key)
			return cli_error(-ENOMEM, "no memory for the key %s", argv[i]);
		r = add_word(ret_words, &n, "-k");
		ret_words[n++] = key;
		i += n_taken;
	}
	while (r == 0 && i < argc)
		r = add_word(ret_words, &n, argv[i++]);
	return r < 0 ? r : n;
}

/* cli_program.rewrite */
static int rewrite_words(int argc, char **argv, char ***ret_words)
{
	char **words = calloc(2 * (size_t)argc + 2, sizeof *words);
	int n, r;

	*ret_words = words;
	if (!words)
		return cli_error(-ENOMEM, "no memory for the command line");
	n = convert_obsolete_keys(argc, argv, words);
	r = n < 0 ? n : complete_option_names(n, words);
	return r < 0 ? r : n;
}

#define SUMMARY "Sort lines of text as GNU sort does in the C locale.\n"

const struct cli_program lines_program = {
	.name = GSORT_PROGRAM,
	.completed_name = "lsort",
	.usage = "Usage: " GSORT_PROGRAM " --lines [OPTION]... [FILE]...\n" SUMMARY,
	.sorts_lines = true,
	.unsupported = unsupported_line_options,
	.rewrite = rewrite_words,
	.write_to_stdout = api_lines_write_to_stdout,
	.write_disorder = api_lines_write_disorder,
	.get_option = gsort_get_line_option,
	.get_word = api_distributed_get_line_word,
};

const struct cli_program lines_mpi_program = {
	.name = GSORT_PROGRAM "-mpi",
	.completed_name = "lsort",
	.usage = "Usage: mpirun -np N " GSORT_PROGRAM
		 "-mpi --lines [OPTION]... -o FILE FILE...\n" SUMMARY,
	.sorts_lines = true,
	.unsupported = unsupported_line_options,
	.rewrite = rewrite_words,
	.write_to_stdout = api_lines_write_to_stdout,
	.write_disorder = api_lines_write_disorder,
	.get_option = api_distributed_get_line_option,
	.get_word = api_distributed_get_line_word,
};
