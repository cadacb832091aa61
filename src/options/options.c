/*
 * options.c - all options of gsort (see options.h)
 *
 * A row per option, in the order of --help. Rules that depend on values are in options_finalize().
 */
#include "src/options/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "io/file/path_identity.h"
#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/comm/comm.h"

/* More bounds that catch typing errors. */
enum {
	MAX_PARTITIONS = 1024,
	MAX_RANKS = 1 << 20,
	MAX_SHARDS = 1000000,
};

/* --- Values of single options --- */

static int parse_temp_compress(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;

	if (compression_parse(argument, &options->spec.compression) < 0)
		return fail(-EINVAL,
			    "%s: '%s' is invalid; use auto, none, delta, zstd or zstd:LEVEL "
			    "(LEVEL 1 to %d)",
			    option_format_name(spec).text, argument, compression_max_level());
	return 0;
}

static const char *temp_compress_word(unsigned i, char text[static OPTION_WORD_NBYTES])
{
	static const char *const modes[] = { "auto", "none", "delta", "zstd" };

	(void)text;
	return i < sizeof modes / sizeof modes[0] ? modes[i] : NULL;
}

int options_parse_zstd(const struct option_spec *spec, const char *argument, void *target)
{
	if (compression_parse_level(argument, option_member(spec, target)) < 0)
		return fail(-EINVAL, "--zstd: '%s' is not a level from 1 to %d", argument,
			    compression_max_level());
	return 0;
}

/* Append a path to the array of *n paths. */
static int append_path(const char *const **array, size_t *n, const char *path)
{
	const char **grown = reallocarray((void *)(uintptr_t)*array, *n + 1, sizeof *grown);

	if (!grown)
		return fail(-ENOMEM, "%s: no memory for another path", path);
	grown[(*n)++] = path;
	*array = grown;
	return 0;
}

int options_add_temp_dir(struct options *options, const char *path)
{
	return append_path(&options->spec.temp_dirs, &options->spec.n_temp_dirs, path);
}

static int parse_temp_dir(const struct option_spec *spec, const char *argument, void *target)
{
	if (!*argument)
		return fail(-EINVAL, "%s: DIR cannot be empty", option_format_name(spec).text);
	return options_add_temp_dir(target, argument);
}

/* Parse NAME=RATE, n characters, into its member. */
static int parse_rate(const char *option, const char *text, size_t n, struct rank_rates *rates)
{
	const char *equals_sign = memchr(text, '=', n);
	char number[32] = "";
	size_t n_digits;

	if (!equals_sign)
		return fail(-EINVAL, "%s: '%.*s' is not a rate, such as disk=2G", option, (int)n,
			    text);
	n_digits = n - (size_t)(equals_sign + 1 - text);
	if (n_digits < sizeof number)
		memcpy(number, equals_sign + 1, n_digits);
	for (enum rank_resource link = 0; link < N_RANK_RESOURCES; link++) {
		const char *name = rank_resource_name(link);

		if (strlen(name) == (size_t)(equals_sign - text) &&
		    memcmp(name, text, (size_t)(equals_sign - text)) == 0)
			return size_parse_option(option, number, SIZE_OF_DATA, &rates->per_s[link]);
	}
	return fail(-EINVAL, "%s: '%.*s' is invalid; use disk, network, messages or processors",
		    option, (int)(equals_sign - text), text);
}

static int parse_rates(const struct option_spec *spec, const char *argument, void *target)
{
	struct rank_rates rates = { 0 };
	int r = 0;

	for (const char *item = argument; item && r == 0;) {
		const size_t n = strcspn(item, ",");

		r = parse_rate(option_format_name(spec).text, item, n, &rates);
		item = item[n] ? item + n + 1 : NULL;
	}
	if (r == 0)
		((struct options *)target)->rank_rates = rates;
	return r;
}

/* Parse digits and advance *cursor past them. Return false if there are none. */
static bool parse_digits(const char **cursor, unsigned long *ret_number)
{
	char *end;

	if (**cursor < '0' || **cursor > '9')
		return false;
	*ret_number = strtoul(*cursor, &end, 10);
	*cursor = end;
	return true;
}

