/*
 * parse_options - command lines described by a table (see parse_options.h)
 */
#include "tools/cli/parse_options.h"

#include <assert.h>
#include <errno.h>

#include "src/base/diagnostics.h"

static const char *word_of(const void *context, unsigned i, unsigned n, char *text)
{
	const struct option_table *table = context;

	return option_word(&table->specs[i], n, text);
}

void table_list(const struct option_table *table, struct option_list *ret_options)
{
	assert(table->n_specs <= OPTION_LIST_MOST);
	ret_options->n = table->n_specs;
	ret_options->word = word_of;
	ret_options->context = table;
	for (unsigned i = 0; i < table->n_specs; i++) {
		const struct option_spec *row = &table->specs[i];

		ret_options->all[i] = (struct gsort_option){ .name = row->name,
							     .argument = row->argument,
							     .default_value = row->otherwise,
							     .help = row->help,
							     .section = row->section,
							     .letter = row->letter,
							     .repeatable = row->repeats };
	}
}

/* What takes the words. */
struct taker {
	const struct option_table *table;
	struct option_arguments arguments;
	void *target;
};

static int take(void *context, unsigned i, const char *value)
{
	struct taker *taker = context;

	return option_take(taker->table, &taker->table->specs[i], value, &taker->arguments,
			   taker->target);
}

int table_parse(const struct option_table *table, const struct foreign_option *foreign, int argc,
		char **argv, void *target, struct option_result *ret_result)
{
	struct taker taker = { .table = table, .target = target };
	struct option_list options;
	struct parsed_words words;
	int r;

	table_list(table, &options);
	r = option_parse(&options, foreign, argc, argv, take, &taker, &words);
	if (r < 0 && *words.refusal)
		return fail(r, "%s", words.refusal);
	if (r == 0)
		r = option_check_conflicts(table, &taker.arguments);
	if (r != 0)
		return r;
	*ret_result = (struct option_result){ .operands = words.operands,
					      .n_operands = words.n_operands,
					      .given = taker.arguments.given };
	return 0;
}
