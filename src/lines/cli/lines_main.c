/*
 * lines_main.c - the command line of lines, with the options of GNU sort (see lines_main.h)
 */
#include "src/lines/cli/lines_main.h"

#include <errno.h>
#include <limits.h>
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

#define DIGITS "0123456789"
#define OBSOLETE_KEY_LETTERS "bdfghiMnrRV"

/* Options of GNU sort and of other programs. */
static const struct unsupported_option unsupported_line_options[] = {
	{ "random-sort", 'R', "random order is not supported", NULL },
	{ "memory", 0, "use -S, --buffer-size", NULL },
	{ "threads", 'j', "use --parallel", NULL },
	{ 0 },
};

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
 * Find the option that a word abbreviates. Names of other options do not make abbreviations of GNU
 * sort ambiguous. NULL: there is none, or more than one.
 */
static const struct option_spec *find_long_option(const char *word)
{
	const size_t n = strcspn(word, "=") - 2;
	const struct option_spec *found = NULL;
	bool is_ambiguous = false;

	for (unsigned i = 0; i < line_option_table.n_specs && n > 0; i++) {
		const struct option_spec *spec = &line_option_table.specs[i];

		if (strncmp(word + 2, spec->name, n) != 0)
			continue;
		if (spec->name[n] == '\0')
			return spec;
		if (found && found->is_of_gnu_sort && !spec->is_of_gnu_sort)
			continue;
		is_ambiguous = found && found->is_of_gnu_sort == spec->is_of_gnu_sort;
		found = spec;
	}
	return is_ambiguous ? NULL : found;
}

/* Return the option at the end of a word that takes the next word as its value; NULL: none. */
static const struct option_spec *find_option_before_value(const char *word)
{
	const struct option_spec *spec = NULL;

	if (word[0] == '-' && word[1] == '-') {
		spec = strchr(word, '=') ? NULL : find_long_option(word);
		return spec && spec->argument && !spec->default_value ? spec : NULL;
	}
	for (const char *letter = word + 1; word[0] == '-' && *letter; letter++)
		for (unsigned i = 0; i < line_option_table.n_specs; i++) {
			spec = &line_option_table.specs[i];
			if (spec->letter == *letter && spec->argument && !spec->default_value)
				return letter[1] ? NULL : spec;
		}
	return NULL;
}

/* A command line while it is converted: options first, then "--" and operands. */
struct conversion {
	int argc;
	char **argv;
	int i; /* the next of argv */
	bool is_posix, accepts_obsolete_keys;
	char **options, **operands;
	int n_options, n_operands;
	bool lacks_value; /* of the last option */
};

static int add_word(char **words, int *n, const char *word)
{
	words[*n] = word ? strdup(word) : NULL;
	if (!words[*n])
		return cli_error(-ENOMEM, "no memory for the command line");
	(*n)++;
	return 0;
}

static int add_option(struct conversion *conversion, const char *word)
{
	return add_word(conversion->options, &conversion->n_options, word);
}

/* Parse a number; huge ones become ULONG_MAX. Returns false if there is none. */
static bool parse_number(const char **text, unsigned long *ret_number)
{
	const char *digits = line_number_digits(*text);
	char *end;

	if (*digits < '0' || *digits > '9')
		return false;
	*ret_number = strtoul(digits, &end, 10);
	*text = end;
	return true;
}

/* Parse an obsolete position, F[.C], which counts from 0. Returns false if it is none. */
static bool parse_obsolete(const char **text, unsigned long *ret_field,
			   unsigned long *ret_character)
{
	*ret_character = 0;
	if (!parse_number(text, ret_field))
		return false;
	if (**text != '.')
		return true;
	(*text)++;
	return parse_number(text, ret_character);
}

/* Add 1 to a number that counts from 0. */
static unsigned long count_from_1(unsigned long number)
{
	return number + (number < ULONG_MAX);
}

/* Append ",END" to a key for the obsolete "-END" (`word`). Returns 0 or a negative errno. */
static int append_obsolete_end(const char *word, char **key)
{
	const char *letters = word + 1;
	unsigned long field, character;
	char *begin = *key;
	int n;

	if (!parse_obsolete(&letters, &field, &character))
		return cli_error(-EINVAL,
				 "invalid number after '.': invalid field specification '%s'",
				 word);
	if (letters[strspn(letters, OBSOLETE_KEY_LETTERS)])
		return cli_error(-EINVAL,
				 "stray character in field spec: invalid field specification '%s'",
				 word);
	/* -F without characters ends after field F, counted from 1; -0 means -1. */
	field = character || field == 0 ? count_from_1(field) : field;
	n = asprintf(key, "%s,%lu.%lu%s", begin, field, character, letters);
	free(begin);
	if (n >= 0)
		return 0;
	*key = NULL;
	return cli_error(-ENOMEM, "no memory for the command line");
}

/*
 * Convert the obsolete key "+POS1 [-POS2]" at the next word to -k. Returns the number of words of
 * the key, 0 if there is none, or a negative errno after a message.
 */
