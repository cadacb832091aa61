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

#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/check/verify.h"
#include "src/cli/exit_status.h"
#include "tools/bench/bench.h"
#include "tools/bench/bench_competitors.h"
#include "tools/bench/bench_report.h"
#include "tools/bench/bench_options.h"
#include "tools/bench/warm_memory.h"
#include "tools/gen/gen.h"
#include "tools/gen/gen_file.h"
#include "tools/gen/gensort.h"

/* Chunks or temporary space, the output, and some more. */
enum { WARM_TIMES_INPUT = 3 };

enum { SMALL_RECORDS = 1000, TEXT_FRACTION = 64 };

/* The inputs. */
enum data {
	DATA_RANDOM,
	DATA_SORTED,
	DATA_REVERSED,
	DATA_EQUAL,
	DATA_TEXT,
	DATA_SMALL,
	DATA_GENSORT,
	N_DATA
};

/* What a record is. Text is sorted as bytes, so is its binary form. */
static const struct key u64_key = { .nbytes = 8, .kind = KEY_UNSIGNED };
static const struct key b8_key = { .nbytes = 8, .kind = KEY_BYTES, .big_endian = true };
static const struct key gensort_key = { .nbytes = 10, .kind = KEY_BYTES, .big_endian = true };

static const struct {
	const char *name;
	const struct key *key;
	uint64_t record_nbytes;
	enum gen_dist dist; /* but of DATA_GENSORT */
} data_sets[N_DATA] = {
	[DATA_RANDOM] = { "random", &u64_key, 8, GEN_RANDOM },
	[DATA_SORTED] = { "sorted", &u64_key, 8, GEN_SORTED },
	[DATA_REVERSED] = { "reversed", &u64_key, 8, GEN_REVERSED },
	[DATA_EQUAL] = { "equal", &u64_key, 8, GEN_EQUAL },
	[DATA_TEXT] = { "text", &b8_key, 8, GEN_RANDOM },
	[DATA_SMALL] = { "small", &u64_key, 8, GEN_RANDOM },
	[DATA_GENSORT] = { "gensort", &gensort_key, GENSORT_RECORD_NBYTES, GEN_RANDOM },
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
	/* Records, to the end. */
	CASE_RECORDS_CP,
	CASE_RECORDS_LINES,
	CASE_RECORDS_AMPLE,
	CASE_RECORDS_EIGHTH,
	N_CASES
};

enum kind_id { KIND_ALL, KIND_KEYS, KIND_RECORDS };

static const struct option_choice kind_choices[] = {
	{ "all", KIND_ALL }, { "keys", KIND_KEYS }, { "records", KIND_RECORDS }, { 0 }
};

/* The cases of a kind: [first, end). */
static const struct kind {
	enum case_id first, end;
} kinds[] = {
	[KIND_ALL] = { 0, N_CASES },
	[KIND_KEYS] = { 0, CASE_RECORDS_CP },
	[KIND_RECORDS] = { CASE_RECORDS_CP, N_CASES },
};

static const struct {
	const char *name;
	enum bench_program program;
	enum data data;
	unsigned memory_sixteenths; /* -S, of the input's size */
} cases[N_CASES] = {
	[CASE_CP] = { "cp", BENCH_CP, DATA_RANDOM, 0 },
	[CASE_AMPLE] = { "gsort, memory 4 x input", BENCH_GSORT, DATA_RANDOM, 64 },
	[CASE_QUARTER] = { "gsort, memory 1/4", BENCH_GSORT, DATA_RANDOM, 4 },
	[CASE_SIXTEENTH] = { "gsort, memory 1/16", BENCH_GSORT, DATA_RANDOM, 1 },
	[CASE_SORTED] = { "gsort, sorted", BENCH_GSORT, DATA_SORTED, 64 },
	[CASE_REVERSED] = { "gsort, reversed", BENCH_GSORT, DATA_REVERSED, 64 },
	[CASE_EQUAL] = { "gsort, all equal", BENCH_GSORT, DATA_EQUAL, 64 },
	[CASE_TEXT] = { "xxd | sort | xxd", BENCH_SORT_TEXT, DATA_TEXT, 0 },
	[CASE_SMALL] = { "gsort, 1000 keys", BENCH_GSORT, DATA_SMALL, 64 },
	[CASE_RECORDS_CP] = { "records: cp", BENCH_CP, DATA_GENSORT, 0 },
	[CASE_RECORDS_LINES] = { "records: sort, 2 x input", BENCH_SORT_LINES, DATA_GENSORT, 32 },
	[CASE_RECORDS_AMPLE] = { "records: gsort, 2 x input", BENCH_GSORT_RECORDS, DATA_GENSORT,
				 32 },
	[CASE_RECORDS_EIGHTH] = { "records: gsort, 1/8", BENCH_GSORT_RECORDS, DATA_GENSORT, 2 },
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
	{ "records: sort against gsort", CASE_RECORDS_LINES, CASE_RECORDS_AMPLE, true, 6.0 },
	{ "records: against gsort, 1/8", CASE_RECORDS_LINES, CASE_RECORDS_EIGHTH, true, 4.0 },
};

