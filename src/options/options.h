/*
 * options.h - all options of gsort
 *
 * The table fills a struct sort_spec directly; what the engine does not need stands beside it. The
 * command line and gsort_set() of the library use the same table.
 *
 *	rows of options_table -> struct options -> options_finalize() -> options.spec -> engine
 *
 * Values that depend on the machine (memory, threads) stay 0: the plan chooses them.
 */
#pragma once

#include "src/cost/estimate.h"
#include "src/options/option_spec.h"
#include "src/options/record_options.h"
#include "src/plan/sort_spec.h"
#include "src/report/reports.h"

enum operation_mode {
	MODE_SORT,
	MODE_MERGE,       /* -m */
	MODE_CHECK,       /* -c */
	MODE_CHECK_QUIET, /* -C */
};

enum progress_option {
	PROGRESS_OPTION_AUTO,
	PROGRESS_OPTION_ALWAYS,
	PROGRESS_OPTION_NEVER,
};

enum explain_format {
	EXPLAIN_NONE,
	EXPLAIN_TEXT,
	EXPLAIN_JSON,
};

struct options {
	/*
	 * Members about records, the mode and standard output are complete after
	 * options_finalize(). `inputs` and `temp_dirs` belong to this struct. The front end
	 * sets the members about endpoints, the process and ranks.
	 */
	struct sort_spec spec;
	struct record_options record;
	enum operation_mode mode;
	const char *output_label;     /* name of an open output in messages; NULL: none */
	enum explain_format explain;  /* print the plan and exit */
	uint64_t assumed_nbytes;      /* --assume-size; 0: none */
	struct rank_rates rank_rates; /* --assume-rates; 0: unknown */
	bool debug;
	bool stats;
	enum progress_option progress;       /* the program implements it */
	const char *report_paths[N_REPORTS]; /* NULL: none */
	uint64_t timeout_s;                  /* of a silent rank; 0: never */
	const char *files0_path;             /* --files0-from; NULL: none */
	char *files0_text;                   /* the names in that file; NULL: none */

	/* Only of lines (src/lines/line_options.h). */
	struct line_keys *line_keys; /* NULL: records */
	bool stable;                 /* no last-resort comparison */
	uint64_t n_header_lines;
};

/* What a command line without options means. */
#define OPTIONS_DEFAULTS                                                                           \
	{                                                                                          \
		.spec = SORT_SPEC_DEFAULTS, .timeout_s = 60                                        \
	}

/* Bounds that catch typing errors; a timeout is at most 11 days. */
enum { OPTION_MAX_THREADS = 1024, OPTION_MAX_TIMEOUT_S = 1000000 };

/* Words that options of records and of lines accept. */
extern const struct option_choice option_backends[], option_check_modes[], option_explain_formats[],
	option_progress_modes[], option_shared_memory_modes[];

/* parse() functions of --shard, into a struct options, and of --zstd. */
int options_parse_shard(const struct option_spec *spec, const char *argument, void *target);
int options_parse_zstd(const struct option_spec *spec, const char *argument, void *target);

/*
 * Unless memory and CPUs were given, use half of the memory and all CPUs of the host, divided among
 * its ranks.
 */
void options_default_resources(struct sort_spec *spec);

/* Rows fill a struct options and point to the strings of the arguments. */
extern const struct option_table options_table;

/* Return whether the operation is -c or -C. */
bool options_is_check(const struct options *options);

/* Return the output path (-o); NULL: the output is an open descriptor or stream. */
const char *options_output_path(const struct options *options);

/*
 * Append a directory for temporary files, or, without any, that of the checkpoint or the default.
 * The paths must outlive the options. Returns 0 or -ENOMEM (reported).
 */
int options_add_temp_dir(struct options *options, const char *path);
int options_default_temp_dir(struct options *options, const char *default_path);

/* Append an input. `path` must outlive the options. Returns 0 or -ENOMEM (reported). */
int options_add_input(struct options *options, const char *path);

/*
 * Complete the options after the last row and input, and refuse values that exclude each other.
 * default_temp_dir is used without -T and --checkpoint. Returns 0 or a negative errno; the message
 * names the option.
 */
int options_finalize(struct options *options, const char *default_temp_dir);

/* Free what rows, options_add_input() and options_finalize() allocated. A zeroed struct is fine. */
void options_free(struct options *options);
