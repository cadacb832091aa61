/*
 * options - all that can be asked of gsort, by name
 *
 * docs/manual/gsort.md describes every option. gsort_set() and gsort_set_from_cli() of the library
 * take them, the latter for the command line. What is asked for is decided here and nowhere else:
 * after options_finalize() the struct is complete, consistent and read-only. The defaults that
 * depend on the machine (memory, threads) are left at 0 and filled in by the plan.
 */
#pragma once

#include "src/cost/estimate.h"
#include "src/options/option_spec.h"
#include "src/options/record_options.h"
#include "src/plan/sort_spec.h"

enum operation_mode {
	MODE_SORT,
	MODE_MERGE,       /* -m: the inputs are sorted already */
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
	enum operation_mode mode;
	const char **inputs;      /* n_inputs, in the order of ties; "-" is standard input */
	size_t n_inputs;          /* at least 1; 1 when checking */
	const char *output_path;  /* NULL: standard output, or what a front end gives: */
	const char *output_label; /* what messages call that; NULL: standard output */

	struct record_options record; /* what a record is, and its keys */
	bool unique;                  /* -u: of equal records, keep the first */

	uint64_t skip_nbytes; /* at the beginning of each input, before its records */
	enum partial partial;
	enum format_mode format;
	uint64_t limit; /* write at most so many records; SORT_SPEC_UNLIMITED: all */
	bool count;     /* before each record, of how many it is the first; only with unique */
	bool keys_only; /* write keys, */
	bool argsort;   /* or positions; not both, and not with count */

	int zstd_level; /* of the output; 0: it is not compressed */

	uint64_t buffer_nbytes;        /* -S; 0: half of what is available */
	uint64_t device_memory_nbytes; /* of each GPU; 0: what is free less a tenth */
	uint64_t temp_limit_nbytes;    /* SORT_SPEC_UNLIMITED: none */
	const char **temp_dirs;        /* n_temp_dirs, at least 1: -T, else $TMPDIR, else /tmp */
	size_t n_temp_dirs;
	const char *checkpoint_path;           /* then the only one of temp_dirs; NULL: none */
	struct compression_params compression; /* of spilled runs */
	unsigned n_threads;                    /* 0: all that this process may use */
	unsigned shard, n_shards;              /* of a merge, the one of so many; 0: all */
	unsigned n_part_files; /* that the output is divided into, and a list; 0: it is one file */
	int split_at_keys;     /* no key is in two of them */
	unsigned n_partitions; /* of the output, merged side by side; 0: as the plan likes */
	unsigned batch_size;   /* merge at most so many runs at once; 0: as the plan likes */
	enum backend_choice backend;
	unsigned *gpus; /* n_gpus device numbers; none: as many as pay */
	unsigned n_gpus;
	bool all_gpus; /* and none by number */

	enum explain_format explain; /* print the plan and stop */
	uint64_t assumed_nbytes; /* of an input whose size is unknown; only with explain; 0: none */
	unsigned n_ranks;        /* that are planned for; only with explain; 0: those there are */
	struct rank_rates rank_rates; /* of each; 0: not said */
	bool verify;                  /* read the output back; only with output_path */
	bool fsync;                   /* only with output_path */
	bool debug;
	bool stats;
	int progress;                /* enum progress_option; the program implements it */
	const char *stats_json_path; /* NULL: none */
	const char *trace_path;      /* NULL: none */
	const char *report_path;     /* NULL: none */
	int no_shared_memory;        /* what ranks exchange: sort_spec.h */
	uint64_t timeout_s;          /* a rank that is silent for so long is given up; 0: never */

	/* Taken apart when the sort begins; nobody else reads these. */
	const char *files0_path;
	char *files0_text; /* what `inputs` points into when the names came from a file */
};

/* Nothing is asked for: what the rows of the table add to. */
#define OPTIONS_DEFAULTS                                                                           \
	{                                                                                          \
		.temp_limit_nbytes = SORT_SPEC_UNLIMITED, .limit = SORT_SPEC_UNLIMITED,            \
		.timeout_s = 60                                                                    \
	}

/* Its rows fill in a struct options, whose strings are those of the arguments. */
extern const struct option_table options_table;

/* Free what rows and options_finalize() allocated; a zeroed struct is fine. */
void options_free(struct options *options);

/*
 * What is to be sorted, and how (sort_spec.h); it borrows what the options point to. What is of
 * the process (spec.io) is for the front end to add.
 */
struct sort_spec options_spec(const struct options *options);