enum { N_FIGURES = sizeof figures / sizeof figures[0] };

struct file_options {
	struct bench_request whole;
	const char *gsort;
	int kind; /* enum kind_id */
};

struct bench {
	const struct file_options *options;
	const struct kind *kind;
	struct layout layout[N_DATA];
	char dir[PATH_MAX]; /* made for this run, removed after it */
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

	r = input_open(&syscalls_plain, &path, 1, layout->record_nbytes, &input);
	if (r < 0)
		return r;
	r = verify_input(input, &options, ret_found);
	input_close(input);
	return r;
}

static int write_input(const struct bench *bench, enum data data)
{
	const uint64_t n = bench->input_nbytes[data] / data_sets[data].record_nbytes;
	struct gensort gensort;
	struct gen gen;

	if (data == DATA_GENSORT) {
		gensort_make(GENSORT_ASCII, 0, n, &gensort);
		return gen_write_file(&gensort.set, bench->input[data], cpus_available(""));
	}
	gen_make(&bench->layout[data], data_sets[data].dist, n, 1, &gen);
	return gen_write_file(&gen.set, bench->input[data], cpus_available(""));
}

/* Layout, file and digest of a data set. */
static int make_input(struct bench *bench, enum data data)
{
	const struct layout_request request = {
		.record_nbytes = data_sets[data].record_nbytes,
		.keys = data_sets[data].key,
		.n_keys = 1,
	};
	struct verify_result found;
	int r = layout_make(&request, &bench->layout[data]);

	if (r == 0)
		r = write_input(bench, data);
	if (r == 0)
		r = examine(&bench->layout[data], bench->input[data], &found);
	if (r == 0)
		bench->digest[data] = found.digest;
	return r;
}

/* The data sets of the cases; several may have the same one. */
static int make_inputs(struct bench *bench)
{
	int r = 0;

	for (unsigned id = bench->kind->first; r == 0 && id < bench->kind->end; id++)
		if (!bench->layout[cases[id].data].record_nbytes)
			r = make_input(bench, cases[id].data);
	return r;
}

/* The output of a case must hold its input, sorted unless it is a mere copy. */
static int check_output(struct bench *bench, enum case_id id)
{
	struct verify_result found;
	int r;

	r = examine(&bench->layout[cases[id].data], bench->output, &found);
	if (r < 0)
		return r;
	if (cases[id].program != BENCH_CP && found.first_disorder)
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
	const uint64_t nbytes = bench->input_nbytes[cases[id].data];
	const struct bench_job job = {
		.gsort = bench->options->gsort,
		.input = bench->input[cases[id].data],
		.output = bench->output,
		.temp_dir = bench->dir,
		.memory_nbytes = nbytes / 16 * cases[id].memory_sixteenths + 1,
	};

	unlink(bench->output);
	warm_memory(WARM_TIMES_INPUT * nbytes);
	return bench_program_run(cases[id].program, &job, ret_cost);
}

