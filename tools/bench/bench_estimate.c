/*
 * bench_estimate - how near --explain comes to what a sort really takes
 *
 * One table: for each shape the time that gsort predicts, the time that the sort then takes, both
 * the medians of some rounds, and the one in parts of the other. A prediction and its sort follow
 * each other, so that a slow minute hits both. Inputs are in the page cache.
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
#include "src/cli/exit_status.h"
#include "src/record/layout.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_median.h"
#include "tools/bench/bench_options.h"
#include "tools/bench/timed_run.h"
#include "tools/bench/warm_memory.h"
#include "tools/gen/gen.h"
#include "tools/gen/gen_file.h"
#include "tools/gen/gensort.h"

/* Chunks or temporary space, the output, and some more. */
enum { WARM_TIMES_INPUT = 3, MOST_ARGUMENTS = 24, NUMBER_NBYTES = 32 };

static const struct shape {
	const char *name;
	unsigned memory_sixteenths; /* -S, of the input's size */
	const char *option;         /* one more, or NULL */
	bool are_records, is_pipe;
} shapes[] = {
	{ "in memory", 64, NULL, false, false },
	{ "spilled", 4, NULL, false, false },
	{ "two passes", 1, "--batch-size=8", false, false },
	{ "records", 4, NULL, true, false },
	{ "pipe with a size", 4, NULL, false, true },
};

enum { N_SHAPES = sizeof shapes / sizeof shapes[0] };

struct explain_options {
	struct bench_request whole;
	const char *gsort;
};

struct bench {
	const struct explain_options *options;
	char dir[PATH_MAX]; /* made for this run, removed after it */
	char keys[PATH_MAX + 16], records[PATH_MAX + 16], output[PATH_MAX + 16],
		plan[PATH_MAX + 16];
	uint64_t predicted_ns[N_SHAPES][BENCH_MOST_REPEATS], taken_ns[N_SHAPES][BENCH_MOST_REPEATS];
};

static int make_directory(struct bench *bench)
{
	const char *parent = bench->options->whole.dir;
	const int n = snprintf(bench->dir, sizeof bench->dir, "%s/gsort-bench.XXXXXX", parent);

	if (n < 0 || (size_t)n >= sizeof bench->dir)
		return fail(-ENAMETOOLONG, "%s: %m", parent);
	if (!mkdtemp(bench->dir))
		return fail(-errno, "%s: no directory can be made here: %m", parent);
	snprintf(bench->keys, sizeof bench->keys, "%s/keys", bench->dir);
	snprintf(bench->records, sizeof bench->records, "%s/records", bench->dir);
	snprintf(bench->output, sizeof bench->output, "%s/output", bench->dir);
	snprintf(bench->plan, sizeof bench->plan, "%s/plan", bench->dir);
	return 0;
}

static void remove_directory(const struct bench *bench)
{
	unlink(bench->keys);
	unlink(bench->records);
	unlink(bench->output);
	unlink(bench->plan);
	rmdir(bench->dir);
}

static int make_inputs(const struct bench *bench)
{
	static const struct key key = { .nbytes = 8, .kind = KEY_UNSIGNED };
	const uint64_t nbytes = bench->options->whole.nbytes;
	struct gensort gensort;
	struct layout layout;
	struct gen gen;
	int r = layout_make_plain(&key, &layout);

	if (r < 0)
		return r;
	gen_make(&layout, GEN_RANDOM, nbytes / 8, 1, &gen);
	r = gen_write_file(&gen.set, bench->keys, cpus_available(""));
	if (r < 0)
		return r;
	gensort_make(GENSORT_ASCII, 0, nbytes / GENSORT_RECORD_NBYTES, &gensort);
	return gen_write_file(&gensort.set, bench->records, cpus_available(""));
}

/*
 * gsort of the shape's input to the output, or what it says beforehand into the file `plan`. Both
 * begin with a shell: it makes the pipe, or does nothing but call gsort.
 */
static int run_gsort(const struct bench *bench, const struct shape *shape, bool explains,
		     struct run_cost *ret_cost)
{
	const char *input = shape->are_records ? bench->records : bench->keys;
	char memory[NUMBER_NBYTES], size[NUMBER_NBYTES];
	const char *argv[MOST_ARGUMENTS] = { "sh", "-c" };
	size_t n = 2;

