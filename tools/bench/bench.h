/*
 * bench.h - what the benchmarks of gsort-bench have in common
 *
 * Each benchmark is a command with its own options, which begin with struct bench_common_options.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/cli/tool_main.h"

/* The commands. argv[0] is the name. They print their own messages and return an exit status. */
int bench_file(int argc, char **argv);
int bench_estimate(int argc, char **argv);
int bench_io(int argc, char **argv);
int bench_kernels(int argc, char **argv); /* needs only the CUDA driver where it runs */

/* --- options --- */

enum { BENCH_MAX_REPEATS = 99 };

struct bench_common_options {
	uint64_t nbytes; /* of the data */
	unsigned n_repeats;
	const char *dir;       /* for files */
	const char *json_path; /* NULL: none */
};

/*
 * Measure, print the results, and write them to `json` unless that is NULL. options: those of the
 * command, which begin with struct bench_common_options. Returns 0 or a negative errno after a
 * message.
 */
typedef int bench_measure_fn(void *options, FILE *json);

/*
 * Run a benchmark: parse the command line, which has no operands, into the options, which hold the
 * defaults; open the JSON file, if requested; measure. Handles --help and --version. Returns an
 * exit status.
 */
int bench_run(const struct tool *tool, int argc, char **argv, struct bench_common_options *options,
	      bench_measure_fn *measure);

/* clang-format off */
#define BENCH_ROW_SIZE(HELP) \
	{ .name = "size", .argument = "SIZE", .help = HELP, .parse = option_parse_size, \
	  OPTION_MEMBER(struct bench_common_options, nbytes) }
#define BENCH_ROW_REPEAT(HELP) \
	{ .name = "repeat", .argument = "N", .help = HELP, .parse = option_parse_count, \
	  OPTION_MEMBER(struct bench_common_options, n_repeats) }
#define BENCH_ROW_DIR(HELP) \
	{ .name = "dir", .argument = "DIR", .help = HELP, .parse = option_parse_text, \
	  OPTION_MEMBER(struct bench_common_options, dir) }
#define BENCH_ROW_JSON \
	{ .name = "json", .argument = "FILE", .help = "also write all times to FILE, as JSON", \
	  .parse = option_parse_text, OPTION_MEMBER(struct bench_common_options, json_path) }
/* clang-format on */

/*
 * Make a temporary directory below `parent`. Returns 0, or a negative errno after a message.
 */
int bench_make_directory(const char *parent, char dir[static PATH_MAX]);

/* --- measuring --- */

/* Return the median of n >= 1 times, which are sorted in place. */
double bench_median_ns(uint64_t *times_ns, unsigned n);

struct run_cost {
	uint64_t elapsed_ns;
	uint64_t cpu_ns;          /* of all threads, in user and kernel mode */
	uint64_t peak_rss_nbytes; /* of the largest process */
};

/*
 * Run the program argv[0] (looked up in $PATH) with empty standard input and wait for it. argv ends
 * with NULL. Returns 0, or a negative errno after a message if it cannot be started or its exit
 * status is not 0.
 */
int timed_run(const char *const *argv, struct run_cost *ret_cost);

/*
 * Touch and free nbytes, but at most half of what is available, so that every program starts with
 * the same free memory. A virtual machine returns free pages to its host after some seconds; the
 * next program that touches them waits for the host, much longer than clearing the page takes.
 * Without this, the first program that needs much memory would pay for the others. Runs in a child
 * process, because the kernel counts the peak size of a parent for its children. Errors are
 * ignored.
 */
void warm_memory(uint64_t nbytes);
