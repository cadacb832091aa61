/*
 * tool - what the command lines of the tools have in common (see tool.h)
 */
#include "tools/tool/tool.h"

#include <errno.h>

#include "config.h"
#include "src/base/messages.h"
#include "src/cli/completion.h"
#include "src/cli/messages_print.h"
#include "src/cli/process.h"

static void print_help(const struct tool *tool)
{
	printf("Usage: %s\n", tool->usage);
	option_table_help(&tool->options, stdout);
	if (tool->notes)
		printf("\n%s\n", tool->notes);
}

int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct option_result *ret_operands)
{
	int r;

	messages_print_as(tool->name);
	process_lend();
	r = option_table_parse(&tool->options, argc, argv, target, ret_operands);
	if (r <= 0)
		return r;
	if (r == ASKED_FOR_HELP)
		print_help(tool);
	else if (r == ASKED_FOR_VERSION)
		printf("%s (gsort) %s\n", tool->name, GSORT_VERSION);
	else
		completion_print((enum shell)(r - ASKED_FOR_COMPLETION), tool->name, &tool->options,
				 stdout);
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
	return process_calls();
}
