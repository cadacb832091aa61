/*
 * line_options.c - the options of a sort of lines (see line_options.h)
 */
#include "src/lines/line_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "io/input/part_manifest.h"
#include "io/spill/spill.h"
#include "src/base/array.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/options/options.h"

enum { MAX_THREADS = 1024 };

/* --- Values of single options --- */

static void *line_member(const struct option_spec *spec, void *target)
{
	return (char *)target + spec->offset;
}

/* Parse an option of the order, whose letter is also one of keys. */
static int parse_letter(const struct option_spec *spec, const char *argument, void *target)
{
	struct line_options *options = target;

	(void)argument;
	line_keys_add_letter(&options->keys, spec->letter);
	return 0;
}

/*
 * Parse a number of at least spec->min into a member of 4 or 8 bytes. It may have blanks and a sign
 * before it. A larger one than the maximum of the member becomes that.
 */
static int parse_number(const struct option_spec *spec, const char *argument, void *target)
{
	const char *digits = line_number_digits(argument);
	char *end;
	const uint64_t n = strtoull(digits, &end, 10);

	if (*digits < '0' || *digits > '9' || *end)
		return fail(-EINVAL, "--%s: '%s' is not a number", spec->name, argument);
	if (spec->max && (n < spec->min || n > spec->max))
		return fail(-EINVAL, "--%s: '%s' is not from %" PRIu64 " to %" PRIu64, spec->name,
			    argument, spec->min, spec->max);
	if (n < spec->min)
		return fail(-EINVAL, "--%s: must be at least %" PRIu64, spec->name, spec->min);
	if (spec->member_nbytes == sizeof(uint32_t))
		*(uint32_t *)line_member(spec, target) = (uint32_t)u64_min(n, UINT32_MAX);
	else if (spec->member_nbytes)
		*(uint64_t *)line_member(spec, target) = n;
	return 0;
}

/* Parse a size, which may have blanks and a sign before it. */
static int parse_size(const struct option_spec *spec, const char *argument, void *target)
{
	char spelling[OPTION_SPELLING_NBYTES];

	return size_parse_option(option_format_name(spec, spelling), line_number_digits(argument),
				 SIZE_OF_SPACE, line_member(spec, target));
}

/*
 * Find the choice that a word abbreviates; choices differ in their first letters, or mean the same.
 * Returns NULL after a message.
 */
static const struct option_choice *find_choice(const struct option_spec *spec, const char *word)
{
	char words[128] = "";

	for (const struct option_choice *choice = spec->choices; choice->word; choice++) {
		if (*word && strncmp(word, choice->word, strlen(word)) == 0)
			return choice;
		snprintf(words + strlen(words), sizeof words - strlen(words), "%s%s",
			 *words ? ", " : "", choice->word);
	}
	fail(-EINVAL, "invalid argument '%s' for '--%s'; valid are %s", word, spec->name, words);
	return NULL;
}

static int parse_sort(const struct option_spec *spec, const char *argument, void *target)
{
	struct line_options *options = target;
	const struct option_choice *choice = find_choice(spec, argument);

	if (!choice)
		return -EINVAL;
	line_keys_add_letter(&options->keys, (char)choice->value);
	return 0;
}

/* --check, and -C, which has no argument. */
static int parse_check(const struct option_spec *spec, const char *argument, void *target)
{
	struct line_options *options = target;
	const struct option_choice *choice = argument ? find_choice(spec, argument) : NULL;
	const char check = (char)(choice ? choice->value : spec->letter);

	if (argument && !choice)
		return -EINVAL;
	if (options->check && options->check != check)
		return fail(-EINVAL, "options '-cC' are incompatible");
	options->check = check;
	return 0;
}

static int parse_key(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	return line_keys_add(&((struct line_options *)target)->keys, argument);
}

static int parse_separator(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	return line_keys_set_separator(&((struct line_options *)target)->keys, argument);
}

static int parse_zero_terminated(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	(void)argument;
	((struct line_options *)target)->keys.delimiter = '\0';
	return 0;
}

static int parse_output(const struct option_spec *spec, const char *argument, void *target)
{
	const char *output = ((struct line_options *)target)->params.spec.output_path;

	if (output && strcmp(output, argument) != 0)
		return fail(-EINVAL, "multiple output files specified");
	return option_parse_text(spec, argument, target);
}

