/*
 * line_options.c - the options of a sort of lines (see line_options.h)
 */
#include "src/lines/line_options.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "io/input/part_manifest.h"
#include "io/spill/spill.h"
#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/comm/comm.h"
#include "src/options/file_roles.h"

const struct option line_option_names[] = {
	{ "lines", no_argument, NULL, OPTION_LINES },
	{ "ignore-leading-blanks", no_argument, NULL, 'b' },
	{ "dictionary-order", no_argument, NULL, 'd' },
	{ "ignore-case", no_argument, NULL, 'f' },
	{ "general-numeric-sort", no_argument, NULL, 'g' },
	{ "human-numeric-sort", no_argument, NULL, 'h' },
	{ "ignore-nonprinting", no_argument, NULL, 'i' },
	{ "month-sort", no_argument, NULL, 'M' },
	{ "numeric-sort", no_argument, NULL, 'n' },
	{ "random-sort", no_argument, NULL, 'R' },
	{ "random-source", required_argument, NULL, OPTION_RANDOM_SOURCE },
	{ "reverse", no_argument, NULL, 'r' },
	{ "sort", required_argument, NULL, OPTION_SORT },
	{ "version-sort", no_argument, NULL, 'V' },
	{ "batch-size", required_argument, NULL, OPTION_BATCH_SIZE },
	{ "check", optional_argument, NULL, OPTION_CHECK },
	{ "compress-program", required_argument, NULL, OPTION_COMPRESS_PROGRAM },
	{ "debug", no_argument, NULL, OPTION_DEBUG },
	{ "files0-from", required_argument, NULL, OPTION_FILES0_FROM },
	{ "header", optional_argument, NULL, OPTION_HEADER },
	{ "key", required_argument, NULL, 'k' },
	{ "count", no_argument, NULL, OPTION_COUNT },
	{ "limit", required_argument, NULL, OPTION_LIMIT },
	{ "merge", no_argument, NULL, 'm' },
	{ "output", required_argument, NULL, 'o' },
	{ "stable", no_argument, NULL, 's' },
	{ "buffer-size", required_argument, NULL, 'S' },
	{ "field-separator", required_argument, NULL, 't' },
	{ "temporary-directory", required_argument, NULL, 'T' },
	{ "parallel", required_argument, NULL, OPTION_PARALLEL },
	{ "unique", no_argument, NULL, 'u' },
	{ "zero-terminated", no_argument, NULL, 'z' },
	{ "help", no_argument, NULL, OPTION_HELP },
	{ "version", no_argument, NULL, OPTION_VERSION },
	{ "backend", required_argument, NULL, OPTION_BACKEND },
	{ "device-memory", required_argument, NULL, OPTION_DEVICE_MEMORY },
	{ "format", required_argument, NULL, OPTION_FORMAT },
	{ "temp-compress", required_argument, NULL, OPTION_TEMP_COMPRESS },
	{ "temp-limit", required_argument, NULL, OPTION_TEMP_LIMIT },
	{ "checkpoint", required_argument, NULL, OPTION_CHECKPOINT },
	{ "zstd", optional_argument, NULL, OPTION_ZSTD },
	{ "split", required_argument, NULL, OPTION_SPLIT },
	{ "split-by", required_argument, NULL, OPTION_SPLIT_BY },
	{ "shard", required_argument, NULL, OPTION_SHARD },
	{ "explain", optional_argument, NULL, OPTION_EXPLAIN },
	{ "progress", required_argument, NULL, OPTION_PROGRESS },
	{ "stats", no_argument, NULL, OPTION_STATS },
	{ "stats-json", required_argument, NULL, OPTION_STATS_JSON },
	{ "trace", required_argument, NULL, OPTION_TRACE },
	{ "report", required_argument, NULL, OPTION_REPORT },
	{ "completion", required_argument, NULL, OPTION_COMPLETION },
	{ "timeout", required_argument, NULL, OPTION_TIMEOUT },
	{ "shared-memory", required_argument, NULL, OPTION_SHARED_MEMORY },
	{ NULL, 0, NULL, 0 },
};

