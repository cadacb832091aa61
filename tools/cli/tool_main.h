/*
 * tool_main - what the command lines of the other programs (tools/) have in common
 */
#pragma once

#include "src/options/builtin_options.h"
#include "src/options/record_options.h"
#include "tools/cli/parse_options.h"

struct syscalls;

struct tool {
	const char *name;
	const char *usage; /* what --help prints before the options */
	const char *notes; /* and after them, NULL if nothing */
	struct option_table options;
};

/*
 * Parse the command line into the struct element_at `target`; --help and --version are answered
 * at once. Returns 0 and *ret_parsed, or 1 when all is done, or a negative errno after a message.
 */
int tool_parse(const struct tool *tool, int argc, char **argv, void *target,
	       struct parsed_options *ret_parsed);

/* Rows of a table, at its end. */
#define TOOL_ROW_COMPLETION                                                                        \
	{                                                                                          \
		BUILTIN_OPTIONS_ROW_COMPLETION                                                     \
	}
#define TOOL_ROW_HELP                                                                              \
	{                                                                                          \
		BUILTIN_OPTIONS_ROW_HELP, .help = "print this help and exit"                       \
	}
#define TOOL_ROW_VERSION                                                                           \
	{                                                                                          \
		BUILTIN_OPTIONS_ROW_VERSION, .help = "print the version and exit"                  \
	}

/* Through which files are written (file.h): with what tool_parse() lends of the process. */
const struct syscalls *tool_syscalls(void);

/*
 * Settle the options and make the layout of the records. Returns 0, or a negative errno after a
 * message. The layout owns memory: layout_free().
 */
int tool_make_layout(struct record_options *record, struct layout *ret_layout);