static int add_temp_directory(struct line_options *options, const char *path)
{
	if (options->params.spec.n_temp_dirs == LINE_MAX_TEMP_DIRECTORIES)
		return fail(-EINVAL, "-T %s: more than %d directories", path,
			    LINE_MAX_TEMP_DIRECTORIES);
	options->temp_directories[options->params.spec.n_temp_dirs++] = path;
	return 0;
}

static int parse_temp_directory(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	return add_temp_directory(target, argument);
}

/* --temp-compress, and --compress-program, whose value is not used. */
static int parse_compression(const struct option_spec *spec, const char *argument, void *target)
{
	struct compression_params *compression = line_member(spec, target);

	if (compression_parse(spec->choices ? argument : "zstd", compression) < 0 ||
	    compression->mode == COMPRESS_DELTA)
		return fail(-EINVAL, "--temp-compress: '%s' is not auto, none, zstd or zstd:LEVEL",
			    argument);
	return 0;
}

/* --- All options, in the order of --help; those of gsort-mpi are the last ones --- */

static const struct option_choice sort_words[] = {
	{ "general-numeric", 'g' }, { "human-numeric", 'h' }, { "month", 'M' },
	{ "numeric", 'n' },         { "version", 'V' },       { 0 }
};

static const struct option_choice check_words[] = {
	{ "diagnose-first", 'c' }, { "quiet", 'C' }, { "silent", 'C' }, { 0 }
};

static const struct option_choice split_units[] = { { "records", true }, { 0 } };

static const struct option_choice formats[] = { { "auto", FORMAT_AUTO },
						{ "raw", FORMAT_RAW },
						{ 0 } };

static const struct option_choice compression_words[] = {
	{ "auto", 0 }, { "none", 0 }, { "zstd", 0 }, { 0 }
};

#define MEMBER(member) OPTION_MEMBER(struct line_options, member)
#define LETTER(name, letter, help) name, letter, NULL, help, .parse = parse_letter, OF_GNU_SORT
#define OF_GNU_SORT .is_of_gnu_sort = true
#define SAME_ON_ALL .mpi_support = OPTION_MPI_SAME_ON_ALL

_Static_assert(DEFAULT_ZSTD_LEVEL == 3, "the default in the row of --zstd");