enum { MAX_THREADS = 1024 };

int line_option_find(const char *name)
{
	for (const struct option *row = line_option_names; row->name; row++)
		if (strcmp(row->name, name) == 0 ||
		    (row->val <= UCHAR_MAX && name[0] == row->val && name[1] == '\0'))
			return row->val;
	return 0;
}

void line_options_init(struct line_options *options)
{
	*options = (struct line_options){
		.params = { .limit = UINT64_MAX,
			    .temp_limit_nbytes = SPILL_UNLIMITED,
			    .compression = { .zstd_level = DEFAULT_ZSTD_LEVEL } },
	};
	line_keys_init(&options->keys);
}

void line_options_free(struct line_options *options)
{
	line_keys_free(&options->keys);
	for (size_t i = 0; i < options->n_listed_names; i++)
		free(options->listed_names[i]);
	free(options->listed_names);
	free(options->inputs);
}

static int add_temp_directory(struct line_options *options, const char *path)
{
	if (options->params.n_temp_directories == LINE_MAX_TEMP_DIRECTORIES)
		return fail(-EINVAL, "-T %s: more than %d directories", path,
			    LINE_MAX_TEMP_DIRECTORIES);
	options->temp_directories[options->params.n_temp_directories++] = path;
	return 0;
}

static int take_backend(struct line_options *options, const char *word)
{
	static const char *const words[] = {
		[BACKEND_AUTO] = "auto", [BACKEND_CPU] = "cpu", [BACKEND_CUDA] = "cuda"
	};

	for (enum backend_choice i = BACKEND_AUTO; i <= BACKEND_CUDA; i++) {
		if (strcmp(word, words[i]) == 0) {
			options->params.backend = i;
			return 0;
		}
	}
	return fail(-EINVAL, "--backend: '%s' is not auto, cpu or cuda", word);
}

static int take_compression(struct line_options *options, const char *mode)
{
	if (compression_parse(mode, &options->params.compression) < 0 ||
	    options->params.compression.mode == COMPRESS_DELTA)
		return fail(-EINVAL, "--temp-compress: '%s' is not auto, none, zstd or zstd:LEVEL",
			    mode);
	return 0;
}

/* A number may have blanks and a sign before it. A larger one than UINT64_MAX becomes that. */
static int take_number(const char *option, const char *text, uint64_t *ret_number)
{
	const char *digits = line_number_digits(text);
	char *end;

	*ret_number = strtoull(digits, &end, 10);
	return *digits < '0' || *digits > '9' || *end ?
		       fail(-EINVAL, "%s: '%s' is not a number", option, text) :
		       0;
}

/* Parse a size, which may have blanks and a sign before it. */
static int take_size(const char *option, const char *text, uint64_t *ret_nbytes)
{
	return size_parse_option(option, line_number_digits(text), SIZE_OF_SPACE, ret_nbytes);
}

/* --sort=WORD */
static int take_sort_word(struct line_options *options, const char *word)
{
	static const struct {
		const char *word;
		char letter;
	} words[] = { { "general-numeric", 'g' },
		      { "human-numeric", 'h' },
		      { "month", 'M' },
		      { "numeric", 'n' },
		      { "version", 'V' } };

	if (*word && strncmp(word, "random", strlen(word)) == 0)
		return fail(-EINVAL, "--sort=random: random order is not supported");
	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		/* The words differ in their first letters. */
		if (*word && strncmp(word, words[i].word, strlen(word)) == 0) {
			line_keys_add_letter(&options->keys, words[i].letter);
			return 0;
		}
	return fail(-EINVAL,
		    "invalid argument '%s' for '--sort'; valid are general-numeric, "
		    "human-numeric, month, numeric and version",
		    word);
}

/* --format=auto|raw */
static int take_format(struct line_options *options, const char *format)
{
	options->params.is_raw = strcmp(format, "raw") == 0;
	return options->params.is_raw || strcmp(format, "auto") == 0 ?
		       0 :
		       fail(-EINVAL, "--format: '%s' is not auto or raw", format);
}

