/*
 * bench_file - gsort from file to file, as a user would run it
 *
 * Times of a shared machine mean little, ratios of one run mean something: every figure is a ratio
 * of two medians, and the programs take turns, round after round, so that a slow minute hits all of
 * them. Inputs are in the page cache. Every output is removed before the next program starts, so
 * that nobody pays for writing back another's pages.
 *
 * Before a case is timed, it runs once and its output is checked: in order, and the same records as
 * the input. A benchmark of a wrong result is worth nothing.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/memory_limit.h"
#include "src/status.h"
#include "src/verify.h"
#include "tools/bench.h"
#include "tools/bench_report.h"
#include "tools/gen.h"
#include "tools/gen_file.h"
#include "tools/tool.h"
#include "tools/warm_memory.h"

/* Chunks or temporary space, the output, and some more. */
enum { WARM_TIMES_INPUT = 3 };

enum { SMALL_RECORDS = 1000, TEXT_FRACTION = 64 };

/* Who does it. */
enum program { PROGRAM_CP, PROGRAM_GSORT, PROGRAM_TEXT, N_PROGRAMS };

/* The inputs. */
enum data { DATA_RANDOM, DATA_SORTED, DATA_REVERSED, DATA_EQUAL, DATA_TEXT, DATA_SMALL, N_DATA };

static const struct {
	const char *name;
	enum gen_dist dist;
} data_sets[N_DATA] = {
	[DATA_RANDOM] = { "random", GEN_RANDOM },       [DATA_SORTED] = { "sorted", GEN_SORTED },
	[DATA_REVERSED] = { "reversed", GEN_REVERSED }, [DATA_EQUAL] = { "equal", GEN_EQUAL },
	[DATA_TEXT] = { "text", GEN_RANDOM },           [DATA_SMALL] = { "small", GEN_RANDOM },
};

enum case_id {
	CASE_CP,
	CASE_AMPLE,
	CASE_QUARTER,
	CASE_SIXTEENTH,
	CASE_SORTED,
	CASE_REVERSED,
	CASE_EQUAL,
	CASE_TEXT,
	CASE_SMALL,
	N_CASES
};

static const struct {
	const char *name;
	enum program program;
	enum data data;
	unsigned memory_sixteenths; /* -S, of the input's size */
} cases[N_CASES] = {
	[CASE_CP] = { "cp", PROGRAM_CP, DATA_RANDOM, 0 },
	[CASE_AMPLE] = { "gsort, memory 4 x input", PROGRAM_GSORT, DATA_RANDOM, 64 },
	[CASE_QUARTER] = { "gsort, memory 1/4", PROGRAM_GSORT, DATA_RANDOM, 4 },
	[CASE_SIXTEENTH] = { "gsort, memory 1/16", PROGRAM_GSORT, DATA_RANDOM, 1 },
	[CASE_SORTED] = { "gsort, sorted", PROGRAM_GSORT, DATA_SORTED, 64 },
	[CASE_REVERSED] = { "gsort, reversed", PROGRAM_GSORT, DATA_REVERSED, 64 },
	[CASE_EQUAL] = { "gsort, all equal", PROGRAM_GSORT, DATA_EQUAL, 64 },
	[CASE_TEXT] = { "xxd | sort | xxd", PROGRAM_TEXT, DATA_TEXT, 0 },
	[CASE_SMALL] = { "gsort, 1000 keys", PROGRAM_GSORT, DATA_SMALL, 64 },
};

/* What is promised, as in struct bench_figure; N_CASES stands for no case. */
static const struct {
	const char *name;
	enum case_id over, under;
	bool at_least;
	double target;
} figures[] = {
	{ "ample memory against cp", CASE_AMPLE, CASE_CP, false, 2.5 },
	{ "memory 1/4 against cp", CASE_QUARTER, CASE_CP, false, 4.0 },
	{ "memory 1/16 against 1/4", CASE_SIXTEENTH, CASE_QUARTER, false, 1.3 },
	{ "xxd | sort | xxd against gsort", CASE_TEXT, CASE_AMPLE, true, 40.0 },
	{ "sorted against random", CASE_SORTED, CASE_AMPLE, false, 0.5 },
	{ "reversed against random", CASE_REVERSED, CASE_AMPLE, false, 1.1 },
	{ "all equal against random", CASE_EQUAL, CASE_AMPLE, false, 1.1 },
	{ "start-up, in seconds", CASE_SMALL, N_CASES, false, 0.010 },
};

enum { N_FIGURES = sizeof figures / sizeof figures[0] };

struct bench_options {
	uint64_t nbytes;
	const char *dir;
	const char *gsort;
	unsigned n_repeats;
	const char *json_path;
};

