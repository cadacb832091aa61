/*
 * parse_options - command lines described by a table (see parse_options.h)
 */
#include "tools/cli/parse_options.h"

#include <assert.h>
#include <errno.h>

#include "src/base/diagnostics.h"

static const char *get_table_word(const void *context, unsigned i, unsigned n, char *text)
{
	const struct option_table *table = context;

	return option_word(&table->specs[i], n, text);
}

void option_table_list(const struct option_table *table, struct option_list *ret_options)
{
	assert(table->n_specs <= OPTION_LIST_MAX);
	ret_options->n = table->n_specs;
	ret_options->get_word = get_table_word;
	ret_options->context = table;
	for (unsigned i = 0; i < table->n_specs; i++) {
		const struct option_spec *row = &table->specs[i];

		ret_options->options[i] =
			(struct gsort_option){ .name = row->name,
					       .argument = row->argument,
					       .default_value = row->default_value,
					       .help = row->help,
					       .section = row->section,
					       .letter = row->letter,
					       .repeatable = row->repeats };
	}
}

/* What takes the words. */
struct table_option_target {
	const struct option_table *table;
	struct option_arguments arguments;
	void *target;
};

static int set_table_option(void *context, unsigned i, const char *value)
{
	struct table_option_target *target_state = context;

	return option_set(target_state->table, &target_state->table->specs[i], value,
			  &target_state->arguments, target_state->target);
}

int option_table_parse(const struct option_table *table,
		       const struct unsupported_option *unsupported, int argc, char **argv,
		       void *target, struct parsed_options *ret_parsed)
{
	struct table_option_target target_state = { .table = table, .target = target };
	struct option_list options;
	struct parsed_command_line parsed;
	int r;

	option_table_list(table, &options);
	r = option_parse(&options, unsupported, argc, argv, set_table_option, &target_state,
			 &parsed);
	if (r < 0 && *parsed.error)
		return fail(r, "%s", parsed.error);
	if (r == 0)
		r = option_check_conflicts(table, &target_state.arguments);
	if (r != 0)
		return r;
	*ret_parsed = (struct parsed_options){ .operands = parsed.operands,
					       .n_operands = parsed.n_operands,
					       .present = target_state.arguments.present };
	return 0;
}