/* --split=P */
static int take_split(struct line_options *options, const char *text)
{
	uint64_t n;
	const int r = take_number("--split", text, &n);

	if (r == 0 && (n < 1 || n > PART_MANIFEST_MAX_PARTS))
		return fail(-EINVAL, "--split: '%s' is not from 1 to %d", text,
			    PART_MANIFEST_MAX_PARTS);
	options->params.n_part_files = (uint32_t)n;
	return r;
}

/* --shard=K/P */
static int take_shard(struct line_options *options, const char *text)
{
	enum { MAX_SHARDS = 1000000 };
	struct line_sort_params *params = &options->params;
	int n = 0;

	if (*text >= '0' && *text <= '9' &&
	    sscanf(text, "%7u/%7u%n", &params->shard, &params->n_shards, &n) == 2 && !text[n] &&
	    params->shard >= 1 && params->shard <= params->n_shards &&
	    params->n_shards <= MAX_SHARDS)
		return 0;
	return fail(-EINVAL, "--shard: '%s' is not K/P with 1 <= K <= P <= %d, for example 2/8",
		    text, MAX_SHARDS);
}

/* Options of the output that GNU sort does not have. Returns as take_report_option(). */
static int take_output_option(struct line_options *options, int option, const char *value)
{
	switch (option) {
	case OPTION_COUNT:
		options->params.counts = true;
		return 0;
	case OPTION_HEADER:
		return take_number("--header", value ? value : "1",
				   &options->params.n_header_lines);
	case OPTION_LIMIT:
		return take_number("--limit", value, &options->params.limit);
	case OPTION_ZSTD:
		options->params.zstd_level = DEFAULT_ZSTD_LEVEL;
		return value && *value &&
				       compression_parse_level(value, &options->params.zstd_level) <
					       0 ?
			       fail(-EINVAL, "--zstd: '%s' is not a level from 1 to %d", value,
				    compression_max_level()) :
			       0;
	case OPTION_SPLIT:
		return take_split(options, value);
	case OPTION_SPLIT_BY:
		options->has_split_by = true;
		return strcmp(value, "records") == 0 ?
			       0 :
			       fail(-EINVAL,
				    "--split-by: lines are split by their number: records");
	case OPTION_SHARD:
		return take_shard(options, value);
	default:
		return 1;
	}
}

/* The name of a file to write. */
static int take_file_name(const char *option, const char *path, const char **ret_path)
{
	*ret_path = path;
	return *path ? 0 : fail(-EINVAL, "%s: FILE cannot be empty", option);
}

/* --explain[=FORM] */
static int take_explain(struct line_options *options, const char *form)
{
	if (strcmp(form, "text") != 0 && strcmp(form, "json") != 0)
		return fail(-EINVAL, "--explain: '%s' is not text or json", form);
	options->explain = form;
	return 0;
}

/* Options that report on the sort. Returns 0, -EINVAL after a message, or 1 for others. */
static int take_report_option(struct line_options *options, int option, const char *value)
{
	switch (option) {
	case OPTION_EXPLAIN:
		return take_explain(options, value ? value : "text");
	case OPTION_STATS:
		options->prints_stats = true;
		return 0;
	case OPTION_STATS_JSON:
		return take_file_name("--stats-json", value, &options->report_paths.stats_json);
	case OPTION_TRACE:
		return take_file_name("--trace", value, &options->report_paths.trace);
	case OPTION_REPORT:
		return take_file_name("--report", value, &options->report_paths.html);
	default:
		return 1;
	}
}

bool line_option_is_of_ranks(int option)
{
	return option == OPTION_TIMEOUT || option == OPTION_SHARED_MEMORY;
}

/* --timeout=SECONDS, which gsort-mpi has read before; --shared-memory=auto|off */
static int take_rank_option(struct line_options *options, int option, const char *value)
{
	uint64_t seconds;

	if (!options->accepts_ranks)
		return fail(-EINVAL, "--%s: only with " GSORT_PROGRAM "-mpi",
			    option == OPTION_TIMEOUT ? "timeout" : "shared-memory");
	if (option == OPTION_TIMEOUT)
		return take_number("--timeout", value, &seconds);
	options->params.disable_shared_memory = strcmp(value, "off") == 0;
	return options->params.disable_shared_memory || strcmp(value, "auto") == 0 ?
		       0 :
		       fail(-EINVAL, "--shared-memory: '%s' is not auto or off", value);
}

