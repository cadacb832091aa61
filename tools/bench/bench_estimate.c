/*
 * bench_estimate.c - compare the time that --explain predicts with the time of the sort
 *
 * For each case the table shows the median predicted and measured times of some rounds, and their
 * ratio. Each prediction is followed by its sort, so that a slow minute affects both. Inputs are in
 * the page cache.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/record/layout.h"
#include "tools/bench/bench.h"
#include "tools/gen/gen.h"
#include "tools/gen/gensort.h"

/* Chunks or temporary space, the output, and a margin. */
enum { WARM_TIMES_INPUT = 3, MAX_SHELL_ARGUMENTS = 24, ESTIMATE_NUMBER_NBYTES = 32 };

static const struct estimate_case {
	const char *name;
	unsigned memory_sixteenths; /* -S, relative to the input */
	const char *option;         /* one more option, or NULL */
	bool are_records, is_pipe;
} estimate_cases[] = {
	{ "in memory", 64, NULL, false, false },
	{ "spilled", 4, NULL, false, false },
	{ "two passes", 1, "--batch-size=8", false, false },
	{ "records", 4, NULL, true, false },
	{ "pipe with a size", 4, NULL, false, true },
};

enum { N_ESTIMATE_CASES = sizeof estimate_cases / sizeof estimate_cases[0] };

struct estimate_options {
	struct bench_common_options common;
	const char *gsort;
};

struct estimate_bench {
	const struct estimate_options *options;
	char dir[PATH_MAX]; /* temporary */
	char keys_path[PATH_MAX + 16], records_path[PATH_MAX + 16], output_path[PATH_MAX + 16],
		plan_path[PATH_MAX + 16];
	uint64_t predicted_ns[N_ESTIMATE_CASES][BENCH_MAX_REPEATS],
		measured_ns[N_ESTIMATE_CASES][BENCH_MAX_REPEATS];
};

static int make_directory(struct estimate_bench *bench)
{
	const int r = bench_make_directory(bench->options->common.dir, bench->dir);

	if (r < 0)
		return r;
	snprintf(bench->keys_path, sizeof bench->keys_path, "%s/keys", bench->dir);
	snprintf(bench->records_path, sizeof bench->records_path, "%s/records", bench->dir);
	snprintf(bench->output_path, sizeof bench->output_path, "%s/output", bench->dir);
	snprintf(bench->plan_path, sizeof bench->plan_path, "%s/plan", bench->dir);
	return 0;
}

static void remove_directory(const struct estimate_bench *bench)
{
	unlink(bench->keys_path);
	unlink(bench->records_path);
	unlink(bench->output_path);
	unlink(bench->plan_path);
	rmdir(bench->dir);
}

static int make_inputs(const struct estimate_bench *bench)
{
	static const struct key key = { .nbytes = 8, .kind = KEY_UNSIGNED };
	const uint64_t nbytes = bench->options->common.nbytes;
	struct gensort gensort;
	struct layout layout;
	struct gen gen;
	int r = layout_make_key_only(&key, &layout);

	if (r < 0)
		return r;
	gen_init(&layout, GEN_RANDOM, nbytes / 8, 1, &gen);
	r = gen_write_file(&gen.set, tool_syscalls(), bench->keys_path, cpus_available(""));
	if (r < 0)
		return r;
	gensort_init(GENSORT_ASCII, 0, nbytes / GENSORT_RECORD_NBYTES, &gensort);
	return gen_write_file(&gensort.set, tool_syscalls(), bench->records_path,
			      cpus_available(""));
}

/*
 * Run gsort on the case's input, or only --explain with output to plan_path. A shell starts gsort
 * in either case: it makes the pipe, if there is one.
 */
static int run_gsort(const struct estimate_bench *bench, const struct estimate_case *estimate_case,
		     bool explain_only, struct run_cost *ret_cost)
{
	const char *input = estimate_case->are_records ? bench->records_path : bench->keys_path;
	char memory[ESTIMATE_NUMBER_NBYTES], size[ESTIMATE_NUMBER_NBYTES];
	const char *argv[MAX_SHELL_ARGUMENTS] = { "sh", "-c" };
	size_t n = 2;

	snprintf(memory, sizeof memory, "%" PRIu64 "b",
		 bench->options->common.nbytes / 16 * estimate_case->memory_sixteenths + 1);
	snprintf(size, sizeof size, "--assume-size=%" PRIu64 "b", bench->options->common.nbytes);
	argv[n++] = estimate_case->is_pipe ?
			    (explain_only ? "cat \"$1\" | { shift; \"$@\" > \"$0\"; }" :
					    "cat \"$1\" | { shift; \"$@\"; }") :
			    (explain_only ? "shift; \"$@\" > \"$0\"" : "shift; exec \"$@\"");
	argv[n++] = bench->plan_path;
	argv[n++] = input;
	argv[n++] = bench->options->gsort;
	argv[n++] = estimate_case->is_pipe ? "-" : input;
	argv[n++] = "-o";
	argv[n++] = bench->output_path;
	argv[n++] = "-S";
	argv[n++] = memory;
	argv[n++] = "-T";
	argv[n++] = bench->dir;
	if (estimate_case->are_records) {
		argv[n++] = "-R100";
		argv[n++] = "-k0:b10";
	}
	if (estimate_case->option)
		argv[n++] = estimate_case->option;
	if (explain_only)
		argv[n++] = "--explain";
	if (explain_only && estimate_case->is_pipe)
		argv[n++] = size;
	argv[n] = NULL;
	unlink(bench->output_path);
	warm_memory(WARM_TIMES_INPUT * bench->options->common.nbytes);
	return timed_run(argv, ret_cost);
}

