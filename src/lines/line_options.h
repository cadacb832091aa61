/*
 * line_options.h - the options of a sort of lines, for the command line and for the library
 *
 *	init -> set, add_input -> finish -> the parameters of line_sort.h
 *
 * Texts are not copied: they must outlive the options.
 */
#pragma once

#include <getopt.h>

#include "src/lines/line_sort.h"
#include "src/report/reports.h"

/* Options without a letter. */
enum line_option {
	OPTION_SORT = 256,
	OPTION_CHECK,
	OPTION_RANDOM_SOURCE,
	OPTION_COMPRESS_PROGRAM,
	OPTION_FILES0_FROM,
	OPTION_PARALLEL,
	OPTION_BATCH_SIZE,
	OPTION_DEBUG,
	OPTION_HELP,
	OPTION_VERSION,
	/* These, and --lines, are not of GNU sort. */
	OPTION_LINES,
	OPTION_HEADER,
	OPTION_COUNT,
	OPTION_LIMIT,
	OPTION_BACKEND,
	OPTION_DEVICE_MEMORY,
	OPTION_FORMAT,
	OPTION_TEMP_COMPRESS,
	OPTION_TEMP_LIMIT,
	OPTION_CHECKPOINT,
	OPTION_ZSTD,
	OPTION_SPLIT,
	OPTION_SPLIT_BY,
	OPTION_SHARD,
	OPTION_EXPLAIN,
	OPTION_PROGRESS,
	OPTION_STATS,
	OPTION_STATS_JSON,
	OPTION_TRACE,
	OPTION_REPORT,
	OPTION_COMPLETION,
	/* Of gsort-mpi. */
	OPTION_TIMEOUT,
	OPTION_SHARED_MEMORY,
};

/* Long names and the values of line_options_set(), for getopt_long(). */
extern const struct option line_option_names[];

enum { LINE_MAX_TEMP_DIRECTORIES = 64 };

/* What is requested. */
struct line_options {
	struct line_keys keys;
	struct line_sort_params params; /* complete after line_options_finish() */
	struct report_paths report_paths;
	bool prints_stats;
	const char *temp_directories[LINE_MAX_TEMP_DIRECTORIES];
	const char **inputs; /* params.n_inputs */
	size_t inputs_capacity;
	char **listed_names; /* n_listed_names, of the list of names */
	size_t n_listed_names;
	const char *files0_from; /* list of names; NULL: none */
	char check;              /* 'c', 'C'; 0: sort */
	bool merges;             /* -m */
	bool has_split_by;       /* --split-by was given */
	const char *explain;     /* "text", "json"; NULL: sort */
	bool accepts_ranks;      /* the program is gsort-mpi; set before line_options_set() */
};

void line_options_init(struct line_options *options);
void line_options_free(struct line_options *options);

/* Find an option by its long name or its letter; 0: unknown. */
int line_option_find(const char *name);

/* Return whether only gsort-mpi has the option. */
bool line_option_is_of_ranks(int option);

/*
 * Set an option: a letter or an enum line_option. value: NULL if it has none. Returns 0 or a
 * negative errno after a message. --help, --version and --progress are for the program.
 */
int line_options_set(struct line_options *options, int option, const char *value);

/* Add an input. Returns 0, or -ENOMEM after a message. */
int line_options_add_input(struct line_options *options, const char *path);

/*
 * All options are known: read the list of names, check combinations and set what is left open.
 * Without inputs, standard input is one. default_temp_directory: without -T. Returns 0 or a
 * negative errno after a message.
 */
int line_options_finish(struct line_options *options, const char *default_temp_directory);