/* --check=WORD */
static int take_check_word(struct line_options *options, const char *word)
{
	char check = 'c';

	const size_t n = word ? strlen(word) : 0;

	if (n && (strncmp(word, "quiet", n) == 0 || strncmp(word, "silent", n) == 0))
		check = 'C';
	else if (word && (n == 0 || strncmp(word, "diagnose-first", n) != 0))
		return fail(-EINVAL,
			    "invalid argument '%s' for '--check'; valid are "
			    "diagnose-first, quiet and silent",
			    word);
	if (options->check && options->check != check)
		return fail(-EINVAL, "options '-cC' are incompatible");
	options->check = check;
	return 0;
}

static int take_output(struct line_options *options, const char *path)
{
	if (options->params.output && strcmp(options->params.output, path) != 0)
		return fail(-EINVAL, "multiple output files specified");
	return take_file_name("-o, --output", path, &options->params.output);
}

int line_options_set(struct line_options *options, int option, const char *value)
{
	struct line_sort_params *params = &options->params;
	uint64_t number = 0;
	int r = take_report_option(options, option, value);

	if (r > 0)
		r = take_output_option(options, option, value);
	if (r <= 0)
		return r;
	if (line_option_is_of_ranks(option))
		return take_rank_option(options, option, value);
	switch (option) {
	case OPTION_LINES:
	case OPTION_DEBUG:
	case OPTION_RANDOM_SOURCE:
	case 'y':
		return 0;
	case OPTION_SORT:
		return take_sort_word(options, value);
	case OPTION_CHECK:
	case 'c':
		return take_check_word(options, value);
	case 'C':
		return take_check_word(options, "quiet");
	case 'k':
		return line_keys_add(&options->keys, value);
	case 'm':
		options->merges = true;
		return 0;
	case 'o':
		return take_output(options, value);
	case 'R':
		return fail(-EINVAL, "-R: random order is not supported");
	case 's':
		options->keys.stable = true;
		return 0;
	case 'S':
		return take_size("-S", value, &params->memory_nbytes);
	case 't':
		return line_keys_set_separator(&options->keys, value);
	case 'T':
		return add_temp_directory(options, value);
	case 'u':
		options->keys.unique = true;
		return 0;
	case 'z':
		options->keys.delimiter = '\0';
		return 0;
	case OPTION_FILES0_FROM:
		options->files0_from = value;
		return 0;
	case OPTION_PARALLEL:
		r = take_number("--parallel", value, &number);
		if (r == 0 && number == 0)
			r = fail(-EINVAL, "--parallel: must be at least 1");
		params->n_threads = number < MAX_THREADS ? (uint32_t)number : MAX_THREADS;
		return r;
	case OPTION_BATCH_SIZE:
		r = take_number("--batch-size", value, &number);
		if (r == 0 && number < 2)
			r = fail(-EINVAL, "--batch-size: must be at least 2");
		params->max_runs = number < UINT32_MAX ? (uint32_t)number : UINT32_MAX;
		return r;
	case OPTION_BACKEND:
		return take_backend(options, value);
	case OPTION_DEVICE_MEMORY:
		return take_size("--device-memory", value, &params->device_memory_nbytes);
	case OPTION_COMPRESS_PROGRAM:
		return take_compression(options, "zstd");
	case OPTION_TEMP_COMPRESS:
		return take_compression(options, value);
	case OPTION_CHECKPOINT:
		params->checkpoint_path = value;
		return 0;
	case OPTION_TEMP_LIMIT:
		return take_size("--temp-limit", value, &params->temp_limit_nbytes);
	case OPTION_FORMAT:
		return take_format(options, value);
	default:
		return line_keys_add_letter(&options->keys, (char)option) ? 0 : -EINVAL;
	}
}