int options_parse_shard(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	unsigned long shard, n_shards;
	const char *cursor = argument;

	(void)spec;
	if (!parse_digits(&cursor, &shard) || *cursor++ != '/' ||
	    !parse_digits(&cursor, &n_shards) || *cursor || shard < 1 || shard > n_shards ||
	    n_shards > MAX_SHARDS)
		return fail(-EINVAL,
			    "--shard: '%s' is not K/P with 1 <= K <= P <= %d, for example 2/8",
			    argument, MAX_SHARDS);
	options->spec.shard = (uint32_t)shard;
	options->spec.n_shards = (uint32_t)n_shards;
	return 0;
}

/* Parse a number of a list, and advance *cursor past it and its comma. */
static bool parse_gpu(const char **cursor, unsigned *ret_gpu)
{
	unsigned long gpu;

	if (!parse_digits(cursor, &gpu) || gpu > INT_MAX)
		return false;
	if (**cursor == ',' && !(*cursor)[1])
		return false;
	if (**cursor && *(*cursor)++ != ',')
		return false;
	*ret_gpu = (unsigned)gpu;
	return true;
}

static int parse_gpu_list(const char *argument, struct gpu_list *ret_list)
{
	enum { MAX_GPUS = sizeof ret_list->numbers / sizeof ret_list->numbers[0] };
	struct gpu_list list = { .all = strcmp(argument, "all") == 0 };
	const char *cursor = list.all ? "" : argument;

	while (!list.all && (*cursor || list.n == 0)) {
		if (list.n == MAX_GPUS || !parse_gpu(&cursor, &list.numbers[list.n]))
			return fail(-EINVAL,
				    "--gpus: '%s' is not a list of at most %d device numbers, such "
				    "as 0,1, or 'all'",
				    argument, MAX_GPUS);
		list.n++;
	}
	*ret_list = list;
	return 0;
}

static int parse_gpus(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;

	(void)spec;
	return parse_gpu_list(argument, &options->spec.gpus);
}

static unsigned count_gpu(const struct gpu_list *list, unsigned gpu)
{
	unsigned n = 0;

	for (unsigned i = 0; i < list->n; i++)
		n += list->numbers[i] == gpu;
	return n;
}

/* Compare two lists in any order: a number may occur several times. */
static int same_gpus(const char *first, const char *second)
{
	struct gpu_list a = { .n = 0 }, b = { .n = 0 };
	int r = parse_gpu_list(first, &a);

	if (r == 0)
		r = parse_gpu_list(second, &b);
	if (r < 0)
		return r;
	for (unsigned i = 0; i < a.n; i++)
		if (count_gpu(&a, a.numbers[i]) != count_gpu(&b, a.numbers[i]))
			return 0;
	return a.n == b.n && a.all == b.all;
}

/* --- The table --- */

const struct option_choice option_check_modes[] = { { "diagnose-first", MODE_CHECK },
						    { "quiet", MODE_CHECK_QUIET },
						    { "silent", MODE_CHECK_QUIET },
						    { 0 } };

const struct option_choice option_backends[] = {
	{ "auto", BACKEND_AUTO }, { "cuda", BACKEND_CUDA }, { "cpu", BACKEND_CPU }, { 0 }
};

static const struct option_choice kept_records[] = { { "first", false }, { "last", true }, { 0 } };

static const struct option_choice split_units[] = { { "records", false }, { "keys", true }, { 0 } };

const struct option_choice option_progress_modes[] = { { "auto", PROGRESS_OPTION_AUTO },
						       { "always", PROGRESS_OPTION_ALWAYS },
						       { "never", PROGRESS_OPTION_NEVER },
						       { 0 } };

const struct option_choice option_explain_formats[] = { { "text", EXPLAIN_TEXT },
							{ "json", EXPLAIN_JSON },
							{ 0 } };

const struct option_choice option_shared_memory_modes[] = { { "auto", false },
							    { "off", true },
							    { 0 } };

#define MEMBER(member) OPTION_MEMBER(struct options, member)

_Static_assert(DEFAULT_ZSTD_LEVEL == 3, "the default in the row of --zstd");

