/*
 * bench_file.c - time gsort from file to file, as a user would run it
 *
 * Times on a shared machine mean little, ratios within one run mean something. So each figure is a
 * ratio of two medians, and the programs take turns, so that a slow minute affects all of them.
 * Inputs are in the page cache. Each output is removed before the next program starts, so that no
 * program pays for writing back the pages of another.
 *
 * Each case runs once before it is timed, and its output is checked: it must be in order and have
 * the records of the input.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "io/input/input.h"
#include "src/check/verify.h"
#include "tools/bench/bench.h"
#include "tools/gen/gen.h"
#include "tools/gen/gensort.h"

/* --- programs --- */

enum bench_competitor {
	BENCH_CP,
	BENCH_GSORT,         /* plain keys */
	BENCH_GSORT_RECORDS, /* records of the sort benchmark */
	BENCH_SORT_TEXT,     /* xxd | sort | xxd, of plain keys */
	BENCH_SORT_LINES,    /* GNU sort of lines, with all CPUs */
};

struct competitor_params {
	const char *gsort; /* path of the program */
	const char *input, *output;
	const char *temp_dir;
	uint64_t memory_nbytes; /* of programs that take a limit */
};

enum { COMPETITOR_NUMBER_NBYTES = 32 };

static int run_cp(const struct competitor_params *params, struct run_cost *ret_cost)
{
	const char *const argv[] = { "cp", params->input, params->output, NULL };

	return timed_run(argv, ret_cost);
}

static int run_sort_text(const struct competitor_params *params, struct run_cost *ret_cost)
{
	const char *script = "xxd -p -c8 \"$1\" | LC_ALL=C sort | xxd -r -p > \"$2\"";
	const char *const in = params->input, *const out = params->output;
	const char *const argv[] = { "sh", "-c", script, "sh", in, out, NULL };

	return timed_run(argv, ret_cost);
}

static const char *format_memory(const struct competitor_params *params,
				 char text[static COMPETITOR_NUMBER_NBYTES])
{
	snprintf(text, COMPETITOR_NUMBER_NBYTES, "%" PRIu64 "b", params->memory_nbytes);
	return text;
}

static int run_sort_lines(const struct competitor_params *params, struct run_cost *ret_cost)
{
	char memory[COMPETITOR_NUMBER_NBYTES], threads[COMPETITOR_NUMBER_NBYTES];
	const char *const argv[] = {
		"env",
		"LC_ALL=C",
		"sort",
		"-S",
		format_memory(params, memory),
		"--parallel",
		threads,
		"-T",
		params->temp_dir,
		"-o",
		params->output,
		params->input,
		NULL,
	};

	snprintf(threads, sizeof threads, "%u", cpus_available(""));
	return timed_run(argv, ret_cost);
}

static int run_gsort(const struct competitor_params *params, bool are_records,
		     struct run_cost *ret_cost)
{
	char memory[COMPETITOR_NUMBER_NBYTES];
	const char *const argv[] = {
		params->gsort,
		params->input,
		"-o",
		params->output,
		"-S",
		format_memory(params, memory),
		"-T",
		params->temp_dir,
		are_records ? "-R100" : NULL,
		"-k0:b10",
		NULL,
	};

	return timed_run(argv, ret_cost);
}

static int bench_competitor_run(enum bench_competitor competitor,
				const struct competitor_params *params, struct run_cost *ret_cost)
{
	switch (competitor) {
	case BENCH_CP:
		return run_cp(params, ret_cost);
	case BENCH_SORT_TEXT:
		return run_sort_text(params, ret_cost);
	case BENCH_SORT_LINES:
		return run_sort_lines(params, ret_cost);
	case BENCH_GSORT_RECORDS:
		return run_gsort(params, true, ret_cost);
	default:
		return run_gsort(params, false, ret_cost);
	}
}

/* --- report --- */

/* A program on one input. */
struct bench_case {
	const char *name;
	uint64_t input_nbytes;
	unsigned n_costs;
	struct run_cost costs[BENCH_MAX_REPEATS]; /* by round */
};

/*
 * A promise about the time per byte of one case relative to another, or about seconds if
 * denominator is NULL.
 */
