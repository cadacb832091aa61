/*
 * bench_options - what is asked of a benchmark: what the command lines have in common
 *
 * The options of a benchmark begin with a struct bench_request, and its table has those of the rows
 * below that it can use.
 */
#pragma once

#include <stdio.h>

#include "tools/cli/tool_main.h"

enum { BENCH_MOST_REPEATS = 99, BENCH_MOST_THREADS = 64 };

struct bench_request {
	uint64_t nbytes; /* of the data; of each thread's, if there are threads */
	unsigned n_repeats;
	unsigned n_threads;
	const char *dir;       /* where files go */
	const char *json_path; /* NULL: none */
};

/* Where files go if nothing is said. */
const char *bench_default_dir(void);

/*
 * Parse the command line, which has no operands, into the struct at `target`, which begins with a
 * struct bench_request; --help and --version are answered at once. Returns 0, or 1 when all is
 * done, or a negative errno after a message.
 */
int bench_request_parse(const struct tool *tool, int argc, char **argv, void *target);

/*
 * Measures, and writes all times to the stream as well, unless that is NULL. 0, or a negative errno
 * after a message.
 */
typedef int bench_measure_fn(void *context, FILE *json);

/* Call it when the file for that, if one is wanted, is known to be writable. The same. */
int bench_measure(const struct bench_request *request, bench_measure_fn *measure, void *context);

/* clang-format off */
#define BENCH_ROW_SIZE(HELP) \
	{ .name = "size", .argument = "SIZE", .help = HELP, .take = option_take_size, \
	  OPTION_MEMBER(struct bench_request, nbytes) }
#define BENCH_ROW_REPEAT(HELP) \
	{ .name = "repeat", .argument = "N", .help = HELP, .take = option_take_count, \
	  OPTION_MEMBER(struct bench_request, n_repeats) }
#define BENCH_ROW_THREADS \
	{ .name = "threads", .argument = "N", .help = "that work at once (default 2)", \
	  .take = option_take_count, OPTION_MEMBER(struct bench_request, n_threads) }
#define BENCH_ROW_DIR(HELP) \
	{ .name = "dir", .argument = "DIR", .help = HELP, .take = option_take_text, \
	  OPTION_MEMBER(struct bench_request, dir) }
#define BENCH_ROW_JSON \
	{ .name = "json", .argument = "FILE", .help = "write all times there as well", \
	  .take = option_take_text, OPTION_MEMBER(struct bench_request, json_path) }
/* clang-format on */