static const struct option_spec specs[] = {
	{ RECORD_OPTIONS_ROW_TYPE, .section = "Records and keys", MEMBER(record) },
	{ RECORD_OPTIONS_ROW_SIZE, MEMBER(record) },
	{ RECORD_OPTIONS_ROW_KEY, MEMBER(record) },
	{ RECORD_OPTIONS_ROW_FIELDS, .offset = offsetof(struct options, record) },
	{ "reverse", 'r', NULL,
	  "sort all keys in descending order; equal records keep their input order",
	  .parse = option_parse_flag, MEMBER(record.reverse) },
	{ RECORD_OPTIONS_ROW_NAN, MEMBER(record.nan_position) },
	{ "unique", 'u', NULL, "keep only one of the records with equal keys, see --keep",
	  .parse = option_parse_flag, MEMBER(spec.unique) },
	{ "keep", 0, "first|last",
	  "with -u: keep the first or the last of equal records in the input",
	  .parse = option_parse_choice, MEMBER(spec.keep_last), .choices = kept_records,
	  .required = "unique" },
	{ "stable", 's', NULL, "accept the option of GNU sort; every sort is stable",
	  .parse = option_parse_nothing },

	{ "output", 'o', "FILE",
	  "write to FILE, which may be an input; FILE is replaced only when the sort succeeds",
	  .section = "Operation and output", .parse = option_parse_text, MEMBER(spec.output_path) },
	{ "check", 'c', "diagnose-first|quiet|silent",
	  "check the order and report the first disorder; with quiet or silent, report nothing; "
	  "with -u, equal keys are disorder",
	  .default_value = "diagnose-first", .cli_only = true, .parse = option_parse_choice,
	  MEMBER(mode), .choices = option_check_modes },
	{ "C", 'C', NULL, "check the order without a message, like --check=quiet", .cli_only = true,
	  .parse = option_parse_value, MEMBER(mode), .value = MODE_CHECK_QUIET },
	{ "merge", 'm', NULL, "merge inputs that are sorted already", .parse = option_parse_value,
	  MEMBER(mode), .value = MODE_MERGE },
	{ "shard", 0, "K/P", "with -m: write only the K-th of P shards of equal length",
	  .parse = options_parse_shard, .offset = offsetof(struct options, spec.shard),
	  .member_nbytes = sizeof(uint32_t[2]) /* n_shards follows */, .required = "merge",
	  .mpi_support = OPTION_MPI_NO,
	  .mpi_substitute = "ranks share a merge already; or run " GSORT_PROGRAM
			    " -m --shard=K/P for each K" },
	{ "split", 0, "P",
	  "split the output into P part files: -o names a directory of part-0000 and so on, and "
	  "manifest.json, which appears complete or not at all",
	  .max = PART_MANIFEST_MAX_PARTS, .parse = option_parse_count, MEMBER(spec.n_part_files) },
	{ "split-by", 0, "records|keys",
	  "split after equal numbers of records, or between keys, so that no key is in two part "
	  "files (always with -u)",
	  .parse = option_parse_choice, MEMBER(spec.split_by_keys), .choices = split_units,
	  .required = "split" },
	{ "explain", 0, "text|json", "print the plan and exit", .default_value = "text",
	  .parse = option_parse_choice, MEMBER(explain), .choices = option_explain_formats,
	  .cli_only = true, .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "assume-size", 0, "SIZE", "with --explain: plan for SIZE bytes from a pipe",
	  .parse = option_parse_size, MEMBER(assumed_nbytes), .cli_only = true,
	  .required = "explain", .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "ranks", 0, "N", "with --explain: plan for N MPI ranks", .max = MAX_RANKS,
	  .parse = option_parse_count, MEMBER(spec.n_assumed_ranks), .cli_only = true,
	  .required = "explain", .mpi_support = OPTION_MPI_NO,
	  .mpi_substitute = "leave it out to plan for these ranks, or use " GSORT_PROGRAM
			    " --explain" },
	{ "assume-rates", 0, "LIST",
	  "with --explain of ranks: use these rates of each rank per second, for example "
	  "disk=2G,network=3G,messages=4000,processors=1G",
	  .parse = parse_rates, .cli_only = true, .required = "explain",
	  .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "verify", 0, NULL, "read the output back after writing and check it again",
	  .parse = option_parse_flag, MEMBER(spec.verify) },
	{ "fsync", 0, NULL, "sync the output to stable storage before exit",
	  .parse = option_parse_flag, MEMBER(spec.fsync) },
	{ "files0-from", 0, "FILE", "read NUL-terminated input names from FILE (-: standard input)",
	  .parse = option_parse_text, MEMBER(files0_path) },

	{ FRAMING_OPTIONS_ROW_SKIP_BYTES,
	  .help = "skip an N-byte header in each input; copy the first one to the output",
	  .section = "Input and output format", MEMBER(spec.skip_nbytes) },
	{ FRAMING_OPTIONS_ROW_PARTIAL,
	  .help = "refuse an incomplete last record (default), append it to the output, or drop it",
	  MEMBER(spec.partial) },
	{ FRAMING_OPTIONS_ROW_FORMAT, MEMBER(spec.format) },
	{ "limit", 0, "N", "write only the first N records of the result",
	  .parse = option_parse_number, MEMBER(spec.limit) },
	{ "count", 0, NULL, "with -u: write the number of equal records before each record, as u64",
	  .parse = option_parse_flag, MEMBER(spec.count), .required = "unique" },
	{ "keys-only", 0, NULL, "write the keys instead of the records", .parse = option_parse_flag,
	  MEMBER(spec.keys_only) },
	{ "argsort", 0, NULL,
	  "write the records' positions in the input, from 0, as u64, instead of the records",
	  .parse = option_parse_flag, MEMBER(spec.argsort) },

	{ "zstd", 0, "LEVEL", "compress the output (default if it is named *.zst)",
	  .default_value = "3", .parse = options_parse_zstd, MEMBER(spec.zstd_level) },

	{ "buffer-size", 'S', "SIZE",
	  "limit host memory for data; default: half of the memory available to this process",
	  .section = "Resources (SIZE: number and b, K (default), M, G, T or %)",
	  .parse = option_parse_size, MEMBER(spec.memory_nbytes) },
	{ "device-memory", 0, "SIZE",
	  "limit the memory on each GPU; default: 90 % of its free memory",
	  .parse = option_parse_size, MEMBER(spec.device_memory_nbytes) },
	{ "temporary-directory", 'T', "DIR",
	  "store spilled runs in DIR; repeat to use several directories; default $TMPDIR, else "
	  "/tmp",
	  .repeats = true, .parse = parse_temp_dir },
	{ "temp-limit", 0, "SIZE", "limit temporary space; fail before it is exceeded",
	  .parse = option_parse_limit, MEMBER(spec.temp_limit_nbytes) },
	{ "checkpoint", 0, "DIR", "store runs in DIR; rerun the same command to resume",
	  .parse = option_parse_text, MEMBER(spec.checkpoint_path) },
	{ "temp-compress", 0, "MODE",
	  "compress spilled runs: auto (default), none, delta, zstd[:LEVEL]",
	  .get_word = temp_compress_word, .parse = parse_temp_compress, MEMBER(spec.compression) },
	{ "parallel", 0, "N", "use N CPU threads; default: all available",
	  .max = OPTION_MAX_THREADS, .parse = option_parse_count, MEMBER(spec.n_threads) },
	{ "batch-size", 0, "N", "merge at most N runs at once", .min = 2,
	  .parse = option_parse_count, MEMBER(spec.batch_size) },
	{ "partitions", 0, "N", "merge N partitions of the output in parallel",
	  .max = MAX_PARTITIONS, .parse = option_parse_count, MEMBER(spec.n_partitions) },
	{ "backend", 0, "auto|cuda|cpu", "sort and merge on this back end; default auto",
	  .parse = option_parse_choice, MEMBER(spec.backend), .choices = option_backends },
	{ "gpus", 0, "LIST", "sort on these GPUs, for example 0,1, or on all", .parse = parse_gpus,
	  .same_value = same_gpus },

	{ "progress", 0, "auto|always|never",
	  "show a progress line on standard error; auto (default): on a terminal, after a second; "
	  "SIGUSR1 prints it once",
	  .section = "Diagnostics", .parse = option_parse_choice, MEMBER(progress),
	  .cli_only = true, .choices = option_progress_modes,
	  .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "stats", 0, NULL,
	  "print a table of bytes, times and rates of each stage on standard error at the end",
	  .parse = option_parse_flag, MEMBER(stats), .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "stats-json", 0, "FILE", "write statistics to FILE as JSON", .parse = option_parse_text,
	  MEMBER(report_paths[REPORT_STATS_JSON]), .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "trace", 0, "FILE", "write a timeline to FILE in the Chrome trace event format",
	  .parse = option_parse_text, MEMBER(report_paths[REPORT_TRACE]),
	  .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "report", 0, "FILE", "write an HTML report to FILE: plan, phases, activity, memory",
	  .parse = option_parse_text, MEMBER(report_paths[REPORT_HTML]),
	  .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "debug", 0, NULL, "print the parsed keys and the first encoded records",
	  .parse = option_parse_flag, MEMBER(debug), .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ "timeout", 0, "SECONDS",
	  "abort if a rank has not answered for SECONDS; 0: never; default 60",
	  .max = OPTION_MAX_TIMEOUT_S, .parse = option_parse_number, MEMBER(timeout_s),
	  .cli_only = true, .mpi_support = OPTION_MPI_ONLY },
	{ "shared-memory", 0, "auto|off",
	  "read runs in the memory of other ranks of the same machine (auto, default), or "
	  "exchange all runs as messages (off)",
	  .parse = option_parse_choice, MEMBER(spec.disable_shared_memory),
	  .choices = option_shared_memory_modes, .mpi_support = OPTION_MPI_ONLY },
	{ BUILTIN_OPTIONS_ROW_COMPLETION, .cli_only = true, .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ BUILTIN_OPTIONS_ROW_HELP, .cli_only = true, .mpi_support = OPTION_MPI_SAME_ON_ALL },
	{ BUILTIN_OPTIONS_ROW_VERSION, .cli_only = true, .mpi_support = OPTION_MPI_SAME_ON_ALL },
};