static const struct option_spec specs[] = {
	{ LETTER("ignore-leading-blanks", 'b', "skip blanks at the beginning of a key"),
	  .section = "Ordering" },
	{ LETTER("dictionary-order", 'd', "compare only blanks, letters and digits") },
	{ LETTER("ignore-case", 'f', "compare lower case as upper case") },
	{ LETTER("general-numeric-sort", 'g', "compare floating-point numbers") },
	{ LETTER("human-numeric-sort", 'h', "compare numbers with suffixes (2K, 1G)") },
	{ LETTER("ignore-nonprinting", 'i', "compare only printable characters") },
	{ LETTER("month-sort", 'M', "compare months (JAN < ... < DEC)") },
	{ LETTER("numeric-sort", 'n', "compare decimal numbers") },
	{ LETTER("reverse", 'r', "reverse the order") },
	{ LETTER("version-sort", 'V', "compare version numbers in names") },
	{ "sort", 0, "WORD", "general-numeric, human-numeric, month, numeric or version",
	  .parse = parse_sort, .choices = sort_words, OF_GNU_SORT },
	{ "key", 'k', "POS1[,POS2]",
	  "compare from POS1 to POS2, or to the end of the line; a position is "
	  "FIELD[.CHAR][bdfghiMnrV]",
	  .repeats = true, .parse = parse_key, OF_GNU_SORT },
	{ "field-separator", 't', "CHAR", "separate fields by CHAR", .parse = parse_separator,
	  OF_GNU_SORT },
	{ "stable", 's', NULL, "keep the order of lines with equal keys",
	  .parse = option_parse_flag, MEMBER(keys.stable), OF_GNU_SORT },
	{ "unique", 'u', NULL, "write only the first of lines with equal keys",
	  .parse = option_parse_flag, MEMBER(keys.unique), OF_GNU_SORT },

	{ "check", 'c', "WORD", "check the order; quiet or silent: without a message",
	  .section = "Operation and output", .default_value = "diagnose-first", .cli_only = true,
	  .parse = parse_check, .choices = check_words, OF_GNU_SORT },
	{ "C", 'C', NULL, "check the order without a message", .cli_only = true,
	  .parse = parse_check, OF_GNU_SORT },
	{ "merge", 'm', NULL, "merge sorted files", .parse = option_parse_flag, MEMBER(merges),
	  OF_GNU_SORT },
	{ "output", 'o', "FILE", "write to FILE, which may be an input", .parse = parse_output,
	  MEMBER(params.spec.output_path), OF_GNU_SORT },
	{ "zero-terminated", 'z', NULL, "end lines with NUL instead of newline",
	  .parse = parse_zero_terminated, OF_GNU_SORT },
	{ "split", 0, "P", "write P part files of equal numbers of lines, in the directory of -o",
	  .min = 1, .max = PART_MANIFEST_MAX_PARTS, .parse = parse_number,
	  MEMBER(params.spec.n_part_files), .required = "output" },
	{ "split-by", 0, "records", "split after equal numbers of lines",
	  .parse = option_parse_choice, MEMBER(splits_by_records), .choices = split_units,
	  .required = "split" },
	{ "shard", 0, "K/P", "with -m: write only part K of P of the output",
	  .parse = options_parse_shard, .offset = offsetof(struct line_options, params.spec),
	  .required = "merge" },
	{ "zstd", 0, "LEVEL", "compress the output (level 3 if it is named *.zst)",
	  .default_value = "3", .parse = options_parse_zstd, MEMBER(params.spec.zstd_level) },
	{ "files0-from", 0, "FILE", "read NUL-terminated input names from FILE",
	  .parse = option_parse_nothing, OF_GNU_SORT },
	{ "format", 0, "auto|raw", "decompress zstd and gzip inputs, or read any bytes",
	  .parse = option_parse_choice, MEMBER(params.spec.format), .choices = formats },
	{ "header", 0, "N", "keep the first N lines (1) of the input in front",
	  .default_value = "1", .parse = parse_number, MEMBER(params.n_header_lines) },
	{ "count", 0, NULL, "with -u: write before each line how many were equal",
	  .parse = option_parse_flag, MEMBER(params.spec.count), .required = "unique" },
	{ "limit", 0, "N", "write only the first N lines of the result", .parse = parse_number,
	  MEMBER(params.spec.limit) },

	{ "buffer-size", 'S', "SIZE", "limit host memory; at least 4 MiB are used",
	  .section = "Resources", .parse = parse_size, MEMBER(params.spec.memory_nbytes),
	  OF_GNU_SORT },
	{ "temporary-directory", 'T', "DIR", "store temporary files in DIR", .repeats = true,
	  .parse = parse_temp_directory, OF_GNU_SORT },
	{ "temp-limit", 0, "SIZE", "limit temporary space of spilled runs", .parse = parse_size,
	  MEMBER(params.spec.temp_limit_nbytes) },
	{ "temp-compress", 0, "MODE", "compress spilled runs: auto, none, zstd, zstd:LEVEL",
	  .parse = parse_compression, .choices = compression_words,
	  MEMBER(params.spec.compression) },
	{ "checkpoint", 0, "DIR", "store runs in DIR; rerun the same command to resume",
	  .parse = option_parse_text, MEMBER(params.spec.checkpoint_path), .required = "output" },
	{ "compress-program", 0, "PROG", "compress spilled runs with Zstandard, whatever PROG is",
	  .parse = parse_compression, MEMBER(params.spec.compression), OF_GNU_SORT },
	{ "parallel", 0, "N", "use N CPU threads", .min = 1, .parse = parse_number,
	  MEMBER(params.spec.n_threads), OF_GNU_SORT },
	{ "batch-size", 0, "N", "merge at most N runs at once", .min = 2, .parse = parse_number,
	  MEMBER(params.spec.batch_size), OF_GNU_SORT },
	{ "backend", 0, "auto|cpu|cuda", "sort on a GPU or on the CPU",
	  .parse = option_parse_choice, MEMBER(params.spec.backend), .choices = option_backends },
	{ "device-memory", 0, "SIZE", "limit GPU memory", .parse = parse_size,
	  MEMBER(params.spec.device_memory_nbytes) },

	{ "explain", 0, "text|json", "print what would be done", .section = "Diagnostics",
	  .default_value = "text", .cli_only = true, .parse = option_parse_choice, MEMBER(explain),
	  .choices = option_explain_formats, SAME_ON_ALL },
	{ "progress", 0, "auto|always|never",
	  "show a progress line; auto: on a terminal, after a second; SIGUSR1 prints it once",
	  .cli_only = true, .parse = option_parse_choice, MEMBER(progress),
	  .choices = option_progress_modes, SAME_ON_ALL },
	{ "stats", 0, NULL, "print bytes, times and rates of each stage",
	  .parse = option_parse_nothing, SAME_ON_ALL },
	{ "stats-json", 0, "FILE", "write statistics to FILE as JSON",
	  .parse = option_parse_nothing, SAME_ON_ALL },
	{ "trace", 0, "FILE", "write a timeline to FILE in the Chrome trace format",
	  .parse = option_parse_nothing, SAME_ON_ALL },
	{ "report", 0, "FILE", "write an HTML report to FILE", .parse = option_parse_nothing,
	  SAME_ON_ALL },
	{ "debug", 0, NULL, "ignored, for compatibility with GNU sort", .cli_only = true,
	  .parse = option_parse_nothing, OF_GNU_SORT },
	{ "random-source", 0, "FILE", "ignored, for compatibility with GNU sort",
	  .parse = option_parse_nothing, OF_GNU_SORT },
	{ "lines", 0, NULL, "sort lines, with these options", .parse = option_parse_nothing },
	{ BUILTIN_OPTIONS_ROW_COMPLETION, .cli_only = true, SAME_ON_ALL },
	{ BUILTIN_OPTIONS_ROW_HELP, .cli_only = true, OF_GNU_SORT, SAME_ON_ALL },
	{ BUILTIN_OPTIONS_ROW_VERSION, .cli_only = true, OF_GNU_SORT, SAME_ON_ALL },

	{ "timeout", 0, "SECONDS", "abort if a rank has not answered for SECONDS (60)",
	  .cli_only = true, .section = "Ranks (" GSORT_PROGRAM "-mpi)", .parse = parse_number,
	  .mpi_support = OPTION_MPI_ONLY },
	{ "shared-memory", 0, "auto|off",
	  "read runs in the memory of other ranks of the same machine (auto), or exchange all as "
	  "messages (off)",
	  .parse = option_parse_choice, MEMBER(params.spec.disable_shared_memory),
	  .choices = option_shared_memory_modes, .cli_only = true, .mpi_support = OPTION_MPI_ONLY },
};

