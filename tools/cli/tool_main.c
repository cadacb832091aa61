/*
 * tool_main.c - command line, messages and process of the tools (see tool_main.h)
 */
#include "tools/cli/tool_main.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/base/text.h"
#include "src/cli/process_setup.h"
#include "src/lib/process_hooks.h"

/* --- Messages --- */

static struct {
	struct diagnostics messages;
	const char *program;
	char line[QUOTED_NBYTES(MESSAGE_NBYTES)];
} printer;

static void print_diagnostic(void *context, const struct message *message)
{
	(void)context;
	quote_text(message->text, printer.line, sizeof printer.line);
	if (message->kind == MESSAGE_DEBUG)
		fprintf(stderr, "%s\n", printer.line);
	else
		fprintf(stderr, "%s: %s%s\n", printer.program,
			message->kind == MESSAGE_WARNING ? "warning: " : "", printer.line);
}

void print_diagnostics_as(const char *program)
{
	printer.program = program;
	diagnostics_init(&printer.messages, print_diagnostic, NULL);
	diagnostics_push(&printer.messages);
}

/* --- Command line --- */

static const char *get_table_word(const void *context, unsigned i, unsigned n, char *text)
{
	const struct option_table *table = context;

	return option_word(&table->specs[i], n, text);
}

static void list_table(const struct option_table *table, struct option_list *ret_options)
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

struct table_target {
	const struct option_table *table;
	struct option_arguments arguments;
	void *target;
};

static int set_table_option(void *context, unsigned i, const char *value)
{
	struct table_target *state = context;

	return option_set(state->table, &state->table->specs[i], value, &state->arguments,
			  state->target);
}

int option_table_parse(const struct option_table *table,
		       const struct unsupported_option *unsupported, int argc, char **argv,
		       void *target, struct parsed_options *ret_parsed)
{
	struct table_target state = { .table = table, .target = target };
	struct option_list options;
	struct parsed_command_line parsed;
	int r;

	list_table(table, &options);
	r = option_parse(&options, unsupported, argc, argv, set_table_option, &state, &parsed);
	if (r < 0 && *parsed.error)
		return fail(r, "%s", parsed.error);
	if (r == 0)
		r = option_check_conflicts(table, &state.arguments);
	if (r != 0)
		return r;
	*ret_parsed = (struct parsed_options){ .arguments = state.arguments,
					       .operands = parsed.operands,
					       .n_operands = parsed.n_operands };
	return 0;
}

/* Answer an option that stopped the parsing. */
static void print_builtin(const struct tool *tool, int result)
{
	struct option_list options;

	list_table(&tool->options, &options);
	if (result == BUILTIN_OPTION_HELP) {
		printf("Usage: %s\n", tool->usage);
		option_print_help(&options, stdout);
		if (tool->notes)
			printf("\n%s\n", tool->notes);
	} else if (result == BUILTIN_OPTION_VERSION) {
		printf("%s (gsort) %s\n", tool->name, GSORT_VERSION);
	} else {
		option_print_completion(option_shell_name(result), tool->name, &options, stdout);
	}
}

int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct parsed_options *ret_parsed)
{
	int r;

	print_diagnostics_as(tool->name);
	r = process_setup();
	if (r < 0)
		return fail(r, "cannot handle signals: %m");
	r = option_table_parse(&tool->options, NULL, argc, argv, target, ret_parsed);
	if (r <= 0)
		return r;
	print_builtin(tool, r);
	if (fflush(stdout) != 0)
		return fail(-errno, "standard output: %m");
	return 1;
}