static const struct option_conflict conflicts[] = {
	{ { "check" }, { "C" }, "choose one of them" },
	{ { "check", "C" }, { "output", "checkpoint" }, "a check writes nothing" },
	{ { "check", "C" }, { "merge" }, "a check merges nothing" },
	{ { "check", "C" }, { "explain" }, "a check has no plan" },
	{ { "check", "C" },
	  { "verify", "fsync", "limit", "count", "keep", "keys-only", "argsort", "zstd", "split" },
	  "a check writes nothing" },
	{ { "explain" }, { "report", "stats", "stats-json", "trace" }, "nothing is sorted" },
	{ { "checkpoint" }, { "merge" }, "merge the files again instead" },
	{ { "checkpoint" }, { "temporary-directory" }, "temporary data is in the checkpoint" },
	{ { "nan" }, { "split" }, "a part manifest cannot record it" },
	{ { "shard" }, { "split" }, "a shard has no part manifest" },
	{ { "shard" }, { "unique" }, "equal records could be in two shards" },
	{ { "shard" }, { "limit" }, "shards are made of all records" },
	{ { "count", "keys-only" }, { "argsort" }, "choose what is written" },
	{ { "verify" }, { "argsort" }, "positions have no order to verify" },
};

const struct option_table options_table = {
	.specs = specs,
	.n_specs = sizeof specs / sizeof specs[0],
	.conflicts = conflicts,
	.n_conflicts = sizeof conflicts / sizeof conflicts[0],
};