/* Conflicts of -c and of -C. */
#define NOT_WITH_CHECK(name, reason)                                                               \
	{ "check", name, reason },                                                                 \
	{                                                                                          \
		"C", name, reason                                                                  \
	}

static const struct option_conflict conflicts[] = {
	NOT_WITH_CHECK("output", "a check writes nothing"),
	NOT_WITH_CHECK("split", "a check writes nothing"),
	NOT_WITH_CHECK("shard", "a check writes nothing"),
	NOT_WITH_CHECK("count", "a check writes nothing"),
	NOT_WITH_CHECK("limit", "a check writes nothing"),
	NOT_WITH_CHECK("zstd", "a check writes nothing"),
	NOT_WITH_CHECK("checkpoint", "a check writes nothing"),
	NOT_WITH_CHECK("explain", "a check has no plan"),
	{ "explain", "stats", "nothing is sorted" },
	{ "explain", "stats-json", "nothing is sorted" },
	{ "explain", "trace", "nothing is sorted" },
	{ "explain", "report", "nothing is sorted" },
	{ "checkpoint", "merge", "merge the files again instead" },
	{ "checkpoint", "temporary-directory", "temporary data is in the checkpoint" },
	{ "split", "shard", "a shard has no part manifest" },
	{ "split", "count", "part files hold lines only" },
	{ "split", "header", "part files hold sorted lines only" },
	{ "shard", "unique", "equal lines could be in two shards" },
	{ "shard", "limit", "shards are made of all lines" },
	{ "shard", "header", "shards are made of all lines" },
};

