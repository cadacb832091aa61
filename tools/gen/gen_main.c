/*
 * gen_main.c - gsort-gen: write test data, the same bytes for the same arguments on every machine
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/cli/process_setup.h"
#include "src/lib/process_hooks.h"
#include "src/options/file_roles.h"
#include "tools/gen/gen.h"
#include "tools/cli/tool_main.h"

#define DEFAULT_N_RECORDS UINT64_C(1048576)

struct gen_options {
	struct record_options record;
	uint64_t prefix_nbytes;
	uint64_t n_records;
	uint64_t nbytes; /* -b; with --gensort: number of the first record */
	int dist;        /* enum gen_dist */
	uint64_t seed;
	int gensort; /* enum gensort_kind, or NO_GENSORT */
	const char *output_path;
};

enum { NO_GENSORT = -1 };

/* The first rows of the table. */
enum { ROW_RECORDS, ROW_BYTES };

static const struct option_choice gensort_kinds[] = {
	{ "ascii", GENSORT_ASCII },
	{ "binary", GENSORT_BINARY },
	{ "skewed", GENSORT_SKEWED },
	{ 0 },
};

static const struct option_choice dists[] = {
	{ "random", GEN_RANDOM },
	{ "sorted", GEN_SORTED },
	{ "reversed", GEN_REVERSED },
	{ "equal", GEN_EQUAL },
	{ "two-keys", GEN_TWO_KEYS },
	{ "zipf", GEN_ZIPF },
	{ "hundred-keys", GEN_HUNDRED_KEYS },
	{ "nearly-sorted", GEN_NEARLY_SORTED },
	{ "sawtooth", GEN_SAWTOOTH },
	{ "organ-pipe", GEN_ORGAN_PIPE },
	{ "clustered", GEN_CLUSTERED },
	{ "nan", GEN_NAN },
	{ 0 },
};

/* All but the default. */
#define OTHER_DISTS                                                                                \
	"sorted reversed equal two-keys zipf hundred-keys nearly-sorted sawtooth organ-pipe "      \
	"clustered nan"

static int parse_distribution(const struct option_spec *spec, const char *argument, void *target)
{
	struct gen_options *options = target;

	for (const struct option_choice *dist = dists; dist->word; dist++)
		if (strcmp(dist->word, argument) == 0) {
			options->dist = dist->value;
			return 0;
		}
	return fail(-EINVAL, "%s: unknown distribution '%s'; use one of random " OTHER_DISTS,
		    option_format_name(spec).text, argument);
}

static const struct option_spec specs[] = {
	[ROW_RECORDS] = { "records", 'n', "COUNT", "write COUNT records (default 1048576)",
			  .parse = option_parse_number,
			  OPTION_MEMBER(struct gen_options, n_records) },
	[ROW_BYTES] = { "bytes", 'b', "SIZE",
			"write as many whole records as fit SIZE bytes; suffixes K to E. With "
			"--gensort: start with record number SIZE (default 0)",
			.parse = option_parse_nbytes, OPTION_MEMBER(struct gen_options, nbytes) },
	{ RECORD_OPTIONS_ROW_TYPE, OPTION_MEMBER(struct gen_options, record) },
	{ RECORD_OPTIONS_ROW_SIZE, OPTION_MEMBER(struct gen_options, record) },
	{ RECORD_OPTIONS_ROW_KEY, OPTION_MEMBER(struct gen_options, record) },
	{ RECORD_OPTIONS_ROW_FIELDS, .offset = offsetof(struct gen_options, record) },
	{ "prefix", 0, "BYTES", "make the first BYTES of the keys equal in all records",
	  .parse = option_parse_number, OPTION_MEMBER(struct gen_options, prefix_nbytes) },
	{ "dist", 'd', "DIST", "set the distribution: random (default) " OTHER_DISTS,
	  .parse = parse_distribution, OPTION_MEMBER(struct gen_options, dist), .choices = dists },
	{ "seed", 0, "N", "seed the random numbers with N (default 1)",
	  .parse = option_parse_number, OPTION_MEMBER(struct gen_options, seed) },
	{ "gensort", 0, "ascii|binary|skewed",
	  "write records of the sort benchmark, the same bytes as gensort 1.5 with -a, without "
	  "options, or with -s: 100 bytes with a 10-byte key",
	  .parse = option_parse_choice, OPTION_MEMBER(struct gen_options, gensort),
	  .choices = gensort_kinds },
	{ "output", 'o', "FILE", "write to FILE instead of standard output",
	  .parse = option_parse_text, OPTION_MEMBER(struct gen_options, output_path) },
	{ BUILTIN_OPTIONS_ROW_COMPLETION },
	{ BUILTIN_OPTIONS_ROW_HELP },
	{ BUILTIN_OPTIONS_ROW_VERSION },
};

static const struct option_conflict conflicts[] = {
	{ { "type", "record-size", "key" }, { "gensort" }, "choose one" },
	{ { "prefix" }, { "gensort" }, "keys of the sort benchmark have no common prefix" },
	{ { "dist" }, { "gensort" }, "the distribution of the sort benchmark is fixed" },
	{ { "seed" }, { "gensort" }, "the records of the sort benchmark are fixed" },
};