struct bench {
	const struct bench_options *options;
	struct layout layout[N_PROGRAMS]; /* by which they sort */
	char dir[PATH_MAX];               /* made for this run, removed after it */
	char input[N_DATA][PATH_MAX + 16];
	uint64_t input_nbytes[N_DATA];
	struct digest digest[N_DATA];
	char output[PATH_MAX + 16];
	struct bench_case measured[N_CASES];
};

static int examine(const struct layout *layout, const char *path, struct verify_result *ret_found)
{
	const struct verify_options options = { .layout = layout, .n_threads = cpus_available("") };
	struct input *input;
	int r;

	r = input_open(&io_engine_plain, &path, 1, layout->record_nbytes, &input);
	if (r < 0)
		return r;
	r = verify_input(input, &options, ret_found);
	input_close(input);
	return r;
}

/* The file of a data set, and its digest. */
static int make_input(struct bench *bench, enum data data)
{
	const struct layout *layout = &bench->layout[PROGRAM_GSORT];
	struct verify_result found;
	struct gen gen;
	int r;

	gen_make(layout, data_sets[data].dist, bench->input_nbytes[data] / layout->record_nbytes, 1,
		 &gen);
	r = gen_write_file(&gen.set, bench->input[data], cpus_available(""));
	if (r == 0)
		r = examine(layout, bench->input[data], &found);
	if (r == 0)
		bench->digest[data] = found.digest;
	return r;
}

/* The output of a case must hold its input, sorted unless it is a mere copy. */
static int check_output(struct bench *bench, enum case_id id)
{
	struct verify_result found;
	int r;

	r = examine(&bench->layout[cases[id].program], bench->output, &found);
	if (r < 0)
		return r;
	if (cases[id].program != PROGRAM_CP && found.first_disorder)
		return fail(-EBADMSG, "%s: the output is not sorted: record %" PRIu64,
			    cases[id].name, found.first_disorder);
	if (!digest_equal(found.digest, bench->digest[cases[id].data]))
		return fail(-EBADMSG, "%s: the output does not hold the records of the input",
			    cases[id].name);
	return 0;
}

/* The output of the case before is gone first, and its dirty pages with it. */
static int run_case(struct bench *bench, enum case_id id, struct run_cost *ret_cost)
{
	const char *input = bench->input[cases[id].data];
	const char *output = bench->output;
	const char *const cp[] = { "cp", input, output, NULL };
	const char *const text[] = {
		"sh",   "-c", "xxd -p -c8 \"$1\" | LC_ALL=C sort | xxd -r -p > \"$2\"", "sh", input,
		output, NULL,
	};
	char memory[32];
	const char *const gsort[] = {
		bench->options->gsort, input, "-o", output, "-S", memory, "-T", bench->dir, NULL,
	};

	unlink(output);
	warm_memory(WARM_TIMES_INPUT * bench->input_nbytes[cases[id].data]);
	snprintf(memory, sizeof memory, "%" PRIu64 "b",
		 bench->input_nbytes[cases[id].data] / 16 * cases[id].memory_sixteenths + 1);
	switch (cases[id].program) {
	case PROGRAM_CP:
		return timed_run(cp, ret_cost);
	case PROGRAM_TEXT:
		return timed_run(text, ret_cost);
	default:
		return timed_run(gsort, ret_cost);
	}
}

/* Every case once, checked; then all of them in turn, timed. */
static int run_cases(struct bench *bench)
{
	const unsigned n_repeats = bench->options->n_repeats;
	int r = 0;

	for (unsigned round = 0; r == 0 && round <= n_repeats; round++) {
		fprintf(stderr, round ? "round %u of %u\n" : "checking the results\n", round,
			n_repeats);
		for (unsigned id = 0; r == 0 && id < N_CASES; id++) {
			struct bench_case *measured = &bench->measured[id];
			struct run_cost cost;

			r = run_case(bench, (enum case_id)id, &cost);
			if (r == 0 && round == 0)
				r = check_output(bench, (enum case_id)id);
			else if (r == 0)
				measured->costs[measured->n_costs++] = cost;
		}
	}
	return r;
}

static int report(const struct bench *bench)
{
	const struct bench_case *measured = bench->measured;
	struct bench_figure promised[N_FIGURES];
	const struct bench_report all = {
		.input_nbytes = bench->options->nbytes,
		.n_processors = cpus_available(""),
		.cases = measured,
		.n_cases = N_CASES,
		.figures = promised,
		.n_figures = N_FIGURES,
	};

	for (unsigned i = 0; i < N_FIGURES; i++)
		promised[i] = (struct bench_figure){
			.name = figures[i].name,
			.over = &measured[figures[i].over],
			.under = figures[i].under == N_CASES ? NULL : &measured[figures[i].under],
			.at_least = figures[i].at_least,
			.target = figures[i].target,
		};
	bench_report_print(&all);
	if (!bench->options->json_path)
		return 0;
	return bench_report_write_json(&all, bench->options->json_path);
}

