/*
 * option_parse - command lines described by a table (see option_parse.h)
 *
 * getopt_long keeps its state in global variables; it is restarted for each command line, so that a
 * test can parse hundreds. Its own messages are turned off: ours go through fail() like all others.
 */
#include "src/cli/option_parse.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/messages.h"

enum {
	LONG_BASE = 256,     /* getopt's value of row i: above all letters */
	HELP_COLUMN = 30,    /* where help begins, */
	HELP_END_COLUMN = 80 /* and before which its lines end */
};

/* getopt's two views of a table. */
struct getopt_tables {
	struct option longs[OPTION_MOST_ROWS + 1];
	char letters[2 * OPTION_MOST_ROWS + 2];
};

static int has_argument(const struct option_spec *spec)
{
	if (!spec->argument)
		return no_argument;
	return spec->otherwise ? optional_argument : required_argument;
}

static void make_getopt_tables(const struct option_table *table, struct getopt_tables *tables)
{
	char *letter = tables->letters;

	assert(table->n_specs <= OPTION_MOST_ROWS);
	*letter++ = ':'; /* report a missing argument apart from an unknown option */
	for (unsigned i = 0; i < table->n_specs; i++) {
		const struct option_spec *spec = &table->specs[i];

		tables->longs[i] = (struct option){ .name = spec->name,
						    .has_arg = has_argument(spec),
						    .val = LONG_BASE + (int)i };
		if (!spec->letter)
			continue;
		*letter++ = spec->letter;
		if (spec->argument && !spec->otherwise)
			*letter++ = ':';
	}
	*letter = '\0';
	tables->longs[table->n_specs] = (struct option){ 0 };
}

/* The row that getopt means by `value`, a letter or LONG_BASE and more; NULL if none. */
static const struct option_spec *find_spec(const struct option_table *table, int value)
{
	return value >= LONG_BASE ? &table->specs[value - LONG_BASE] :
				    option_find_letter(table, value);
}

/* Some long names, as "--stable, --stats". */
struct names {
	char text[OPTION_MOST_ROWS * OPTION_SPELLING_NBYTES];
	unsigned n;
};

/* Those that begin with `word`, "--st" say. */
static void find_names(const struct option_table *table, const char *word, struct names *ret_names)
{
	const size_t n = strcspn(word + 2, "=");
	char *at = ret_names->text;

	ret_names->n = 0;
	*at = '\0';
	for (unsigned i = 0; i < table->n_specs && n > 0; i++)
		if (strncmp(table->specs[i].name, word + 2, n) == 0)
			at += snprintf(at, OPTION_SPELLING_NBYTES, "%s--%s",
				       ret_names->n++ ? ", " : "", table->specs[i].name);
}

/* The option that is meant by a letter or, if that is 0, by a word; NULL if none. */
static const struct option_foreign *find_foreign(const struct option_table *table, int letter,
						 const char *word)
{
	const struct option_foreign *foreign = table->foreign;

	const size_t n = letter ? 0 : strcspn(word + 2, "=");

	for (; foreign && foreign->name; foreign++)
		if (letter ? foreign->letter == letter :
			     n > 0 && strncmp(foreign->name, word + 2, n) == 0)
			return foreign;
	return NULL;
}

static int refuse_unknown(const struct option_table *table, int letter, const char *word)
{
	const struct option_foreign *foreign = find_foreign(table, letter, word);
	const struct option_spec *nearest;
	const char one_letter[] = { '-', (char)letter, '\0' };
	const char *option = letter ? one_letter : word;

	if (foreign)
		return fail(-EINVAL, "option '%s': %s", option, foreign->why);
	nearest = letter ? NULL : option_find_nearest(table, word + 2, strcspn(word + 2, "="));
	return nearest ? fail(-EINVAL, "unknown option '%s': did you mean --%s? See --help", option,
			      nearest->name) :
			 fail(-EINVAL, "unknown option '%s': see --help", option);
}

/* A long name that is none, or more than one. */
static int refuse_name(const struct option_table *table, const char *word)
{
	struct names names;

	find_names(table, word, &names);
	return names.n > 1 ?
		       fail(-EINVAL, "option '%s' is ambiguous: it can be %s", word, names.text) :
		       refuse_unknown(table, 0, word);
}

/* getopt found something wrong; optopt and the word before optind tell what. */
static int refuse(const struct option_table *table, int found, const char *word)
{
	const struct option_spec *spec = find_spec(table, optopt);
	char spelling[OPTION_SPELLING_NBYTES];

	if (found == ':')
		return fail(-EINVAL, "%s needs an argument, %s: see --help",
			    option_spell(spec, spelling), spec->argument);
	if (spec)
		return fail(-EINVAL, "%s takes no argument: '%s'", option_spell(spec, spelling),
			    word);
	return optopt ? refuse_unknown(table, optopt, word) : refuse_name(table, word);
}

int option_table_parse(const struct option_table *table, int argc, char **argv, void *target,
		       struct option_result *ret_result)
{
	struct option_arguments arguments = { .given = 0 };
	struct getopt_tables tables;
	int found, r;

	make_getopt_tables(table, &tables);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((found = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		if (found == '?' || found == ':')
			return refuse(table, found, argv[optind - 1]);
		r = option_take(table, find_spec(table, found), optarg, &arguments, target);
		if (r != 0)
			return r;
	}
	r = option_check_conflicts(table, &arguments);
	if (r < 0)
		return r;
	*ret_result = (struct option_result){ .operands = argv + optind,
					      .n_operands = (unsigned)(argc - optind),
					      .given = arguments.given };
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

static void print_spec(const struct option_spec *spec, FILE *stream)
{
	int column;

	if (spec->section)
		fprintf(stream, "\n%s:\n", spec->section);
	column = spec->letter ? fprintf(stream, "  -%c, --%s", spec->letter, spec->name) :
				fprintf(stream, "      --%s", spec->name);
	if (spec->argument)
		column += fprintf(stream, spec->otherwise ? "[=%s]" : "=%s", spec->argument);
	if (column >= HELP_COLUMN - 1) {
		fputc('\n', stream);
		column = 0;
	}
	print_wrapped(spec->help, column, stream);
}

void option_table_help(const struct option_table *table, FILE *stream)
{
	for (unsigned i = 0; i < table->n_specs; i++)
		print_spec(&table->specs[i], stream);
}
