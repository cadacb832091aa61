/*
 * option_parse - command lines, by what is known of a program's options (see option_parse.h)
 *
 * getopt_long keeps its state in global variables; it is restarted for each command line, so that a
 * test can parse hundreds. Its own messages are turned off: ours go to whoever wants the words.
 */
#include "src/cli/option_parse.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

enum {
	LONG_BASE = 256, /* getopt's value of option i: above all letters */
	SPELLING_NBYTES = 48,
	HELP_COLUMN = 30,    /* where help begins, */
	HELP_END_COLUMN = 80 /* and before which its lines end */
};

/* getopt's two views of the options. */
struct getopt_tables {
	struct option longs[OPTION_LIST_MAX + 1];
	char letters[2 * OPTION_LIST_MAX + 2];
};

/* An option without a long name has its letter as its name. */
static bool has_long_name(const struct gsort_option *spec)
{
	return spec->name[0] && spec->name[1];
}

static int has_argument(const struct gsort_option *spec)
{
	if (!spec->argument)
		return no_argument;
	return spec->default_value ? optional_argument : required_argument;
}

static void make_getopt_tables(const struct option_list *options, struct getopt_tables *tables)
{
	char *letter = tables->letters;
	unsigned n_longs = 0;

	assert(options->n <= OPTION_LIST_MAX);
	*letter++ = ':'; /* report a missing argument apart from an unknown option */
	for (unsigned i = 0; i < options->n; i++) {
		const struct gsort_option *spec = &options->options[i];

		if (has_long_name(spec))
			tables->longs[n_longs++] = (struct option){ .name = spec->name,
								    .has_arg = has_argument(spec),
								    .val = LONG_BASE + (int)i };
		if (!spec->letter)
			continue;
		*letter++ = (char)spec->letter;
		if (spec->argument && !spec->default_value)
			*letter++ = ':';
	}
	*letter = '\0';
	tables->longs[n_longs] = (struct option){ 0 };
}

/* The option that getopt means by `value`, a letter or LONG_BASE and more; n: there is none. */
static unsigned find_option(const struct option_list *options, int value)
{
	unsigned i = 0;

	if (value >= LONG_BASE)
		return (unsigned)(value - LONG_BASE);
	while (i < options->n && (!value || options->options[i].letter != value))
		i++;
	return i;
}

/* Some long names, as "--stable, --stats". */
struct option_name_list {
	char text[OPTION_LIST_MAX * SPELLING_NBYTES];
	unsigned n;
};

/* Those that begin with `word`, "--st" say. */
static void find_abbreviated(const struct option_list *options, const char *word,
			     struct option_name_list *ret_names)
{
	const size_t n = strcspn(word + 2, "=");
	char *end = ret_names->text;

	ret_names->n = 0;
	*end = '\0';
	for (unsigned i = 0; i < options->n && n > 0; i++)
		if (has_long_name(&options->options[i]) &&
		    strncmp(options->options[i].name, word + 2, n) == 0)
			end += snprintf(end, SPELLING_NBYTES, "%s--%s", ret_names->n++ ? ", " : "",
					options->options[i].name);
}

/* The option that is meant by a letter or, if that is 0, by a word; NULL if none. */
static const struct unsupported_option *
find_unsupported(const struct unsupported_option *unsupported, int letter, const char *word)
{
	const size_t n = letter ? 0 : strcspn(word + 2, "=");

	for (; unsupported && unsupported->name; unsupported++)
		if (unsupported->is_foreign_value)
			continue;
		else if (letter ? unsupported->letter == letter :
				  n > 0 && strncmp(unsupported->name, word + 2, n) == 0)
			return unsupported;
	return NULL;
}

static int set_parse_error(struct parsed_command_line *parsed, const char *format, ...)
	__attribute__((format(printf, 2, 3), cold));

static int set_parse_error(struct parsed_command_line *parsed, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(parsed->error, sizeof parsed->error, format, args);
	va_end(args);
	return -EINVAL;
}

/* The long name that may be meant by a word, "--buffersize=1M"; NULL: none. */
static const char *suggest_option(const struct option_list *options, const char *word)
{
	const char *names[OPTION_LIST_MAX];
	unsigned n = 0;

	for (unsigned i = 0; i < options->n; i++)
		if (has_long_name(&options->options[i]))
			names[n++] = options->options[i].name;
	return gsort_suggest(word + 2, strcspn(word + 2, "="), names, n);
}

static int set_unknown_option_error(const struct option_list *options,
				    const struct unsupported_option *unsupported, int letter,
				    const char *word, struct parsed_command_line *parsed)
{
	const struct unsupported_option *match = find_unsupported(unsupported, letter, word);
	const char *nearest;
	const char one_letter[] = { '-', (char)letter, '\0' };
	/* A byte may be no letter, but a part of one. */
	const bool is_letter = letter > 0 && letter < 0x80;
	const char *option = is_letter ? one_letter : word;

	if (match)
		return set_parse_error(parsed, "option '%s': %s", option, match->reason);
	nearest = letter ? NULL : suggest_option(options, word);
	return nearest ?
		       set_parse_error(parsed, "unknown option '%s': did you mean --%s? See --help",
				       option, nearest) :
		       set_parse_error(parsed, "unknown option '%s': see --help", option);
}

