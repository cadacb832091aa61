/*
 * table - the options, for programs that have them as theirs (see include/gsort.h)
 */
#include <errno.h>
#include <string.h>

#include "src/lib/inside.h"

_Static_assert((int)GSORT_WORD_NBYTES == (int)OPTION_WORD_NBYTES, "room for a word");

int gsort_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	const struct option_spec *row = &options_table.specs[i];
	struct gsort_option option;

	if (!ret_option)
		return -EINVAL;
	if (i >= options_table.n_specs)
		return -ENOENT;
	option = (struct gsort_option){
		.name = row->name,
		.argument = row->argument,
		.otherwise = row->otherwise,
		.help = row->help,
		.section = row->section,
		.letter = row->letter,
		.repeats = row->repeats,
		.of_program = row->of_program,
	};
	give_struct(ret_option, size, &option, sizeof option);
	return 0;
}

const char *gsort_get_option_word(unsigned i, unsigned n, char *text)
{
	return i < options_table.n_specs && text ? option_word(&options_table.specs[i], n, text) :
						   NULL;
}

const char *gsort_describe_types(void)
{
	return RECORD_OPTIONS_TYPES;
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

static int check_row(const struct gsort *sort, const struct option_spec *row, const char *name,
		     const char *value)
{
	char spelling[OPTION_SPELLING_NBYTES];
	const int r = check_early(sort, row ? option_spell(row, spelling) : name);

	if (r < 0)
		return r;
	return row ? check_value(row, value) : fail(-EINVAL, "unknown option '%s'", name);
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
	const struct option_spec *row = name ? option_find(&options_table, name) : NULL;
	char spelling[OPTION_SPELLING_NBYTES];
	int r = check_pointer(name, "the name of an option");

	if (r == 0 && row && row->of_program)
		r = fail(-ENOTSUP, "%s: is of the program, and not of the library",
			 option_spell(row, spelling));
	if (r == 0)
		r = check_row(sort, row, name, value);
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
	const struct option_spec *row = name ? option_find(&options_table, name) : NULL;
	int r = check_pointer(name, "the name of an option");

	if (r == 0)
		r = check_row(sort, row, name, value);
	return r < 0 ? r : take(sort, row, value);
}

int gsort_take(struct gsort *sort, const char *name, const char *value)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, take_any(sort, name, value));
}

const char *gsort_get_taken(const struct gsort *sort, const char *name)
{
	const struct option_spec *row = sort && name ? option_find(&options_table, name) : NULL;
	unsigned i;

	if (!row)
		return NULL;
	i = (unsigned)(row - options_table.specs);
	if (!(sort->arguments.given >> i & 1))
		return NULL;
	return sort->arguments.first[i] ? sort->arguments.first[i] : "";
}

const char *gsort_printable(const char *text, char *line, size_t nbytes)
{
	return text && line && nbytes ? legible(text, line, nbytes) : "";
}