struct bench_target {
	const char *name;
	const struct bench_case *numerator, *denominator;
	bool is_lower_bound; /* else an upper bound */
	double bound;
};

struct bench_report {
	uint64_t input_nbytes; /* of most cases */
	unsigned n_cpus;
	const struct bench_case *cases;
	unsigned n_cases;
	const struct bench_target *targets;
	unsigned n_targets;
};

static double elapsed_s(const struct bench_case *bench_case)
{
	uint64_t ns[BENCH_MAX_REPEATS];

	for (unsigned i = 0; i < bench_case->n_costs; i++)
		ns[i] = bench_case->costs[i].elapsed_ns;
	return bench_median_ns(ns, bench_case->n_costs) * 1e-9;
}

/* CPU time depends less on other load than elapsed time. */
static double cpu_s(const struct bench_case *bench_case)
{
	uint64_t ns[BENCH_MAX_REPEATS];

	for (unsigned i = 0; i < bench_case->n_costs; i++)
		ns[i] = bench_case->costs[i].cpu_ns;
	return bench_median_ns(ns, bench_case->n_costs) * 1e-9;
}

static uint64_t peak_rss_nbytes(const struct bench_case *bench_case)
{
	uint64_t peak = 0;

	for (unsigned i = 0; i < bench_case->n_costs; i++)
		if (peak < bench_case->costs[i].peak_rss_nbytes)
			peak = bench_case->costs[i].peak_rss_nbytes;
	return peak;
}

static double measure_ratio(const struct bench_target *target)
{
	const double numerator_s = elapsed_s(target->numerator);

	if (!target->denominator)
		return numerator_s;
	return numerator_s / (double)target->numerator->input_nbytes /
	       (elapsed_s(target->denominator) / (double)target->denominator->input_nbytes);
}

static bool is_target_met(const struct bench_target *target)
{
	const double value = measure_ratio(target);

	return target->is_lower_bound ? value >= target->bound : value <= target->bound;
}

static void bench_report_print(const struct bench_report *report)
{
	printf("%-26s %10s %10s %12s %8s %12s\n", "", "input", "seconds", "on processor", "MB/s",
	       "peak memory");
	for (unsigned i = 0; i < report->n_cases; i++) {
		const struct bench_case *bench_case = &report->cases[i];

		printf("%-26s %10s %10.4f %12.4f %8.0f %12s\n", bench_case->name,
		       size_format(bench_case->input_nbytes).text, elapsed_s(bench_case),
		       cpu_s(bench_case),
		       (double)bench_case->input_nbytes * 1e-6 / elapsed_s(bench_case),
		       size_format(peak_rss_nbytes(bench_case)).text);
	}
	printf("\n%-36s %10s %10s\n", "", "measured", "target");
	for (unsigned i = 0; i < report->n_targets; i++) {
		const struct bench_target *target = &report->targets[i];

		printf("%-36s %10.3f %4s %5g%s\n", target->name, measure_ratio(target),
		       target->is_lower_bound ? ">=" : "<=", target->bound,
		       is_target_met(target) ? "" : "  missed");
	}
}

static void print_json_case(const struct bench_case *bench_case, FILE *stream)
{
	fprintf(stream,
		"\n    {\"name\": \"%s\", \"input_bytes\": %" PRIu64
		", \"median_s\": %.6f, \"cpu_s\": %.6f, \"peak_rss_bytes\": %" PRIu64
		", \"seconds\": [",
		bench_case->name, bench_case->input_nbytes, elapsed_s(bench_case),
		cpu_s(bench_case), peak_rss_nbytes(bench_case));
	for (unsigned i = 0; i < bench_case->n_costs; i++)
		fprintf(stream, "%s%.6f", i ? ", " : "",
			(double)bench_case->costs[i].elapsed_ns * 1e-9);
	fprintf(stream, "]}");
}