static const struct tool tool = {
	.name = GSORT_PROGRAM "-gen",
	.usage = GSORT_PROGRAM
	"-gen [OPTION]...\n"
	"Write test data: the same bytes for the same options on every machine.\n",
	.notes = RECORD_OPTIONS_TYPES,
	.options = { .specs = specs,
		     .n_specs = sizeof specs / sizeof specs[0],
		     .conflicts = conflicts,
		     .n_conflicts = sizeof conflicts / sizeof conflicts[0] },
};

static int write_set(const struct gen_options *options, const struct data_set *data_set)
{
	if (data_set->n_records > INT64_MAX / data_set->record_nbytes)
		return fail(-EFBIG, "%" PRIu64 " records of %" PRIu64 " bytes do not fit in a file",
			    data_set->n_records, data_set->record_nbytes);
	return gen_write_file(data_set, process_syscalls(process_get()), options->output_path,
			      cpus_available(""));
}

static int generate_gensort(const struct gen_options *options)
{
	const uint64_t first = options->nbytes;
	struct gensort gensort;

	if (options->n_records > 0 && options->n_records - 1 > UINT64_MAX - first)
		return fail(-ERANGE,
			    "-b, --bytes: record numbers end at 2^64; %" PRIu64 " + %" PRIu64
			    " is too large",
			    first, options->n_records);
	gensort_init((enum gensort_kind)options->gensort, first, options->n_records, &gensort);
	return write_set(options, &gensort.set);
}

static int generate_layout(const struct gen_options *options, const struct layout *layout,
			   uint64_t n_records)
{
	struct gen gen;

	if (options->prefix_nbytes > layout->record_keys.key_nbytes)
		return fail(-EINVAL,
			    "--prefix=%" PRIu64 " is longer than the key of %" PRIu32 " bytes",
			    options->prefix_nbytes, layout->record_keys.key_nbytes);
	gen_init(layout, (enum gen_dist)options->dist, n_records, options->seed, &gen);
	gen.prefix_nbytes = (uint32_t)options->prefix_nbytes;
	return write_set(options, &gen.set);
}

/*
 * Make complex numbers in total order. In numpy order the normalised key has an extra byte for NaN,
 * which no fraction can give.
 */
static void clear_complex_numeric(struct record_options *record)
{
	record->type.numeric &= record->type.kind != KEY_COMPLEX;
	for (uint32_t i = 0; i < record->n_key_requests; i++)
		record->key_requests[i].key.numeric &= record->key_requests[i].key.kind !=
						       KEY_COMPLEX;
}

static int generate_records(struct gen_options *options, const struct parsed_options *parsed)
{
	struct sort_spec spec = SORT_SPEC_DEFAULTS;
	struct layout layout;
	uint64_t n_records;
	int r;

	clear_complex_numeric(&options->record);
	r = record_options_finalize(&options->record, &spec);
	if (r == 0 && spec.record_spec == RECORD_SPEC_REQUESTS)
		r = record_options_refuse_keys(&options->record);
	if (r == 0)
		r = spec_layout(&spec, &layout);
	if (r < 0)
		return r;
	n_records = option_is_present(&parsed->arguments, ROW_BYTES) ?
			    options->nbytes / layout.record_nbytes :
			    options->n_records;
	r = generate_layout(options, &layout, n_records);
	layout_free(&layout);
	return r;
}

/* Keep messages out of the records. */
static int check_output_conflicts(const char *output_path)
{
	struct file_roles roles = { 0 };
	int r = output_path ? file_roles_add_path(&roles, ROLE_OUTPUT, "-o", output_path) :
			      file_roles_add_stream(&roles, ROLE_OUTPUT, STDOUT_FILENO);

	if (r == 0)
		r = file_roles_add_stream(&roles, ROLE_MESSAGES, STDERR_FILENO);
	file_roles_free(&roles);
	return r;
}

static int generate(struct gen_options *options, const struct parsed_options *parsed)
{
	if (parsed->n_operands)
		return fail(-EINVAL, "unexpected operand '%s'; name the output with -o",
			    parsed->operands[0]);
	if (options->gensort != NO_GENSORT)
		return generate_gensort(options);
	if (option_is_present(&parsed->arguments, ROW_RECORDS) &&
	    option_is_present(&parsed->arguments, ROW_BYTES))
		return fail(-EINVAL, "-n, --records and -b, --bytes cannot be used together");
	return generate_records(options, parsed);
}

static int run_gsort_gen(int argc, char **argv)
{
	struct gen_options options = {
		.n_records = DEFAULT_N_RECORDS,
		.dist = GEN_RANDOM,
		.seed = 1,
		.gensort = NO_GENSORT,
	};
	struct parsed_options parsed;
	int r = tool_parse(&tool, argc, argv, &options, &parsed);

	if (r == 0)
		r = check_output_conflicts(options.output_path);
	if (r == 0)
		r = generate(&options, &parsed);
	record_options_free(&options.record);
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}

int main(int argc, char **argv)
{
	return process_run_main(run_gsort_gen, argc, argv);
}