/* --- What options mean together --- */

bool options_is_check(const struct options *options)
{
	return options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET;
}

const char *options_output_path(const struct options *options)
{
	return options->spec.output_endpoint.kind == ENDPOINT_PATH ? options->spec.output_path :
								     NULL;
}

int options_add_input(struct options *options, const char *path)
{
	return append_path(&options->spec.inputs, &options->spec.n_inputs, path);
}

static int check_inputs(const struct options *options)
{
	const struct sort_spec *spec = &options->spec;
	size_t n_stdin = 0;

	if (spec->n_inputs > 1 && options_is_check(options))
		return fail(-EINVAL, "%s: only one file can be checked, not also '%s'",
			    options->mode == MODE_CHECK ? "-c, --check" : "-C", spec->inputs[1]);
	for (size_t i = 0; i < spec->n_inputs; i++)
		n_stdin += !strcmp(spec->inputs[i], "-");
	if (n_stdin > 1)
		return fail(-EINVAL, "'-': standard input can be read only once, not %zu times",
			    n_stdin);
	return 0;
}

/* Check options that replace or shorten the records of the output. */
static int check_output_format(const struct options *options)
{
	const struct sort_spec *spec = &options->spec;
	const struct {
		const char *option;
		bool is_given;
	} restrictions[] = { { "--limit", spec->limit != SORT_SPEC_UNLIMITED },
			     { "--count", spec->count },
			     { "--keys-only", spec->keys_only },
			     { "--argsort", spec->argsort } };

	if (spec->format == FORMAT_NPY && spec->skip_nbytes)
		return fail(-EINVAL, "--skip-bytes and --format=npy cannot be used together");
	for (size_t i = 0; i < sizeof restrictions / sizeof restrictions[0]; i++)
		if (restrictions[i].is_given && spec->partial == PARTIAL_KEEP)
			return fail(-EINVAL, "--partial=keep and %s cannot be used together",
				    restrictions[i].option);
	return 0;
}