int line_options_add_input(struct line_options *options, const char *path)
{
	if (!array_reserve(&options->inputs, &options->inputs_capacity,
			   options->params.n_inputs + 1, sizeof path))
		return fail(-ENOMEM, "no memory for the input names");
	options->inputs[options->params.n_inputs++] = path;
	return 0;
}

/* Add an input of --files0-from. */
static int add_listed_name(struct line_options *options, const char *name)
{
	const size_t n = options->n_listed_names;
	char **grown;

	if (strcmp(name, "-") == 0)
		return fail(-EINVAL, "%s:%zu: no file name of '-' allowed", options->files0_from,
			    n + 1);
	if (!*name)
		return fail(-EINVAL, "%s:%zu: invalid zero-length file name", options->files0_from,
			    n + 1);
	grown = reallocarray(options->listed_names, n + 1, sizeof *grown);
	if (grown)
		options->listed_names = grown;
	if (!grown || !(grown[n] = strdup(name)))
		return fail(-ENOMEM, "no memory for the input names");
	options->n_listed_names++;
	return line_options_add_input(options, grown[n]);
}

/* Read the input names of --files0-from. */
static int read_names(struct line_options *options)
{
	const bool is_stdin = strcmp(options->files0_from, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(options->files0_from, "re");
	size_t capacity = 0;
	char *name = NULL;
	int r = 0;

	if (!file)
		return fail(-errno, "open failed: %s: %m", options->files0_from);
	while (r == 0 && getdelim(&name, &capacity, '\0', file) > 0)
		r = add_listed_name(options, name);
	if (r == 0 && !feof(file))
		r = fail(-errno, "%s: read of file names: %m", options->files0_from);
	if (r == 0 && options->params.n_inputs == 0)
		r = fail(-EINVAL, "no input from '%s'", options->files0_from);
	free(name);
	if (!is_stdin)
		fclose(file);
	return r;
}

/* Refuse reports of a sort with --explain. */
static int check_explain(const struct line_options *options)
{
	const struct report_paths *reports = &options->report_paths;
	const char *option = !options->explain     ? NULL :
			     options->prints_stats ? "--stats" :
			     reports->stats_json   ? "--stats-json" :
			     reports->trace        ? "--trace" :
			     reports->html         ? "--report" :
						     NULL;

	return option ? fail(-EINVAL, "--explain and %s cannot be used together: nothing is sorted",
			     option) :
			0;
}

/* Check combinations of options that GNU sort does not have. */
static int check_options(const struct line_options *options)
{
	const struct line_sort_params *params = &options->params;
	const char *option = params->n_part_files        ? "--split" :
			     params->n_shards            ? "--shard" :
			     params->counts              ? "--count" :
			     params->limit != UINT64_MAX ? "--limit" :
			     params->zstd_level          ? "--zstd" :
			     params->checkpoint_path     ? "--checkpoint" :
			     options->explain            ? "--explain" :
							   NULL;

	if (option && options->check)
		return fail(-EINVAL, "options '-%c %s' are incompatible", options->check, option);
	if (params->counts && !options->keys.unique)
		return fail(-EINVAL, "--count requires -u");
	if (params->n_part_files && !params->output)
		return fail(-EINVAL, "--split requires -o");
	if (options->has_split_by && !params->n_part_files)
		return fail(-EINVAL, "--split-by requires --split");
	if (params->n_shards && !options->merges)
		return fail(-EINVAL, "--shard requires -m");
	if (params->checkpoint_path && options->merges)
		return fail(-EINVAL, "--checkpoint: not with -m; merge the files again instead");
	if (params->checkpoint_path && params->n_temp_directories > 0)
		return fail(-EINVAL,
			    "--checkpoint: not with -T; temporary data is in the checkpoint");
	if (params->checkpoint_path && !params->output)
		return fail(-EINVAL, "--checkpoint requires -o");
	if (params->n_part_files && (params->n_shards || params->counts || params->n_header_lines))
		return fail(-EINVAL, "--split: not with --shard, --count or --header");
	if (params->n_shards &&
	    (options->keys.unique || params->limit != UINT64_MAX || params->n_header_lines))
		return fail(-EINVAL, "--shard: not with -u, --limit or --header");
	return check_explain(options);
}

/* Return whether the name of the output asks for compression. */
static bool output_is_zst(const struct line_sort_params *params)
{
	const size_t n = params->output ? strlen(params->output) : 0;

	return n > 4 && strcmp(params->output + n - 4, ".zst") == 0;
}

/* Refuse what several ranks do not support. */
static int check_rank_options(const struct line_options *options)
{
	const struct line_sort_params *params = &options->params;
	const char *option = options->explain                ? "--explain" :
			     params->n_part_files            ? "--split" :
			     params->n_shards                ? "--shard" :
			     params->counts                  ? "--count" :
			     params->checkpoint_path         ? "--checkpoint" :
			     params->zstd_level              ? "--zstd" :
			     params->backend == BACKEND_CUDA ? "--backend=cuda" :
							       NULL;

	if (!params->comm)
		return 0;
	if (option)
		return fail(-EINVAL, "%s is not supported with --lines and several ranks", option);
	if (output_is_zst(params))
		return fail(-EINVAL,
			    "%s: a compressed output is not supported with --lines and several "
			    "ranks",
			    params->output);
	if (!params->output && !options->check)
		return fail(-EINVAL,
			    "standard output is not possible with several ranks; name a file with "
			    "-o");
	return 0;
}

/* Use the CPUs and half of the memory of this host, of which each of its ranks has a share. */
static void set_default_resources(struct line_sort_params *params)
{
	unsigned first_rank;
	const unsigned n = params->comm ? comm_host_size(params->comm, &first_rank) : 1;
	const unsigned n_cpus = cpus_available("");
	/* A rank that is bound to some CPUs has its share already. */
	const bool is_bound = (long)n_cpus < sysconf(_SC_NPROCESSORS_ONLN);

	if (params->n_threads == 0)
		params->n_threads =
			(uint32_t)u64_clamp(is_bound ? n_cpus : n_cpus / n, 1, MAX_THREADS);
	if (params->memory_nbytes == 0)
		params->memory_nbytes = memory_available_nbytes("") / 2 / n;
}

/* Set what was left open. */
static int set_defaults(struct line_options *options, const char *default_temp_directory)
{
	struct line_sort_params *params = &options->params;

	params->keys = &options->keys;
	params->inputs = options->inputs;
	params->reads_part_files = options->merges || options->check;
	params->temp_directories = options->temp_directories;
	set_default_resources(params);
	params->memory_nbytes = u64_max(u64_min(params->memory_nbytes, memory_physical_nbytes()),
					LINE_MIN_MEMORY_NBYTES);
	if (!params->zstd_level && output_is_zst(params))
		params->zstd_level = DEFAULT_ZSTD_LEVEL;
	if (params->n_temp_directories > 0)
		return 0;
	return add_temp_directory(options, params->checkpoint_path ? params->checkpoint_path :
								     default_temp_directory);
}

int line_options_finish(struct line_options *options, const char *default_temp_directory)
{
	int r = 0;

	if (options->files0_from && options->params.n_inputs > 0)
		return fail(-EINVAL,
			    "extra operand '%s': file operands cannot be combined with "
			    "--files0-from",
			    options->inputs[0]);
	if (options->files0_from && options->params.comm)
		r = files0_require_regular_file(options->files0_from);
	if (r < 0)
		return r;
	if (options->files0_from)
		r = read_names(options);
	else if (options->params.n_inputs == 0)
		r = line_options_add_input(options, "-");
	if (r == 0)
		r = check_options(options);
	if (r == 0 && options->check && options->params.n_inputs > 1)
		r = fail(-EINVAL, "extra operand '%s' not allowed with -%c", options->inputs[1],
			 options->check);
	if (r == 0 && options->check && options->params.output)
		r = fail(-EINVAL, "options '-%co' are incompatible", options->check);
	if (r == 0)
		r = line_keys_finish(&options->keys);
	if (r == 0)
		r = check_rank_options(options);
	return r < 0 ? r : set_defaults(options, default_temp_directory);
}