	snprintf(memory, sizeof memory, "%" PRIu64 "b",
		 bench->options->whole.nbytes / 16 * shape->memory_sixteenths + 1);
	snprintf(size, sizeof size, "--assume-size=%" PRIu64 "b", bench->options->whole.nbytes);
	argv[n++] = shape->is_pipe ? (explains ? "cat \"$1\" | { shift; \"$@\" > \"$0\"; }" :
						 "cat \"$1\" | { shift; \"$@\"; }") :
				     (explains ? "shift; \"$@\" > \"$0\"" : "shift; exec \"$@\"");
	argv[n++] = bench->plan;
	argv[n++] = input;
	argv[n++] = bench->options->gsort;
	argv[n++] = shape->is_pipe ? "-" : input;
	argv[n++] = "-o";
	argv[n++] = bench->output;
	argv[n++] = "-S";
	argv[n++] = memory;
	argv[n++] = "-T";
	argv[n++] = bench->dir;
	if (shape->are_records) {
		argv[n++] = "-R100";
		argv[n++] = "-k0:b10";
	}
	if (shape->option)
		argv[n++] = shape->option;
	if (explains)
		argv[n++] = "--explain";
	if (explains && shape->is_pipe)
		argv[n++] = size;
	argv[n] = NULL;
	unlink(bench->output);
	warm_memory(WARM_TIMES_INPUT * bench->options->whole.nbytes);
	return timed_run(argv, ret_cost);
}

/* The last line of a plan: "total: about 1.5 s". */
static int read_prediction(const struct bench *bench, uint64_t *ret_ns)
{
	FILE *file = fopen(bench->plan, "re");
	double s = -1;
	char line[512];

	if (!file)
		return fail(-errno, "%s: %m", bench->plan);
	while (fgets(line, sizeof line, file))
		sscanf(line, "total: about %lf s", &s);
	fclose(file);
	if (s < 0)
		return fail(-EBADMSG, "--explain does not say how long it takes");
	*ret_ns = (uint64_t)(s * 1e9);
	return 0;
}

static int run_shape(struct bench *bench, unsigned id, unsigned round)
{
	struct run_cost cost;
	int r = run_gsort(bench, &shapes[id], true, &cost);

	if (r == 0)
		r = read_prediction(bench, &bench->predicted_ns[id][round]);
	if (r == 0)
		r = run_gsort(bench, &shapes[id], false, &cost);
	if (r == 0)
		bench->taken_ns[id][round] = cost.elapsed_ns;
	return r;
}

static int run_shapes(struct bench *bench)
{
	const unsigned n_repeats = bench->options->whole.n_repeats;
	int r = 0;

	for (unsigned round = 0; r == 0 && round < n_repeats; round++) {
		fprintf(stderr, "round %u of %u\n", round + 1, n_repeats);
		for (unsigned id = 0; r == 0 && id < N_SHAPES; id++)
			r = run_shape(bench, id, round);
	}
	return r;
}

static void report(struct bench *bench)
{
	const unsigned n_repeats = bench->options->whole.n_repeats;

	printf("%-18s %11s %11s %7s\n", "shape", "predicted", "taken", "ratio");
	for (unsigned id = 0; id < N_SHAPES; id++) {
		const double predicted_ns = bench_median_ns(bench->predicted_ns[id], n_repeats);
		const double taken_ns = bench_median_ns(bench->taken_ns[id], n_repeats);

		printf("%-18s %9.3f s %9.3f s %7.2f\n", shapes[id].name, predicted_ns * 1e-9,
		       taken_ns * 1e-9, predicted_ns / taken_ns);
	}
}

static int bench_predictions(const struct explain_options *options)
{
	struct bench *bench = calloc(1, sizeof *bench);
	int r;

	if (!bench)
		return fail(-ENOMEM, "%m");
	bench->options = options;
	r = make_directory(bench);
	if (r == 0) {
		r = make_inputs(bench);
		if (r == 0)
			r = run_shapes(bench);
		remove_directory(bench);
	}
	if (r == 0)
		report(bench);
	free(bench);
	return r;
}

static const struct option_spec specs[] = {
	BENCH_ROW_SIZE("of the inputs (default 1G); five times as much is needed on the disk"),
	BENCH_ROW_DIR("where the files go for the time being (default $TMPDIR, else /tmp)"),
	{ .name = "gsort",
	  .argument = "PROGRAM",
	  .help = "what is asked and timed (default gsort, looked up in $PATH)",
	  .take = option_take_text,
	  OPTION_MEMBER(struct explain_options, gsort) },
	BENCH_ROW_REPEAT("rounds (default 5)"),
	TOOL_ROW_HELP,
	TOOL_ROW_VERSION,
};

static const struct tool tool = {
	.name = "gsort-bench",
	.usage =
		"gsort-bench explain [OPTION]...\n"
		"Compare the time that gsort --explain predicts with the time that a sort takes.\n",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

int bench_explain(int argc, char **argv)
{
	struct explain_options options = {
		.whole = { .nbytes = UINT64_C(1) << 30, .n_repeats = 5 },
		.gsort = "gsort",
	};
	int r;

	options.whole.dir = bench_default_dir();
	r = bench_request_parse(&tool, argc, argv, &options);
	if (r > 0)
		return EXIT_SORTED;
	if (r == 0)
		r = bench_predictions(&options);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}