/* A long name that is none, or more than one. */
static int set_option_name_error(const struct option_list *options,
				 const struct unsupported_option *unsupported, const char *word,
				 struct parsed_command_line *parsed)
{
	struct option_name_list names;

	find_abbreviated(options, word, &names);
	return names.n > 1 ? set_parse_error(parsed, "option '%s' is ambiguous: it can be %s", word,
					     names.text) :
			     set_unknown_option_error(options, unsupported, 0, word, parsed);
}

/* Write the names of an option for messages, "-S, --buffer-size", and return `text`. */
static const char *format_option_name(const struct gsort_option *option,
				      char text[static SPELLING_NBYTES])
{
	if (!has_long_name(option))
		snprintf(text, SPELLING_NBYTES, "-%c", option->letter);
	else if (option->letter)
		snprintf(text, SPELLING_NBYTES, "-%c, --%s", option->letter, option->name);
	else
		snprintf(text, SPELLING_NBYTES, "--%s", option->name);
	return text;
}

/* Refuse a value (NULL: none) that has a meaning for other programs only. 0: it has none. */
static int check_foreign_value(const struct gsort_option *option,
			       const struct unsupported_option *unsupported, const char *value,
			       struct parsed_command_line *parsed)
{
	char spelling[SPELLING_NBYTES];

	for (; unsupported && unsupported->name; unsupported++)
		if (unsupported->is_foreign_value && strcmp(unsupported->name, option->name) == 0 &&
		    unsupported->is_foreign_value(value))
			return set_parse_error(parsed, "%s%s%s: %s",
					       format_option_name(option, spelling),
					       value ? "=" : "", value ? value : "",
					       unsupported->reason);
	return 0;
}

/* Of an option that there is, getopt found something wrong. */
static int set_option_value_error(const struct gsort_option *option,
				  const struct unsupported_option *unsupported, int code,
				  const char *word, struct parsed_command_line *parsed)
{
	char spelling[SPELLING_NBYTES];

	if (code == ':' && check_foreign_value(option, unsupported, NULL, parsed) < 0)
		return -EINVAL;
	format_option_name(option, spelling);
	return code == ':' ? set_parse_error(parsed, "%s needs an argument, %s: see --help",
					     spelling, option->argument) :
			     set_parse_error(parsed, "%s takes no argument: '%s'", spelling, word);
}

/* The word that a letter is of: unless it is the last there, getopt is still at it. */
static const char *find_letter_word(char **argv, int letter)
{
	const char *current = argv[optind];

	return current && *current == '-' && strchr(current, letter) ? current : argv[optind - 1];
}

int option_parse(const struct option_list *options, const struct unsupported_option *unsupported,
		 int argc, char **argv, option_callback *callback, void *context,
		 struct parsed_command_line *ret_parsed)
{
	struct getopt_tables tables;
	int code, r;

	ret_parsed->error[0] = '\0';
	make_getopt_tables(options, &tables);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((code = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const bool is_error = code == '?' || code == ':';
		const unsigned i = find_option(options, is_error ? optopt : code);

		if (is_error && i < options->n)
			return set_option_value_error(&options->options[i], unsupported, code,
						      argv[optind - 1], ret_parsed);
		if (is_error && optopt)
			return set_unknown_option_error(options, unsupported, optopt,
							find_letter_word(argv, optopt), ret_parsed);
		if (is_error)
			return set_option_name_error(options, unsupported, argv[optind - 1],
						     ret_parsed);
		r = optarg ? check_foreign_value(&options->options[i], unsupported, optarg,
						 ret_parsed) :
			     0;
		if (r == 0)
			r = callback(context, i, optarg);
		if (r != 0)
			return r;
	}
	ret_parsed->operands = argv + optind;
	ret_parsed->n_operands = (unsigned)(argc - optind);
	return 0;
}

/* Print `text` from column `column` on, its lines broken between words. */
static void print_wrapped(const char *text, int column, FILE *stream)
{
	while (*text) {
		const int n = (int)strcspn(text, " ");

		if (column < HELP_COLUMN || column + 1 + n >= HELP_END_COLUMN) {
			if (column >= HELP_COLUMN) {
				fputc('\n', stream);
				column = 0;
			}
			column += fprintf(stream, "%*s", HELP_COLUMN - column, "");
		} else {
			column += fprintf(stream, " ");
		}
		column += fprintf(stream, "%.*s", n, text);
		text += n + (text[n] == ' ');
	}
	fputc('\n', stream);
}

static void print_option_help(const struct gsort_option *spec, FILE *stream)
{
	int column;

	if (spec->section)
		fprintf(stream, "\n%s:\n", spec->section);
	column = !has_long_name(spec) ? fprintf(stream, "  -%c", spec->letter) :
		 spec->letter         ? fprintf(stream, "  -%c, --%s", spec->letter, spec->name) :
					fprintf(stream, "      --%s", spec->name);
	if (spec->argument)
		column += fprintf(stream, spec->default_value ? "[=%s]" : "=%s", spec->argument);
	if (column >= HELP_COLUMN - 1) {
		fputc('\n', stream);
		column = 0;
	}
	print_wrapped(spec->help, column, stream);
}

void option_print_help(const struct option_list *options, FILE *stream)
{
	for (unsigned i = 0; i < options->n; i++)
		print_option_help(&options->options[i], stream);
}
