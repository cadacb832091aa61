/*
 * api_options - the options, for programs that have them as theirs (see include/gsort.h)
 */
#include <errno.h>
#include <string.h>

#include "src/base/text.h"
#include "src/lib/lib_internal.h"

_Static_assert((int)GSORT_WORD_NBYTES == (int)OPTION_WORD_NBYTES, "room for a word");

/* The i-th that there is for who sorts alone, or not; NULL: there are no more. */
static const struct option_spec *option_at(unsigned i, bool single_process)
{
	for (unsigned k = 0; k < options_table.n_specs; k++)
		if (!(single_process && options_table.specs[k].mpi_support == OPTION_MPI_ONLY) &&
		    i-- == 0)
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
		.default_value = row->default_value,
		.help = row->help,
		.section = row->section,
		.letter = row->letter,
		.repeatable = row->repeats,
		.cli_only = row->cli_only,
	};
	copy_struct_prefix(ret_option, size, &option, sizeof option);
	return 0;
}

int gsort_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return get_option(option_at(i, true), ret_option, size);
}

int api_distributed_get_option(unsigned i, struct gsort_option *ret_option, size_t size)
{
	return get_option(option_at(i, false), ret_option, size);
}

const char *gsort_get_option_word(unsigned i, unsigned n, char *text)
{
	const struct option_spec *row = option_at(i, true);

	return row && text ? option_word(row, n, text) : NULL;
}

const char *api_distributed_get_word(unsigned i, unsigned n, char *text)
{
	return option_word(option_at(i, false), n, text);
}

/* What only several ranks know is unknown to who is alone. NULL: it is unknown, or no name. */
static const struct option_spec *find_known_option(const struct gsort *sort, const char *name)
{
	const struct option_spec *row = name ? option_find(&options_table, name) : NULL;

	return row && row->mpi_support == OPTION_MPI_ONLY && !sort->comm ? NULL : row;
}

static int check_value(const struct option_spec *row, const char *value)
{
	char spelling[OPTION_SPELLING_NBYTES];

	option_format_name(row, spelling);
	if (row->argument && !row->default_value && !value)
		return fail(-EINVAL, "%s needs a value, %s", spelling, row->argument);
	if (!row->argument && value)
		return fail(-EINVAL, "%s takes no value: '%s'", spelling, value);
	return 0;
}

/* Words of the library's functions, and the options that they set. */
static const char *find_synonym(const char *name)
{
	static const char *const synonyms[][2] = { { "memory", "buffer-size" },
						   { "threads", "parallel" },
						   { "descending", "reverse" },
						   { "output-path", "output" } };

	for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++)
		if (strcmp(synonyms[i][0], name) == 0)
			return synonyms[i][1];
	return NULL;
}

/* What this sort can be told by gsort_set(), or with `cli_only` by gsort_set_from_cli(). */
static int refuse_unknown(const struct gsort *sort, const char *name, bool cli_only)
{
	const char *names[OPTION_MAX_ROWS], *nearest;
	unsigned n = 0;

	for (unsigned i = 0; i < options_table.n_specs; i++) {
		const struct option_spec *row = &options_table.specs[i];

		if (find_known_option(sort, row->name) && (cli_only || !row->cli_only))
			names[n++] = row->name;
	}
	nearest = find_synonym(name);
	if (!nearest)
		nearest = suggest_word(name, strlen(name), names, n);
	return nearest ? fail(-EINVAL, "unknown option '%s': did you mean %s?", name, nearest) :
			 fail(-EINVAL, "unknown option '%s'", name);
}

static int check_settable(const struct gsort *sort, const struct option_spec *row, const char *name,
			  const char *value, bool cli_only)
{
	char spelling[OPTION_SPELLING_NBYTES];
	const int r = api_check_not_started(sort, row ? option_format_name(row, spelling) : name);

	if (r < 0)
		return r;
	return row ? check_value(row, value) : refuse_unknown(sort, name, cli_only);
}

/* What is of the program only, and ends its command line (--help), has nothing more to be done. */
static int store_option(struct gsort *sort, const struct option_spec *row, const char *value)
{
	const char *copy = NULL;
	int r = 0;

	if (value || row->default_value)
		r = api_copy_string(sort, value ? value : row->default_value, &copy);
	if (r == 0)
		r = option_set(&options_table, row, copy, &sort->arguments, &sort->options);
	return r < 0 ? r : 0;
}

static int set_library_option(struct gsort *sort, const char *name, const char *value)
{
	const struct option_spec *row = find_known_option(sort, name);
	char spelling[OPTION_SPELLING_NBYTES];
	int r = api_check_pointer(name, "the name of an option");

	if (r == 0 && row && row->cli_only)
		r = fail(-ENOTSUP, "%s: is of the program, and not of the library",
			 option_format_name(row, spelling));
	if (r == 0)
		r = check_settable(sort, row, name, value, false);
	return r < 0 ? r : store_option(sort, row, value);
}

int gsort_set(struct gsort *sort, const char *name, const char *value)
{
	struct diagnostics *saved;

	if (!api_begin_call(sort, &saved))
		return -EINVAL;
	return api_end_call(saved, set_library_option(sort, name, value));
}

static int set_any_option(struct gsort *sort, const char *name, const char *value)
{
	const struct option_spec *row = find_known_option(sort, name);
	int r = api_check_pointer(name, "the name of an option");

	if (r == 0)
		r = check_settable(sort, row, name, value, true);
	return r < 0 ? r : store_option(sort, row, value);
}

int gsort_set_from_cli(struct gsort *sort, const char *name, const char *value)
{
	struct diagnostics *before;

	if (!api_begin_call(sort, &before))
		return -EINVAL;
	return api_end_call(before, set_any_option(sort, name, value));
}

const char *gsort_get_set(const struct gsort *sort, const char *name)
{
	const struct option_spec *row = sort ? find_known_option(sort, name) : NULL;
	unsigned i;

	if (!row)
		return NULL;
	i = (unsigned)(row - options_table.specs);
	if (!(sort->arguments.present >> i & 1))
		return NULL;
	return sort->arguments.values[i] ? sort->arguments.values[i] : "";
}