/* Every case once, checked; then all of them in turn, timed. */
static int run_cases(struct bench *bench)
{
	const unsigned n_repeats = bench->options->whole.n_repeats;
	int r = 0;

	for (unsigned round = 0; r == 0 && round <= n_repeats; round++) {
		fprintf(stderr, round ? "round %u of %u\n" : "checking the results\n", round,
			n_repeats);
		for (unsigned id = bench->kind->first; r == 0 && id < bench->kind->end; id++) {
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

/* json: NULL, or where the figures go as well. */
static void report(const struct bench *bench, FILE *json)
{
	const struct bench_case *measured = bench->measured;
	const struct kind *kind = bench->kind;
	struct bench_figure promised[N_FIGURES];
	struct bench_report all = {
		.input_nbytes = bench->options->whole.nbytes,
		.n_processors = cpus_available(""),
		.cases = measured + kind->first,
		.n_cases = kind->end - kind->first,
		.figures = promised,
	};

	for (unsigned i = 0; i < N_FIGURES; i++) {
		if (figures[i].over < kind->first || figures[i].over >= kind->end)
			continue;
		promised[all.n_figures++] = (struct bench_figure){
			.name = figures[i].name,
			.over = &measured[figures[i].over],
			.under = figures[i].under == N_CASES ? NULL : &measured[figures[i].under],
			.at_least = figures[i].at_least,
			.target = figures[i].target,
		};
	}
	bench_report_print(&all);
	if (json)
		bench_report_print_json(&all, json);
}

static int make_directory(struct bench *bench)
{
	const int n = snprintf(bench->dir, sizeof bench->dir, "%s/gsort-bench.XXXXXX",
			       bench->options->whole.dir);

	if (n < 0 || (size_t)n >= sizeof bench->dir)
		return fail(-ENAMETOOLONG, "%s: %m", bench->options->whole.dir);
	if (!mkdtemp(bench->dir))
		return fail(-errno, "%s: no directory can be made here: %m",
			    bench->options->whole.dir);
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
	const uint64_t nbytes = bench->options->whole.nbytes;

	for (unsigned data = 0; data < N_DATA; data++) {
		const uint64_t record_nbytes = data_sets[data].record_nbytes;
		const uint64_t n_records = data == DATA_SMALL ? SMALL_RECORDS :
					   data == DATA_TEXT  ? nbytes / TEXT_FRACTION / 8 :
								nbytes / record_nbytes;

		bench->input_nbytes[data] = n_records * record_nbytes;
	}
	for (unsigned id = 0; id < N_CASES; id++) {
		bench->measured[id].name = cases[id].name;
		bench->measured[id].input_nbytes = bench->input_nbytes[cases[id].data];
	}
}

static void free_layouts(struct bench *bench)
{
	for (unsigned data = 0; data < N_DATA; data++)
		layout_free(&bench->layout[data]);
}

static int bench_files(void *context, FILE *json)
{
	const struct file_options *options = context;
	struct bench *bench = calloc(1, sizeof *bench);
	int r;

	if (!bench)
		return fail(-ENOMEM, "%m");
	bench->options = options;
	bench->kind = &kinds[options->kind];
	plan_inputs(bench);
	r = make_directory(bench);
	if (r == 0) {
		r = make_inputs(bench);
		if (r == 0)
			r = run_cases(bench);
		remove_directory(bench);
		free_layouts(bench);
	}
	if (r == 0)
		report(bench, json);
	free(bench);
	return r;
}

static const struct option_spec specs[] = {
	BENCH_ROW_SIZE("of the inputs (default 1G); seven times as much is needed on the disk"),
	BENCH_ROW_DIR("where the files go for the time being (default $TMPDIR, else /tmp)"),
	{ .name = "gsort",
	  .argument = "PROGRAM",
	  .help = "what is measured (default gsort, looked up in $PATH)",
	  .take = option_take_text,
	  OPTION_MEMBER(struct file_options, gsort) },
	BENCH_ROW_REPEAT("rounds (default 5)"),
	{ .name = "only",
	  .argument = "all|keys|records",
	  .help = "plain keys, or records of the sort benchmark (default all)",
	  .take = option_take_choice,
	  OPTION_MEMBER(struct file_options, kind),
	  .choices = kind_choices },
	BENCH_ROW_JSON,
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
	struct file_options options = {
		.whole = { .nbytes = UINT64_C(1) << 30, .n_repeats = 5 },
		.gsort = "gsort",
	};
	int r;

	options.whole.dir = bench_default_dir();
	r = bench_request_parse(&tool, argc, argv, &options);
	if (r > 0)
		return EXIT_SORTED;
	if (r == 0)
		r = bench_measure(&options.whole, bench_files, &options);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}