static int convert_obsolete_key(struct conversion *conversion)
{
	const char *const word = conversion->argv[conversion->i], *letters = word + 1;
	const char *const next = conversion->argv[conversion->i + 1];
	const bool has_end = next && next[0] == '-' && next[1] >= '0' && next[1] <= '9';
	unsigned long field, character;
	char *key;
	int r;

	conversion->accepts_obsolete_keys |= has_end && word[0] == '+' && !conversion->is_posix;
	if (word[0] != '+' || !conversion->accepts_obsolete_keys ||
	    !parse_obsolete(&letters, &field, &character) ||
	    letters[strspn(letters, OBSOLETE_KEY_LETTERS)])
		return 0;
	if (field == ULONG_MAX) /* to GNU sort, this is the beginning of the line */
		field = character = 0;
	if (asprintf(&key, "%lu.%lu%s", count_from_1(field), count_from_1(character), letters) < 0)
		return cli_error(-ENOMEM, "no memory for the command line");
	r = has_end ? append_obsolete_end(next, &key) : 0;
	r = r < 0 ? r : add_option(conversion, "-k");
	r = r < 0 ? r : add_option(conversion, key);
	free(key);
	return r < 0 ? r : 1 + has_end;
}

/*
 * Add an option, written out, and its value. -y takes the next word only if it is a number. Returns
 * the number of words, or a negative errno after a message.
 */
static int convert_option(struct conversion *conversion)
{
	const char *const word = conversion->argv[conversion->i];
	const char *const next = conversion->argv[conversion->i + 1];
	const size_t n_name = strcspn(word, "=");
	const bool is_long = strncmp(word, "--", 2) == 0;
	const struct option_spec *long_option = is_long ? find_long_option(word) : NULL;
	const struct option_spec *before_value = find_option_before_value(word);
	char *option = NULL;
	int r;

	if (is_long && is_record_option(word))
		return cli_error(-EINVAL, "%.*s: not with --lines", (int)n_name, word);
	if (before_value && before_value->letter == 'y' && next && next[strspn(next, DIGITS)]) {
		r = asprintf(&option, "%s0", word);
		before_value = NULL;
	} else {
		r = long_option ? asprintf(&option, "--%s%s", long_option->name, word + n_name) :
				  asprintf(&option, "%s", word);
	}
	r = add_option(conversion, r < 0 ? NULL : option);
	free(option);
	conversion->lacks_value = before_value && !next;
	if (r == 0 && before_value && next)
		r = add_option(conversion, next);
	return r < 0 ? r : before_value ? 2 : 1;
}

/*
 * Convert the next words of the command line. With POSIXLY_CORRECT, only -o is an option after an
 * operand, and only if obsolete keys are accepted.
 */
static int convert_words(struct conversion *conversion)
{
	const char *const word = conversion->argv[conversion->i];
	const bool is_option = word[0] == '-' && word[1];
	const bool ends_options = conversion->is_posix && conversion->n_operands > 0;
	int n = 0;

	if (is_option && (!ends_options || (word[1] == 'o' && conversion->accepts_obsolete_keys &&
					    (word[2] || conversion->argv[conversion->i + 1]))))
		n = convert_option(conversion);
	else if (!ends_options)
		n = convert_obsolete_key(conversion);
	if (n == 0)
		n = add_word(conversion->operands, &conversion->n_operands, word) < 0 ? -ENOMEM : 1;
	if (n > 0)
		conversion->i += n;
	return n;
}

/* Convert the words. Obsolete keys are accepted unless _POSIX2_VERSION is from 200112 to 200808. */
static int convert_command_line(struct conversion *conversion)
{
	const char *version = getenv("_POSIX2_VERSION");
	const long posix_version = version ? strtol(version, NULL, 10) : 200809;
	int r = add_option(conversion, GSORT_PROGRAM);

	conversion->is_posix = getenv("POSIXLY_CORRECT") != NULL;
	conversion->accepts_obsolete_keys = posix_version < 200112 || posix_version >= 200809;

	while (r >= 0 && conversion->i < conversion->argc &&
	       (strcmp(conversion->argv[conversion->i], "--") != 0 ||
		(conversion->is_posix && conversion->n_operands > 0)))
		r = convert_words(conversion);
	for (conversion->i++; r >= 0 && conversion->i < conversion->argc; conversion->i++)
		r = add_word(conversion->operands, &conversion->n_operands,
			     conversion->argv[conversion->i]);
	if (r >= 0 && conversion->n_operands > 0 && !conversion->lacks_value)
		r = add_option(conversion, "--");
	return r < 0 ? r : 0;
}

/* cli_program.rewrite */
static int rewrite_words(int argc, char **argv, char ***ret_words)
{
	/* A word becomes at most two, and "--" may be added. */
	char **const words = calloc(3 * (size_t)argc + 3, sizeof *words);
	struct conversion conversion = { .argc = argc, .argv = argv, .i = 1, .options = words };
	int n, r;

	*ret_words = words;
	if (!words)
		return cli_error(-ENOMEM, "no memory for the command line");
	conversion.operands = words + 2 * (size_t)argc + 1;
	r = convert_command_line(&conversion);
	n = conversion.n_options + conversion.n_operands;
	memmove(words + conversion.n_options, conversion.operands,
		(size_t)conversion.n_operands * sizeof *words);
	memset(words + n, 0, (3 * (size_t)argc + 3 - (size_t)n) * sizeof *words);
	return r < 0 ? r : conversion.lacks_value ? conversion.n_options : n;
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