static void bench_report_print_json(const struct bench_report *report, FILE *stream)
{
	fprintf(stream,
		"{\n  \"version\": \"%s\",\n  \"processors\": %u,\n  \"size_bytes\": %" PRIu64
		",\n  \"cases\": [",
		GSORT_VERSION, report->n_cpus, report->input_nbytes);
	for (unsigned i = 0; i < report->n_cases; i++) {
		fputs(i ? "," : "", stream);
		print_json_case(&report->cases[i], stream);
	}
	fprintf(stream, "\n  ],\n  \"figures\": [");
	for (unsigned i = 0; i < report->n_targets; i++) {
		const struct bench_target *target = &report->targets[i];

		fprintf(stream,
			"%s\n    {\"name\": \"%s\", \"measured\": %.6f, \"%s\": %g, \"met\": %s}",
			i ? "," : "", target->name, measure_ratio(target),
			target->is_lower_bound ? "at_least" : "at_most", target->bound,
			is_target_met(target) ? "true" : "false");
	}
	fprintf(stream, "\n  ]\n}\n");
}

/* --- cases --- */

/* Chunks or temporary space, the output, and a margin. */
enum { WARM_TIMES_INPUT = 3 };

enum { SMALL_RECORDS = 1000, TEXT_FRACTION = 64 };

enum bench_data_set {
	DATA_RANDOM,
	DATA_SORTED,
	DATA_REVERSED,
	DATA_EQUAL,
	DATA_TEXT,
	DATA_SMALL,
	DATA_GENSORT,
	N_DATA_SETS
};

/* Records. The text is sorted as bytes, and so is its binary form. */
static const struct key u64_key = { .nbytes = 8, .kind = KEY_UNSIGNED };
static const struct key b8_key = { .nbytes = 8, .kind = KEY_BYTES, .big_endian = true };
static const struct key gensort_key = { .nbytes = 10, .kind = KEY_BYTES, .big_endian = true };

static const struct {
	const char *name;
	const struct key *key;
	uint64_t record_nbytes;
	enum gen_dist dist; /* except DATA_GENSORT */
} data_sets[N_DATA_SETS] = {
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
	/* All that follow are of records. */
	CASE_RECORDS_CP,
	CASE_RECORDS_LINES,
	CASE_RECORDS_AMPLE,
	CASE_RECORDS_EIGHTH,
	N_CASES
};

enum case_kind { CASE_KIND_ALL, CASE_KIND_KEYS, CASE_KIND_RECORDS };

static const struct option_choice case_kind_choices[] = { { "all", CASE_KIND_ALL },
							  { "keys", CASE_KIND_KEYS },
							  { "records", CASE_KIND_RECORDS },
							  { 0 } };

/* The cases of a kind: [first, end). */
static const struct case_range {
	enum case_id first, end;
} case_ranges[] = {
	[CASE_KIND_ALL] = { 0, N_CASES },
	[CASE_KIND_KEYS] = { 0, CASE_RECORDS_CP },
	[CASE_KIND_RECORDS] = { CASE_RECORDS_CP, N_CASES },
};

