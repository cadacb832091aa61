/*
 * tool_main - what the command lines of the tools have in common (see tool_main.h)
 */
#include "tools/cli/tool_main.h"

#include <errno.h>

#include "config.h"
#include "src/base/diagnostics.h"
#include "src/cli/completion.h"
#include "tools/cli/print_diagnostics.h"
#include "src/cli/process_setup.h"
#include "src/lib/signal_hooks.h"

static void print_help(const struct tool *tool, const struct option_list *options)
{
	printf("Usage: %s\n", tool->usage);
	option_print_help(options, stdout);
	if (tool->notes)
		printf("\n%s\n", tool->notes);
}

int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct option_result *ret_operands)
{
	struct option_list options;
	int r;

	messages_print_as(tool->name);
	r = process_lend();
	if (r < 0)
		return fail(r, "cannot handle signals: %m");
	r = table_parse(&tool->options, NULL, argc, argv, target, ret_operands);
	if (r <= 0)
		return r;
	table_list(&tool->options, &options);
	if (r == ASKED_FOR_HELP)
		print_help(tool, &options);
	else if (r == ASKED_FOR_VERSION)
		printf("%s (gsort) %s\n", tool->name, GSORT_VERSION);
	else
		completion_print(answers_shell(r), tool->name, &options, stdout);
	if (fflush(stdout) != 0)
		return fail(-errno, "standard output: %m");
	return 1;
}

int tool_make_layout(struct record_options *record, struct layout *ret_layout)
{
	const int r = record_options_settle(record);

	if (r < 0)
		return r;
	if (record->said == RECORDS_CHOICES)
		return record_options_refuse_choices(record);
	return layout_make(&(struct layout_request){ .record_nbytes = record->record_nbytes,
						     .keys = record->keys,
						     .n_keys = record->n_keys },
			   ret_layout);
}

const struct syscalls *tool_calls(void)
{
	return process_calls(process_lent());
}
