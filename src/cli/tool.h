/*
 * tool - what the command lines of the other programs (tools/) have in common
 */
#pragma once

#include "src/cli/completion.h"
#include "src/cli/option_table.h"
#include "src/cli/record_options.h"

struct tool {
	const char *name;
	const char *usage; /* what --help prints before the options */
	const char *notes; /* and after them, NULL if nothing */
	struct option_table options;
};

/*
 * Parse the command line into the struct at `target`; --help and --version are answered at once.
 * Returns 0 and *ret_operands, or 1 when all is done, or a negative errno after a message.
 */
int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct option_result *ret_operands);

/* Rows of a table, at its end. */
#define TOOL_ROW_COMPLETION                                                                        \
	{                                                                                          \
		COMPLETION_ROW, .take = tool_take_completion,                                      \
	}
#define TOOL_ROW_HELP                                                                              \
	{                                                                                          \
		.name = "help", .help = "print this help", .take = tool_take_help,                 \
	}
#define TOOL_ROW_VERSION                                                                           \
	{                                                                                          \
		.name = "version", .help = "print the version", .take = tool_take_version,         \
	}

int tool_take_completion(const struct option_spec *spec, const char *argument, void *target);
int tool_take_help(const struct option_spec *spec, const char *argument, void *target);
int tool_take_version(const struct option_spec *spec, const char *argument, void *target);

/*
 * Settle the options and make the layout of the records. Returns 0, or a negative errno after a
 * message. The layout owns memory: layout_free().
 */
int tool_make_layout(struct record_options *record, struct layout *ret_layout);