static int make_directory(struct bench *bench)
{
	const int n = snprintf(bench->dir, sizeof bench->dir, "%s/gsort-bench.XXXXXX",
			       bench->options->dir);

	if (n < 0 || (size_t)n >= sizeof bench->dir)
		return fail(-ENAMETOOLONG, "%s: %m", bench->options->dir);
	if (!mkdtemp(bench->dir))
		return fail(-errno, "%s: no directory can be made here: %m", bench->options->dir);
	for (unsigned data = 0; data < N_DATA; data++)
		snprintf(bench->input[data], sizeof bench->input[data], "%s/%s", bench->dir,
			 data_sets[data].name);
	snprintf(bench->output, sizeof bench->output, "%s/output", bench->dir);
	return 0;
}

static void remove_directory(const struct bench *bench)
{
	for (unsigned data = 0; data < N_DATA; data++)
		unlink(bench->input[data]);
	unlink(bench->output);
	rmdir(bench->dir);
}

static void plan_inputs(struct bench *bench)
{
	const uint64_t nbytes = bench->options->nbytes / 8 * 8;

	for (unsigned data = 0; data < N_DATA; data++)
		bench->input_nbytes[data] = nbytes;
	bench->input_nbytes[DATA_TEXT] = nbytes / TEXT_FRACTION / 8 * 8;
	bench->input_nbytes[DATA_SMALL] = SMALL_RECORDS * 8;
	for (unsigned id = 0; id < N_CASES; id++) {
		bench->measured[id].name = cases[id].name;
		bench->measured[id].input_nbytes = bench->input_nbytes[cases[id].data];
	}
}

static int bench_files(const struct bench_options *options)
{
	struct bench *bench = calloc(1, sizeof *bench);
	int r;

	if (!bench)
		return fail(-ENOMEM, "%m");
	bench->options = options;
	plan_inputs(bench);
	layout_make_plain(&(struct key){ .nbytes = 8, .kind = KEY_UNSIGNED },
			  &bench->layout[PROGRAM_GSORT]);
	layout_make_plain(&(struct key){ .nbytes = 8, .kind = KEY_BYTES, .big_endian = true },
			  &bench->layout[PROGRAM_TEXT]);
	bench->layout[PROGRAM_CP] = bench->layout[PROGRAM_GSORT];
	r = make_directory(bench);
	if (r == 0) {
		for (unsigned data = 0; r == 0 && data < N_DATA; data++)
			r = make_input(bench, (enum data)data);
		if (r == 0)
			r = run_cases(bench);
		remove_directory(bench);
	}
	if (r == 0)
		r = report(bench);
	free(bench);
	return r;
}

static const struct option_spec specs[] = {
	{ .name = "size",
	  .argument = "SIZE",
	  .help = "of the inputs (default 1G); six times as much is needed on the disk",
	  .take = option_take_size,
	  .offset = offsetof(struct bench_options, nbytes) },
	{ .name = "dir",
	  .argument = "DIR",
	  .help = "where the files go for the time being (default $TMPDIR, else /tmp)",
	  .take = option_take_text,
	  .offset = offsetof(struct bench_options, dir) },
	{ .name = "gsort",
	  .argument = "PROGRAM",
	  .help = "what is measured (default gsort, looked up in $PATH)",
	  .take = option_take_text,
	  .offset = offsetof(struct bench_options, gsort) },
	{ .name = "repeat",
	  .argument = "N",
	  .help = "rounds (default 5)",
	  .take = option_take_count,
	  .offset = offsetof(struct bench_options, n_repeats) },
	{ .name = "json",
	  .argument = "FILE",
	  .help = "write all times there as well",
	  .take = option_take_text,
	  .offset = offsetof(struct bench_options, json_path) },
	TOOL_ROW_HELP,
	TOOL_ROW_VERSION,
};

static const struct tool tool = {
	.name = "gsort-bench",
	.usage = "gsort-bench file [OPTION]...\n"
		 "Time gsort from file to file, against cp and text tools, all in turn.\n",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

int bench_file(int argc, char **argv)
{
	const char *tmpdir = getenv("TMPDIR");
	struct bench_options options = {
		.nbytes = UINT64_C(1) << 30,
		.dir = tmpdir && *tmpdir ? tmpdir : "/tmp",
		.gsort = "gsort",
		.n_repeats = 5,
	};
	struct option_result given;
	int r = tool_parse(&tool, argc, argv, &options, &given);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0 && given.n_operands)
		r = fail(-EINVAL, "unexpected '%s'", given.operands[0]);
	if (r == 0 && options.n_repeats > BENCH_MOST_REPEATS)
		r = fail(-EINVAL, "--repeat: at most %d rounds", BENCH_MOST_REPEATS);
	if (r == 0 && options.nbytes < 1 << 20)
		r = fail(-EINVAL, "--size: at least 1 MiB, or there is nothing to measure");
	if (r == 0)
		r = bench_files(&options);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}
