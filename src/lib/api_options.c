/*
 * api_options - the options, for programs that have them as theirs (see include/gsort.h)
 */
#include <errno.h>
#include <string.h>

#include "src/base/suggest.h"
#include "src/lib/lib_internal.h"

_Static_assert((int)GSORT_WORD_NBYTES == (int)OPTION_WORD_NBYTES, "room for a word");

/* The i-th that there is for who sorts alone, or not; NULL: there are no more. */
static const struct option_spec *row_at(unsigned i, bool is_alone)
{
	for (unsigned k = 0; k < options_table.n_specs; k++)
		if (!(is_alone && options_table.specs[k].company == COMPANY_ONLY) && i-- == 0)
			return &options_table.specs[k];
	return NULL;
}

static int get_option(const struct option_spec *row, struct gsort_option *ret_option, size_t size)
{
	struct gsort_option option;

	if (!ret_option)
		return -EINVAL;
	if (!row)
		return -ENOENT;
	option = (struct gsort_option){
		.name = row->name,
		.argument = row->argument,
		.default_value = row->otherwise,
		.help = row->help,
		.section = row->section,
		.letter = row->letter,
		.repeatable = row->repeats,
		.cli_only = row->of_program,
	};
	give_struct(ret_option, size, &option, sizeof option);
	return 0;
}

int gsort_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return get_option(row_at(i, true), ret_option, size);
}

int company_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return get_option(row_at(i, false), ret_option, size);
}

const char *gsort_get_option_word(unsigned i, unsigned n, char *text)
{
	const struct option_spec *row = row_at(i, true);

	return row && text ? option_word(row, n, text) : NULL;
}

const char *company_get_option_word(unsigned i, unsigned n, char *text)
{
	return option_word(row_at(i, false), n, text);
}

const char *gsort_describe_types(void)
{
	return RECORD_OPTIONS_TYPES;
}

/* What only several ranks know is unknown to who is alone. NULL: it is unknown, or no name. */
static const struct option_spec *find_row(const struct gsort *sort, const char *name)
{
	const struct option_spec *row = name ? option_find(&options_table, name) : NULL;

	return row && row->company == COMPANY_ONLY && !sort->ranks ? NULL : row;
}

static int check_value(const struct option_spec *row, const char *value)
{
	char spelling[OPTION_SPELLING_NBYTES];

	option_spell(row, spelling);
	if (row->argument && !row->otherwise && !value)
		return fail(-EINVAL, "%s needs a value, %s", spelling, row->argument);
	if (!row->argument && value)
		return fail(-EINVAL, "%s takes no value: '%s'", spelling, value);
	return 0;
}

/* What this sort can be told by gsort_set(), or with `of_program` by gsort_set_from_cli(). */
static int refuse_unknown(const struct gsort *sort, const char *name, bool of_program)
{
	const char *names[OPTION_MOST_ROWS], *nearest;
	unsigned n = 0;

	for (unsigned i = 0; i < options_table.n_specs; i++) {
		const struct option_spec *row = &options_table.specs[i];

		if (find_row(sort, row->name) && (of_program || !row->of_program))
			names[n++] = row->name;
	}
	nearest = nearest_word(name, strlen(name), names, n);
	return nearest ? fail(-EINVAL, "unknown option '%s': did you mean %s?", name, nearest) :
			 fail(-EINVAL, "unknown option '%s'", name);
}

static int check_row(const struct gsort *sort, const struct option_spec *row, const char *name,
		     const char *value, bool of_program)
{
	char spelling[OPTION_SPELLING_NBYTES];
	const int r = check_early(sort, row ? option_spell(row, spelling) : name);

	if (r < 0)
		return r;
	return row ? check_value(row, value) : refuse_unknown(sort, name, of_program);
}

/* What is of the program only, and ends its command line (--help), has nothing more to be done. */
static int take(struct gsort *sort, const struct option_spec *row, const char *value)
{
	const char *kept = NULL;
	int r = 0;

	if (value || row->otherwise)
		r = keep_text(sort, value ? value : row->otherwise, &kept);
	if (r == 0)
		r = option_take(&options_table, row, kept, &sort->arguments, &sort->options);
	return r < 0 ? r : 0;
}

static int set(struct gsort *sort, const char *name, const char *value)
{
	const struct option_spec *row = find_row(sort, name);
	char spelling[OPTION_SPELLING_NBYTES];
	int r = check_pointer(name, "the name of an option");

	if (r == 0 && row && row->of_program)
		r = fail(-ENOTSUP, "%s: is of the program, and not of the library",
			 option_spell(row, spelling));
	if (r == 0)
		r = check_row(sort, row, name, value, false);
	return r < 0 ? r : take(sort, row, value);
}

int gsort_set(struct gsort *sort, const char *name, const char *value)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, set(sort, name, value));
}

static int take_any(struct gsort *sort, const char *name, const char *value)
{
	const struct option_spec *row = find_row(sort, name);
	int r = check_pointer(name, "the name of an option");

	if (r == 0)
		r = check_row(sort, row, name, value, true);
	return r < 0 ? r : take(sort, row, value);
}

int gsort_set_from_cli(struct gsort *sort, const char *name, const char *value)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, take_any(sort, name, value));
}

const char *gsort_get_set(const struct gsort *sort, const char *name)
{
	const struct option_spec *row = sort ? find_row(sort, name) : NULL;
	unsigned i;

	if (!row)
		return NULL;
	i = (unsigned)(row - options_table.specs);
	if (!(sort->arguments.given >> i & 1))
		return NULL;
	return sort->arguments.first[i] ? sort->arguments.first[i] : "";
}

const char *gsort_suggest(const char *word, size_t nbytes, const char *const *words, unsigned n)
{
	return word && words ? nearest_word(word, nbytes, words, n) : NULL;
}

const char *gsort_quote(const char *text, char *line, size_t nbytes)
{
	return text && line && nbytes ? legible(text, line, nbytes) : "";
}
