/*
 * option_table - command lines described by a table (see option_table.h)
 *
 * getopt_long keeps its state in global variables; it is restarted for each command line, so that a
 * test can parse hundreds. Its own messages are turned off: ours go through fail() like all others.
 */
#include "src/cli/option_table.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "src/base/messages.h"
#include "src/base/size.h"

enum {
	MAX_SPECS = 64,  /* bits of option_result.given */
	LONG_BASE = 256, /* getopt's value of row i: above all letters */
	MOST_MEMBER_NBYTES = 256,
	HELP_COLUMN = 30,    /* where help begins, */
	HELP_END_COLUMN = 80 /* and before which its lines end */
};

/* getopt's two views of a table. */
struct getopt_tables {
	struct option longs[MAX_SPECS + 1];
	char letters[2 * MAX_SPECS + 2];
};

static void *member_of(const struct option_spec *spec, void *target)
{
	return (char *)target + spec->offset;
}

const char *option_spell(const struct option_spec *spec, char text[static OPTION_SPELLING_NBYTES])
{
	if (spec->letter)
		snprintf(text, OPTION_SPELLING_NBYTES, "-%c, --%s", spec->letter, spec->name);
	else
		snprintf(text, OPTION_SPELLING_NBYTES, "--%s", spec->name);
	return text;
}

static int has_argument(const struct option_spec *spec)
{
	if (!spec->argument)
		return no_argument;
	return spec->otherwise ? optional_argument : required_argument;
}

static void make_getopt_tables(const struct option_table *table, struct getopt_tables *tables)
{
	char *letter = tables->letters;

	assert(table->n_specs <= MAX_SPECS);
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
	if (value >= LONG_BASE)
		return &table->specs[value - LONG_BASE];
	for (unsigned i = 0; i < table->n_specs; i++)
		if (value && table->specs[i].letter == value)
			return &table->specs[i];
	return NULL;
}

/* Is `word`, "--st" say, the beginning of several long names? */
static bool is_ambiguous(const struct option_table *table, const char *word)
{
	const size_t n = strcspn(word + 2, "=");
	unsigned n_matches = 0;

	for (unsigned i = 0; i < table->n_specs; i++)
		n_matches += strncmp(table->specs[i].name, word + 2, n) == 0;
	return n_matches > 1;
}

/* The option that is meant by a letter or, if that is 0, by a word; NULL if none. */
static const struct option_foreign *find_foreign(const struct option_table *table, int letter,
						 const char *word)
{
	const struct option_foreign *foreign = table->foreign;

	for (; foreign && foreign->name; foreign++)
		if (letter ? foreign->letter == letter :
			     strncmp(foreign->name, word + 2, strcspn(word + 2, "=")) == 0)
			return foreign;
	return NULL;
}

static int refuse_unknown(const struct option_table *table, int letter, const char *word)
{
	const struct option_foreign *foreign = find_foreign(table, letter, word);
	const char one_letter[] = { '-', (char)letter, '\0' };
	const char *option = letter ? one_letter : word;

	if (!letter && is_ambiguous(table, word))
		return fail(-EINVAL, "option '%s' is ambiguous: write the name in full", word);
	return foreign ? fail(-EINVAL, "option '%s': %s", option, foreign->why) :
			 fail(-EINVAL, "unknown option '%s': see --help", option);
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
	return refuse_unknown(table, optopt, word);
}

static bool is_given(uint64_t given, unsigned row)
{
	return given >> row & 1;
}

static int check_conflicts(const struct option_table *table, uint64_t given)
{
	char a[OPTION_SPELLING_NBYTES], b[OPTION_SPELLING_NBYTES];

	for (unsigned i = 0; i < table->n_conflicts; i++) {
		const struct option_conflict *conflict = &table->conflicts[i];

		if (is_given(given, conflict->a) && is_given(given, conflict->b))
			return fail(-EINVAL, "%s and %s cannot be used together: %s",
				    option_spell(&table->specs[conflict->a], a),
				    option_spell(&table->specs[conflict->b], b), conflict->why);
	}
	return 0;
}

/* The arguments that the rows have got so far. */
struct arguments {
	const char *first[MAX_SPECS];
};

static int refuse_second(const struct option_spec *spec, const char *first, const char *argument)
{
	char spelling[OPTION_SPELLING_NBYTES];

	return fail(-EINVAL, "%s: can be given once only, not as '%s' and as '%s'",
		    option_spell(spec, spelling), first, argument);
}

/*
 * Of two different values the last would win in silence. Arguments that differ may be the same
 * value, 1M and 1024K: then the second leaves the member as the first has made it.
 */
