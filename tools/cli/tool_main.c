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
#include "src/lib/process_hooks.h"

static void print_tool_help(const struct tool *tool, const struct option_list *options)
{
	printf("Usage: %s\n", tool->usage);
	option_print_help(options, stdout);
	if (tool->notes)
		printf("\n%s\n", tool->notes);
}

int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct parsed_options *ret_parsed)
{
	struct option_list options;
	int r;

	print_diagnostics_as(tool->name);
	r = process_setup();
	if (r < 0)
		return fail(r, "cannot handle signals: %m");
	r = option_table_parse(&tool->options, NULL, argc, argv, target, ret_parsed);
	if (r <= 0)
		return r;
	option_table_list(&tool->options, &options);
	if (r == BUILTIN_OPTION_HELP)
		print_tool_help(tool, &options);
	else if (r == BUILTIN_OPTION_VERSION)
		printf("%s (gsort) %s\n", tool->name, GSORT_VERSION);
	else
		completion_print(builtin_options_shell_name(r), tool->name, &options, stdout);
	if (fflush(stdout) != 0)
		return fail(-errno, "standard output: %m");
	return 1;
}

int tool_make_layout(struct record_options *record, struct layout *ret_layout)
{
	const int r = record_options_finalize(record);

	if (r < 0)
		return r;
	if (record->spec_kind == RECORD_SPEC_REQUESTS)
		return record_options_refuse_keys(record);
	return layout_make(&(struct layout_params){ .record_nbytes = record->record_nbytes,
						    .keys = record->keys,
						    .n_keys = record->n_keys },
			   ret_layout);
}

const struct syscalls *tool_syscalls(void)
{
	return process_syscalls(process_get());
}
