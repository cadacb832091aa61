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

/* What a record is. Text is sorted as bytes, so is its binary form. */
static const struct key u64_key = { .nbytes = 8, .kind = KEY_UNSIGNED };
static const struct key b8_key = { .nbytes = 8, .kind = KEY_BYTES, .big_endian = true };
static const struct key gensort_key = { .nbytes = 10, .kind = KEY_BYTES, .big_endian = true };

static const struct {
	const char *name;
	const struct key *key;
	uint64_t record_nbytes;
	enum gen_dist dist; /* but of DATA_GENSORT */
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
	/* Records, to the end. */
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

/* What is promised, as in struct bench_target; N_CASES stands for no case. */
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
	char dir[PATH_MAX]; /* made for this run, removed after it */
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
		return gen_write_file(&gensort.set, bench->input[data_set], cpus_available(""));
	}
	gen_init(&bench->layout[data_set], data_sets[data_set].dist, n, 1, &gen);
	return gen_write_file(&gen.set, bench->input[data_set], cpus_available(""));
}

/* Layout, file and digest of a data set. */
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

/* The data sets of the cases; several may have the same one. */
static int make_inputs(struct file_bench *bench)
{
	int r = 0;

	for (unsigned id = bench->case_range->first; r == 0 && id < bench->case_range->end; id++)
		if (!bench->layout[cases[id].data_set].record_nbytes)
			r = make_input(bench, cases[id].data_set);
	return r;
}

/* The output of a case must hold its input, sorted unless it is a mere copy. */
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

/* The output of the case before is gone first, and its dirty pages with it. */
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

/* Every case once, checked; then all of them in turn, timed. */
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

/* json: NULL, or where the figures go as well. */
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
	const int n = snprintf(bench->dir, sizeof bench->dir, "%s/gsort-bench.XXXXXX",
			       bench->options->common.dir);

	if (n < 0 || (size_t)n >= sizeof bench->dir)
		return fail(-ENAMETOOLONG, "%s: %m", bench->options->common.dir);
	if (!mkdtemp(bench->dir))
		return fail(-errno, "%s: no directory can be made here: %m",
			    bench->options->common.dir);
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
	BENCH_ROW_SIZE("of the inputs (default 1G); seven times as much is needed on the disk"),
	BENCH_ROW_DIR("where the files go for the time being (default $TMPDIR, else /tmp)"),
	{ .name = "gsort",
	  .argument = "PROGRAM",
	  .help = "what is measured (default gsort, looked up in $PATH)",
	  .parse = option_parse_text,
	  OPTION_MEMBER(struct file_options, gsort) },
	BENCH_ROW_REPEAT("rounds (default 5)"),
	{ .name = "only",
	  .argument = "all|keys|records",
	  .help = "plain keys, or records of the sort benchmark (default all)",
	  .parse = option_parse_choice,
	  OPTION_MEMBER(struct file_options, case_kind),
	  .choices = case_kind_choices },
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
		.common = { .nbytes = UINT64_C(1) << 30, .n_repeats = 5 },
		.gsort = "gsort",
	};
	int r;

	options.common.dir = bench_default_dir();
	r = bench_parse_options(&tool, argc, argv, &options);
	if (r > 0)
		return EXIT_SORTED;
	if (r == 0)
		r = bench_measure(&options.common, bench_files, &options);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}