static int check_output_is_file(const struct options *options)
{
	const struct sort_spec *spec = &options->spec;
	const char *path = options_output_path(options);
	/* The name of an output that the caller has open. */
	const char *label = options->output_label ? options->output_label : "standard output";
	const struct {
		bool is_given;
		const char *option, *kind;
	} rows[] = { { spec->verify, "--verify", "file" },
		     { spec->checkpoint_path, "--checkpoint", "file" },
		     { spec->n_part_files, "--split", "directory" },
		     { spec->fsync, "--fsync", "file" } };

	if (path)
		label = path_to_descriptor(path) >= 0 ? path : NULL; /* a file of its own */
	for (size_t i = 0; label && i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].is_given)
			return fail(-EINVAL, "%s requires -o with the name of a %s, not %s",
				    rows[i].option, rows[i].kind, label);
	return 0;
}

int options_default_temp_dir(struct options *options, const char *default_path)
{
	const struct sort_spec *spec = &options->spec;

	return spec->n_temp_dirs ?
		       0 :
		       options_add_temp_dir(options, spec->checkpoint_path ? spec->checkpoint_path :
									     default_path);
}

int options_finalize(struct options *options, const char *default_temp_dir)
{
	struct sort_spec *spec = &options->spec;
	int r;

	r = record_options_finalize(&options->record, spec);
	if (r < 0)
		return r;
	spec->merge_inputs = options->mode == MODE_MERGE;
	spec->check_only = options_is_check(options);
	spec->measure_peak_rates = options->stats || options->report_paths[REPORT_STATS_JSON] ||
				   options->report_paths[REPORT_HTML];
	spec->zstd_level = option_find_zstd_level(spec->output_path, spec->zstd_level);
	/* Standard output by any name is written from its current offset. */
	if (spec->output_path && path_to_descriptor(spec->output_path) == STDOUT_FILENO)
		spec->output_path = NULL;
	r = check_inputs(options);
	if (r < 0)
		return r;
	if (spec->gpus.n || spec->gpus.all) {
		if (spec->backend == BACKEND_CPU)
			return fail(-EINVAL, "--gpus and --backend=cpu cannot be used together");
		spec->backend = BACKEND_CUDA; /* without a fallback to the CPU */
	}
	r = check_output_format(options);
	if (r == 0)
		r = check_output_is_file(options);
	return r < 0 ? r : options_default_temp_dir(options, default_temp_dir);
}

void options_default_resources(struct sort_spec *spec)
{
	unsigned first_rank;
	const unsigned n = spec->comm ? comm_host_size(spec->comm, &first_rank) : 1;
	const unsigned n_cpus = cpus_available("");
	/* A rank that is bound to some CPUs has its share already. */
	const bool is_bound = (long)n_cpus < sysconf(_SC_NPROCESSORS_ONLN);

	if (spec->memory_nbytes == 0)
		spec->memory_nbytes = memory_available_nbytes("") / 2 / n;
	if (spec->n_threads == 0)
		spec->n_threads = is_bound ? n_cpus : n_cpus > n ? n_cpus / n : 1;
}

void options_free(struct options *options)
{
	record_options_free(&options->record);
	free((void *)(uintptr_t)options->spec.inputs);
	free((void *)(uintptr_t)options->spec.temp_dirs);
	free(options->files0_text);
	*options = (struct options){ 0 };
}