/* Parse the last line of the plan: "total: about 1.5 s". */
static int read_prediction(const struct estimate_bench *bench, uint64_t *ret_ns)
{
	FILE *file = fopen(bench->plan_path, "re");
	double s = -1;
	char line[512];

	if (!file)
		return fail(-errno, "%s: %m", bench->plan_path);
	while (fgets(line, sizeof line, file))
		sscanf(line, "total: about %lf s", &s);
	fclose(file);
	if (s < 0)
		return fail(-EBADMSG, "--explain: no total time in the output");
	*ret_ns = (uint64_t)(s * 1e9);
	return 0;
}

static int run_estimate_case(struct estimate_bench *bench, unsigned id, unsigned round)
{
	struct run_cost cost;
	int r = run_gsort(bench, &estimate_cases[id], true, &cost);

	if (r == 0)
		r = read_prediction(bench, &bench->predicted_ns[id][round]);
	if (r == 0)
		r = run_gsort(bench, &estimate_cases[id], false, &cost);
	if (r == 0)
		bench->measured_ns[id][round] = cost.elapsed_ns;
	return r;
}

static int run_estimate_cases(struct estimate_bench *bench)
{
	const unsigned n_repeats = bench->options->common.n_repeats;
	int r = 0;

	for (unsigned round = 0; r == 0 && round < n_repeats; round++) {
		fprintf(stderr, "round %u of %u\n", round + 1, n_repeats);
		for (unsigned id = 0; r == 0 && id < N_ESTIMATE_CASES; id++)
			r = run_estimate_case(bench, id, round);
	}
	return r;
}

static void print_report(struct estimate_bench *bench)
{
	const unsigned n_repeats = bench->options->common.n_repeats;

	printf("%-18s %11s %11s %7s\n", "case", "predicted", "measured", "ratio");
	for (unsigned id = 0; id < N_ESTIMATE_CASES; id++) {
		const double predicted_ns = bench_median_ns(bench->predicted_ns[id], n_repeats);
		const double measured_ns = bench_median_ns(bench->measured_ns[id], n_repeats);

		printf("%-18s %9.3f s %9.3f s %7.2f\n", estimate_cases[id].name,
		       predicted_ns * 1e-9, measured_ns * 1e-9, predicted_ns / measured_ns);
	}
}

static int bench_predictions(void *options, FILE *json)
{
	struct estimate_bench *bench = calloc(1, sizeof *bench);
	int r;

	if (!bench)
		return fail(-ENOMEM, "%m");
	(void)json;
	bench->options = options;
	r = make_directory(bench);
	if (r == 0) {
		r = make_inputs(bench);
		if (r == 0)
			r = run_estimate_cases(bench);
		remove_directory(bench);
	}
	if (r == 0)
		print_report(bench);
	free(bench);
	return r;
}

static const struct option_spec specs[] = {
	BENCH_ROW_SIZE("size of the inputs (default 1G); needs five times as much space"),
	BENCH_ROW_DIR("directory for temporary files (default $TMPDIR, else /tmp)"),
	{ "gsort", 0, "PROGRAM", "the gsort to time (default gsort, looked up in $PATH)",
	  .parse = option_parse_text, OPTION_MEMBER(struct estimate_options, gsort) },
	BENCH_ROW_REPEAT("number of rounds (default 5)"),
	{ BUILTIN_OPTIONS_ROW_HELP },
	{ BUILTIN_OPTIONS_ROW_VERSION },
};

static const struct tool tool = {
	.name = "gsort-bench",
	.usage =
		"gsort-bench explain [OPTION]...\n"
		"Compare the time that gsort --explain predicts with the time that a sort takes.\n",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

int bench_estimate(int argc, char **argv)
{
	struct estimate_options options = {
		.common = { .nbytes = UINT64_C(1) << 30, .n_repeats = 5 },
		.gsort = "gsort",
	};

	return bench_run(&tool, argc, argv, &options.common, bench_predictions);
}
