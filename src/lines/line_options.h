/*
 * line_options.h - the options of a sort of lines, for the command line and for the library
 *
 *	init -> set, add_input -> finish -> the parameters of line_sort.h
 *
 * Texts are not copied: they must outlive the options.
 */
#pragma once

#include "src/lines/line_sort.h"
#include "src/options/options.h"

/* All options; their members are those of struct line_options. */
extern const struct option_table line_option_table;

enum { LINE_MAX_TEMP_DIRECTORIES = 64 };

/* What is requested. */
struct line_options {
	struct line_keys keys;
	struct line_sort_params params;    /* complete after line_options_finish() */
	struct option_arguments arguments; /* which options were given */
	const char *temp_directories[LINE_MAX_TEMP_DIRECTORIES];
	const char **inputs; /* params.n_inputs */
	size_t inputs_capacity;
	char check;             /* 'c', 'C'; 0: sort */
	bool merges;            /* -m */
	bool splits_by_records; /* --split-by=records, the only choice */
	enum explain_format explain;
	enum progress_option progress; /* the program implements it */
	bool accepts_ranks;            /* the program is gsort-mpi; set before line_options_set() */
};

void line_options_init(struct line_options *options);
void line_options_free(struct line_options *options);

/*
 * Set an option of the table. value: NULL if it has none. Returns 0 or a negative errno after a
 * message; or a positive number if it ends the command line (option_parse_builtin()).
 */
int line_options_set(struct line_options *options, const struct option_spec *spec,
		     const char *value);

/* Add an input. Returns 0, or -ENOMEM after a message. */
int line_options_add_input(struct line_options *options, const char *path);

/*
 * All options are known: check combinations and set what is left open. default_temp_directory:
 * without -T. Returns 0 or a negative errno after a message.
 */
int line_options_finish(struct line_options *options, const char *default_temp_directory);