static int take_second(const struct option_spec *spec, const char *first, const char *argument,
		       void *target)
{
	char before[MOST_MEMBER_NBYTES];
	const void *member = member_of(spec, target);
	int r;

	assert(spec->member_nbytes <= sizeof before);
	if (!strcmp(first, argument))
		return 0;
	memcpy(before, member, spec->member_nbytes);
	r = spec->take(spec, argument, target);
	if (r != 0)
		return r;
	return spec->member_nbytes && !memcmp(before, member, spec->member_nbytes) ?
		       0 :
		       refuse_second(spec, first, argument);
}

static int take(const struct option_table *table, const struct option_spec *spec,
		struct arguments *arguments, void *target)
{
	const char *argument = optarg ? optarg : spec->otherwise;
	const char **first = &arguments->first[spec - table->specs];

	if (argument && *first && !spec->repeats)
		return take_second(spec, *first, argument, target);
	*first = argument;
	return spec->take(spec, argument, target);
}

int option_table_parse(const struct option_table *table, int argc, char **argv, void *target,
		       struct option_result *ret_result)
{
	struct arguments arguments = { { NULL } };
	struct getopt_tables tables;
	uint64_t given = 0;
	int found, r;

	make_getopt_tables(table, &tables);
	opterr = 0;
	optind = 0; /* glibc: start over */
	while ((found = getopt_long(argc, argv, tables.letters, tables.longs, NULL)) != -1) {
		const struct option_spec *spec = find_spec(table, found);

		if (found == '?' || found == ':')
			return refuse(table, found, argv[optind - 1]);
		r = take(table, spec, &arguments, target);
		if (r != 0)
			return r;
		given |= UINT64_C(1) << (spec - table->specs);
	}
	r = check_conflicts(table, given);
	if (r < 0)
		return r;
	*ret_result = (struct option_result){ .operands = argv + optind,
					      .n_operands = (unsigned)(argc - optind),
					      .given = given };
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

int option_take_flag(const struct option_spec *spec, const char *argument, void *target)
{
	(void)argument;
	*(bool *)member_of(spec, target) = true;
	return 0;
}

int option_take_value(const struct option_spec *spec, const char *argument, void *target)
{
	(void)argument;
	*(int *)member_of(spec, target) = spec->value;
	return 0;
}

int option_take_choice(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	for (const struct option_choice *choice = spec->choices; choice->word; choice++) {
		if (!strcmp(choice->word, argument)) {
			*(int *)member_of(spec, target) = choice->value;
			return 0;
		}
	}
	return fail(-EINVAL, "%s: '%s' is none of %s", option_spell(spec, spelling), argument,
		    spec->argument);
}

int option_take_text(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	if (!*argument)
		return fail(-EINVAL, "%s: %s cannot be empty", option_spell(spec, spelling),
			    spec->argument);
	*(const char **)member_of(spec, target) = argument;
	return 0;
}

int option_take_size(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t nbytes;
	const int r =
		size_parse_option(option_spell(spec, spelling), argument, SIZE_OF_SPACE, &nbytes);

	if (r < 0)
		return r;
	if (nbytes == 0)
		return fail(-EINVAL, "%s: '%s' is nothing to work with: give a size above 0",
			    spelling, argument);
	*(uint64_t *)member_of(spec, target) = nbytes;
	return 0;
}

int option_take_nbytes(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t nbytes;
	const int r =
		size_parse_option(option_spell(spec, spelling), argument, SIZE_OF_DATA, &nbytes);

	if (r < 0)
		return r;
	if (nbytes < spec->least || (spec->most && nbytes > spec->most))
		return fail(-EINVAL, "%s: '%s' is not a size from %" PRIu64 " to %" PRIu64 " bytes",
			    spelling, argument, spec->least, spec->most);
	*(uint64_t *)member_of(spec, target) = nbytes;
	return 0;
}

int option_take_count(const struct option_spec *spec, const char *argument, void *target)
{
	const size_t n_digits = strspn(argument, "0123456789");
	const uint64_t least = spec->least ? spec->least : 1;
	const uint64_t most = spec->most ? spec->most : UINT_MAX;
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t n = 0;

	for (const char *digit = argument; *digit && n <= most; digit++)
		n = n * 10 + (uint64_t)(*digit - '0');
	if (!n_digits || argument[n_digits] || n < least || n > most)
		return fail(-EINVAL, "%s: '%s' is not a number from %" PRIu64 " to %" PRIu64,
			    option_spell(spec, spelling), argument, least, most);
	*(unsigned *)member_of(spec, target) = (unsigned)n;
	return 0;
}

int option_take_number(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];
	uint64_t n = 0;
	bool fits = *argument != '\0';

	for (const char *digit = argument; *digit && fits; digit++)
		fits = *digit >= '0' && *digit <= '9' && !__builtin_mul_overflow(n, 10, &n) &&
		       !__builtin_add_overflow(n, (uint64_t)(*digit - '0'), &n);
	if (!fits)
		return fail(-EINVAL, "%s: '%s' is not a number from 0 to 2^64 - 1",
			    option_spell(spec, spelling), argument);
	*(uint64_t *)member_of(spec, target) = n;
	return 0;
}