static const struct {
	const char *name;
	enum bench_competitor competitor;
	enum bench_data_set data_set;
	unsigned memory_sixteenths; /* -S, relative to the input */
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

/* Promises, as in struct bench_target; N_CASES: no denominator. */
static const struct {
	const char *name;
	enum case_id numerator, denominator;
	bool is_lower_bound;
	double bound;
} target_specs[] = {
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

enum { N_TARGETS = sizeof target_specs / sizeof target_specs[0] };

struct file_options {
	struct bench_common_options common;
	const char *gsort;
	int case_kind; /* enum case_kind */
};

struct file_bench {
	const struct file_options *options;
	const struct case_range *case_range;
	struct layout layout[N_DATA_SETS];
	char dir[PATH_MAX]; /* temporary */
	char input[N_DATA_SETS][PATH_MAX + 16];
	uint64_t input_nbytes[N_DATA_SETS];
	struct digest digest[N_DATA_SETS];
	char output[PATH_MAX + 16];
	struct bench_case results[N_CASES];
};

static int verify_file(const struct layout *layout, const char *path,
		       struct verify_result *ret_result)
{
	const struct verify_options options = { .layout = layout, .n_threads = cpus_available("") };
	struct input *input;
	int r;

	r = input_open(&syscalls_plain, &path, 1, layout->record_nbytes, &input);
	if (r < 0)
		return r;
	r = verify_input(input, &options, ret_result);
	input_close(input);
	return r;
}

static int write_input(const struct file_bench *bench, enum bench_data_set data_set)
{
	const uint64_t n = bench->input_nbytes[data_set] / data_sets[data_set].record_nbytes;
	struct gensort gensort;
	struct gen gen;

	if (data_set == DATA_GENSORT) {
		gensort_init(GENSORT_ASCII, 0, n, &gensort);
		return gen_write_file(&gensort.set, tool_syscalls(), bench->input[data_set],
				      cpus_available(""));
	}
	gen_init(&bench->layout[data_set], data_sets[data_set].dist, n, 1, &gen);
	return gen_write_file(&gen.set, tool_syscalls(), bench->input[data_set],
			      cpus_available(""));
}

/* Make the layout, file and digest of a data set. */
static int make_input(struct file_bench *bench, enum bench_data_set data_set)
{
	const struct layout_params request = {
		.record_nbytes = data_sets[data_set].record_nbytes,
		.keys = data_sets[data_set].key,
		.n_keys = 1,
	};
	struct verify_result result;
	int r = layout_make(&request, &bench->layout[data_set]);

	if (r == 0)
		r = write_input(bench, data_set);
	if (r == 0)
		r = verify_file(&bench->layout[data_set], bench->input[data_set], &result);
	if (r == 0)
		bench->digest[data_set] = result.digest;
	return r;
}

/* Make the data sets of the cases, each once. */
static int make_inputs(struct file_bench *bench)
{
	int r = 0;

	for (unsigned id = bench->case_range->first; r == 0 && id < bench->case_range->end; id++)
		if (!bench->layout[cases[id].data_set].record_nbytes)
			r = make_input(bench, cases[id].data_set);
	return r;
}

/* Check that the output has the records of the input, sorted unless it is a copy. */
static int check_output(struct file_bench *bench, enum case_id id)
{
	struct verify_result result;
	int r;

	r = verify_file(&bench->layout[cases[id].data_set], bench->output, &result);
	if (r < 0)
		return r;
	if (cases[id].competitor != BENCH_CP && result.first_disorder)
		return fail(-EBADMSG, "%s: the output is not sorted: record %" PRIu64,
			    cases[id].name, result.first_disorder);
	if (!digest_equal(result.digest, bench->digest[cases[id].data_set]))
		return fail(-EBADMSG, "%s: the output does not hold the records of the input",
			    cases[id].name);
	return 0;
}

/* Removes the previous output first, and with it its dirty pages. */
static int run_case(struct file_bench *bench, enum case_id id, struct run_cost *ret_cost)
{
	const uint64_t nbytes = bench->input_nbytes[cases[id].data_set];
	const struct competitor_params job = {
		.gsort = bench->options->gsort,
		.input = bench->input[cases[id].data_set],
		.output = bench->output,
		.temp_dir = bench->dir,
		.memory_nbytes = nbytes / 16 * cases[id].memory_sixteenths + 1,
	};

	unlink(bench->output);
	warm_memory(WARM_TIMES_INPUT * nbytes);
	return bench_competitor_run(cases[id].competitor, &job, ret_cost);
}

/* Run and check each case once; then time all of them in turn. */
static int run_cases(struct file_bench *bench)
{
	const unsigned n_repeats = bench->options->common.n_repeats;
	int r = 0;

	for (unsigned round = 0; r == 0 && round <= n_repeats; round++) {
		fprintf(stderr, round ? "round %u of %u\n" : "checking the results\n", round,
			n_repeats);
		for (unsigned id = bench->case_range->first; r == 0 && id < bench->case_range->end;
		     id++) {
			struct bench_case *results = &bench->results[id];
			struct run_cost cost;

			r = run_case(bench, (enum case_id)id, &cost);
			if (r == 0 && round == 0)
				r = check_output(bench, (enum case_id)id);
			else if (r == 0)
				results->costs[results->n_costs++] = cost;
		}
	}
	return r;
}

/* json may be NULL. */
static void print_report(const struct file_bench *bench, FILE *json)
{
	const struct bench_case *results = bench->results;
	const struct case_range *range = bench->case_range;
	struct bench_target targets[N_TARGETS];
	struct bench_report report = {
		.input_nbytes = bench->options->common.nbytes,
		.n_cpus = cpus_available(""),
		.cases = results + range->first,
		.n_cases = range->end - range->first,
		.targets = targets,
	};

	for (unsigned i = 0; i < N_TARGETS; i++) {
		if (target_specs[i].numerator < range->first ||
		    target_specs[i].numerator >= range->end)
			continue;
		targets[report.n_targets++] = (struct bench_target){
			.name = target_specs[i].name,
			.numerator = &results[target_specs[i].numerator],
			.denominator = target_specs[i].denominator == N_CASES ?
					       NULL :
					       &results[target_specs[i].denominator],
			.is_lower_bound = target_specs[i].is_lower_bound,
			.bound = target_specs[i].bound,
		};
	}
	bench_report_print(&report);
	if (json)
		bench_report_print_json(&report, json);
}

static int make_directory(struct file_bench *bench)
{
	const int r = bench_make_directory(bench->options->common.dir, bench->dir);

	if (r < 0)
		return r;
	for (unsigned data_set = 0; data_set < N_DATA_SETS; data_set++)
		snprintf(bench->input[data_set], sizeof bench->input[data_set], "%s/%s", bench->dir,
			 data_sets[data_set].name);
	snprintf(bench->output, sizeof bench->output, "%s/output", bench->dir);
	return 0;
}

static void remove_directory(const struct file_bench *bench)
{
	for (unsigned data_set = 0; data_set < N_DATA_SETS; data_set++)
		unlink(bench->input[data_set]);
	unlink(bench->output);
	rmdir(bench->dir);
}

static void set_input_sizes(struct file_bench *bench)
{
	const uint64_t nbytes = bench->options->common.nbytes;

	for (unsigned data_set = 0; data_set < N_DATA_SETS; data_set++) {
		const uint64_t record_nbytes = data_sets[data_set].record_nbytes;
		const uint64_t n_records = data_set == DATA_SMALL ? SMALL_RECORDS :
					   data_set == DATA_TEXT  ? nbytes / TEXT_FRACTION / 8 :
								    nbytes / record_nbytes;

		bench->input_nbytes[data_set] = n_records * record_nbytes;
	}
	for (unsigned id = 0; id < N_CASES; id++) {
		bench->results[id].name = cases[id].name;
		bench->results[id].input_nbytes = bench->input_nbytes[cases[id].data_set];
	}
}

static void free_layouts(struct file_bench *bench)
{
	for (unsigned data_set = 0; data_set < N_DATA_SETS; data_set++)
		layout_free(&bench->layout[data_set]);
}

static int bench_files(void *context, FILE *json)
{
	const struct file_options *options = context;
	struct file_bench *bench = calloc(1, sizeof *bench);
	int r;

	if (!bench)
		return fail(-ENOMEM, "%m");
	bench->options = options;
	bench->case_range = &case_ranges[options->case_kind];
	set_input_sizes(bench);
	r = make_directory(bench);
	if (r == 0) {
		r = make_inputs(bench);
		if (r == 0)
			r = run_cases(bench);
		remove_directory(bench);
		free_layouts(bench);
	}
	if (r == 0)
		print_report(bench, json);
	free(bench);
	return r;
}

static const struct option_spec specs[] = {
	BENCH_ROW_SIZE("size of the inputs (default 1G); needs seven times as much space"),
	BENCH_ROW_DIR("directory for temporary files (default $TMPDIR, else /tmp)"),
	{ "gsort", 0, "PROGRAM", "the gsort to time (default gsort, looked up in $PATH)",
	  .parse = option_parse_text, OPTION_MEMBER(struct file_options, gsort) },
	BENCH_ROW_REPEAT("number of rounds (default 5)"),
	{ "only", 0, "all|keys|records",
	  "only plain keys, or records of the sort benchmark (default all)",
	  .parse = option_parse_choice, OPTION_MEMBER(struct file_options, case_kind),
	  .choices = case_kind_choices },
	BENCH_ROW_JSON,
	{ BUILTIN_OPTIONS_ROW_HELP },
	{ BUILTIN_OPTIONS_ROW_VERSION },
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
		.common = { .nbytes = UINT64_C(1) << 30, .n_repeats = 5 },
		.gsort = "gsort",
	};

	return bench_run(&tool, argc, argv, &options.common, bench_files);
}