const struct option_table line_option_table = {
	.specs = specs,
	.n_specs = sizeof specs / sizeof specs[0],
	.conflicts = conflicts,
	.n_conflicts = sizeof conflicts / sizeof conflicts[0],
};

/* --- The options of a sort --- */

void line_options_init(struct line_options *options)
{
	*options = (struct line_options){
		.params.spec = { .record_nbytes = 1,
				 .limit = SORT_SPEC_UNLIMITED,
				 .temp_limit_nbytes = SORT_SPEC_UNLIMITED,
				 .compression = { .zstd_level = DEFAULT_ZSTD_LEVEL } },
	};
	line_keys_init(&options->keys);
}

void line_options_free(struct line_options *options)
{
	line_keys_free(&options->keys);
	free(options->inputs);
}

int line_options_set(struct line_options *options, const struct option_spec *spec,
		     const char *value)
{
	if (spec->mpi_support == OPTION_MPI_ONLY && !options->accepts_ranks)
		return fail(-EINVAL, "--%s: only with " GSORT_PROGRAM "-mpi", spec->name);
	options->arguments.present |= UINT64_C(1) << (spec - specs);
	return spec->parse(spec, value ? value : spec->default_value, options);
}

int line_options_add_input(struct line_options *options, const char *path)
{
	if (!array_reserve(&options->inputs, &options->inputs_capacity,
			   options->params.spec.n_inputs + 1, sizeof path))
		return fail(-ENOMEM, "no memory for the input names");
	options->inputs[options->params.spec.n_inputs++] = path;
	return 0;
}

/* Refuse what several ranks do not support. */
static int check_rank_options(const struct line_options *options)
{
	const struct sort_spec *spec = &options->params.spec;
	const char *option = spec->n_shards        ? "--shard" :
			     spec->checkpoint_path ? "--checkpoint" :
			     spec->zstd_level      ? "--zstd" :
						     NULL;

	if (!spec->comm)
		return 0;
	if (option)
		return fail(-EINVAL, "%s is not supported with --lines and several ranks", option);
	if (option_find_zstd_level(spec->output_path, 0))
		return fail(-EINVAL,
			    "%s: a compressed output is not supported with --lines and several "
			    "ranks",
			    spec->output_path);
	if (!spec->output_path && !options->check)
		return fail(-EINVAL,
			    "standard output is not possible with several ranks; name a file with "
			    "-o");
	return 0;
}

/* Set what was left open. */
static int set_defaults(struct line_options *options, const char *default_temp_directory)
{
	struct line_sort_params *params = &options->params;
	struct sort_spec *spec = &params->spec;

	params->keys = &options->keys;
	spec->unique = options->keys.unique;
	spec->check_only = options->check;
	spec->skip_nbytes = params->n_header_lines;
	spec->inputs = options->inputs;
	params->reads_part_files = options->merges || options->check;
	spec->temp_dirs = options->temp_directories;
	options_divide_host(spec);
	spec->n_threads = (unsigned)u64_min(spec->n_threads, MAX_THREADS);
	spec->memory_nbytes = u64_max(u64_min(spec->memory_nbytes, memory_physical_nbytes()),
				      LINE_MIN_MEMORY_NBYTES);
	spec->zstd_level = option_find_zstd_level(spec->output_path, spec->zstd_level);
	if (spec->n_temp_dirs > 0)
		return 0;
	return add_temp_directory(options, spec->checkpoint_path ? spec->checkpoint_path :
								   default_temp_directory);
}

int line_options_finish(struct line_options *options, const char *default_temp_directory)
{
	int r = option_check_conflicts(&line_option_table, &options->arguments);

	if (r == 0 && options->check && options->params.spec.n_inputs > 1)
		r = fail(-EINVAL, "extra operand '%s' not allowed with -%c", options->inputs[1],
			 options->check);
	if (r == 0)
		r = line_keys_finish(&options->keys);
	if (r == 0)
		r = check_rank_options(options);
	return r < 0 ? r : set_defaults(options, default_temp_directory);
}
