/*
 * bench_options - what is asked of a benchmark: what the command lines have in common
 *
 * The options of a benchmark begin with a struct bench_common_options, and its table has those of
 * the rows below that it can use.
 */
#pragma once

#include <stdio.h>

#include "tools/cli/tool_main.h"

enum { BENCH_MAX_REPEATS = 99, BENCH_MAX_THREADS = 64 };

struct bench_common_options {
	uint64_t nbytes; /* of the data; of each thread's, if there are threads */
	unsigned n_repeats;
	unsigned n_threads;
	const char *dir;       /* where files go */
	const char *json_path; /* NULL: none */
};

/* Where files go if nothing is said. */
const char *bench_default_dir(void);

/*
 * Parse the command line, which has no operands, into the struct element_at `target`, which
 * begins with a struct bench_common_options; --help and --version are answered at once. Returns
 * 0, or 1 when all is done, or a negative errno after a message.
 */
int bench_parse_options(const struct tool *tool, int argc, char **argv, void *target);

/*
 * Measures, and writes all times to the stream as well, unless that is NULL. 0, or a negative errno
 * after a message.
 */
typedef int bench_measure_fn(void *context, FILE *json);

/* Call it when the file for that, if one is wanted, is known to be writable. The same. */
int bench_measure(const struct bench_common_options *options, bench_measure_fn *measure,
		  void *context);

/* clang-format off */
#define BENCH_ROW_SIZE(HELP) \
	{ .name = "size", .argument = "SIZE", .help = HELP, .parse = option_parse_size, \
	  OPTION_MEMBER(struct bench_common_options, nbytes) }
#define BENCH_ROW_REPEAT(HELP) \
	{ .name = "repeat", .argument = "N", .help = HELP, .parse = option_parse_count, \
	  OPTION_MEMBER(struct bench_common_options, n_repeats) }
#define BENCH_ROW_THREADS \
	{ .name = "threads", .argument = "N", .help = "that work at once (default 2)", \
	  .parse = option_parse_count, OPTION_MEMBER(struct bench_common_options, n_threads) }
#define BENCH_ROW_DIR(HELP) \
	{ .name = "dir", .argument = "DIR", .help = HELP, .parse = option_parse_text, \
	  OPTION_MEMBER(struct bench_common_options, dir) }
#define BENCH_ROW_JSON \
	{ .name = "json", .argument = "FILE", .help = "write all times there as well", \
	  .parse = option_parse_text, OPTION_MEMBER(struct bench_common_options, json_path) }
/* clang-format on */
