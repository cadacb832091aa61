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
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/system_limits.h"

/* --- Values of single options --- */

/* Parse an option of the order, whose letter is also one of keys. */
static int parse_letter(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;

	(void)argument;
	line_keys_add_letter(options->line_keys, spec->letter);
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
		return fail(-EINVAL, "--%s: '%s' is not a number%s", spec->name, argument,
			    option_suffix_hint(digits));
	if (spec->max && (n < spec->min || n > spec->max))
		return fail(-EINVAL, "--%s: '%s' is not from %" PRIu64 " to %" PRIu64, spec->name,
			    argument, spec->min, spec->max);
	if (n < spec->min)
		return fail(-EINVAL, "--%s: must be at least %" PRIu64, spec->name, spec->min);
	if (spec->member_nbytes == sizeof(uint32_t))
		*(uint32_t *)option_member(spec, target) = (uint32_t)u64_min(n, UINT32_MAX);
	else if (spec->member_nbytes)
		*(uint64_t *)option_member(spec, target) = n;
	return 0;
}

/* Parse a size, which may have blanks and a sign before it. */
static int parse_size(const struct option_spec *spec, const char *argument, void *target)
{
	return option_parse_limit(spec, line_number_digits(argument), target);
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
	struct options *options = target;
	const struct option_choice *choice = find_choice(spec, argument);

	if (!choice)
		return -EINVAL;
	line_keys_add_letter(options->line_keys, (char)choice->value);
	return 0;
}

/* --check, and -C, which has no argument. */
static int parse_check(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;
	const struct option_choice *choice = argument ? find_choice(spec, argument) : NULL;
	const int mode = choice ? choice->value : spec->value;

	if (argument && !choice)
		return -EINVAL;
	if (options_is_check(options) && (int)options->mode != mode)
		return fail(-EINVAL, "options '-cC' are incompatible");
	options->mode = (enum operation_mode)mode;
	return 0;
}

/* A check of a merge is a check. */
static int parse_merge(const struct option_spec *spec, const char *argument, void *target)
{
	struct options *options = target;

	(void)spec;
	(void)argument;
	if (!options_is_check(options))
		options->mode = MODE_MERGE;
	return 0;
}

static int parse_key(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	return line_keys_add(((struct options *)target)->line_keys, argument);
}

static int parse_separator(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	return line_keys_set_separator(((struct options *)target)->line_keys, argument);
}

static int parse_zero_terminated(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	(void)argument;
	((struct options *)target)->line_keys->delimiter = '\0';
	return 0;
}

static int parse_output(const struct option_spec *spec, const char *argument, void *target)
{
	const char *output = ((struct options *)target)->spec.output_path;

	if (output && strcmp(output, argument) != 0)
		return fail(-EINVAL, "multiple output files specified");
	return option_parse_text(spec, argument, target);
}

static int parse_temp_directory(const struct option_spec *spec, const char *argument, void *target)
{
	(void)spec;
	return options_add_temp_dir(target, argument);
}

/* --temp-compress, and --compress-program, whose value is not used. */
static int parse_compression(const struct option_spec *spec, const char *argument, void *target)
{
	struct compression_params *compression = option_member(spec, target);

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

static const struct option_choice split_units[] = { { "records", false }, { 0 } };

static const struct option_choice formats[] = { { "auto", FORMAT_AUTO },
						{ "raw", FORMAT_RAW },
						{ 0 } };

static const struct option_choice compression_words[] = {
	{ "auto", 0 }, { "none", 0 }, { "zstd", 0 }, { 0 }
};

#define MEMBER(member) OPTION_MEMBER(struct options, member)
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
	  .parse = option_parse_flag, MEMBER(stable), OF_GNU_SORT },
	{ "unique", 'u', NULL, "write only the first of lines with equal keys",
	  .parse = option_parse_flag, MEMBER(spec.unique), OF_GNU_SORT },

	{ "check", 'c', "WORD", "check the order; quiet or silent: without a message",
	  .section = "Operation and output", .default_value = "diagnose-first", .cli_only = true,
	  .parse = parse_check, .choices = option_check_modes, OF_GNU_SORT },
	{ "C", 'C', NULL, "check the order without a message", .cli_only = true,
	  .parse = parse_check, .value = MODE_CHECK_QUIET, OF_GNU_SORT },
	{ "merge", 'm', NULL, "merge sorted files", .parse = parse_merge, OF_GNU_SORT },
	{ "output", 'o', "FILE", "write to FILE, which may be an input", .parse = parse_output,
	  MEMBER(spec.output_path), OF_GNU_SORT },
	{ "zero-terminated", 'z', NULL, "end lines with NUL instead of newline",
	  .parse = parse_zero_terminated, OF_GNU_SORT },
	{ "split", 0, "P", "write P part files of equal numbers of lines, in the directory of -o",
	  .min = 1, .max = PART_MANIFEST_MAX_PARTS, .parse = parse_number,
	  MEMBER(spec.n_part_files), .required = "output" },
	{ "split-by", 0, "records", "split after equal numbers of lines",
	  .parse = option_parse_choice, MEMBER(spec.split_by_keys), .choices = split_units,
	  .required = "split" },
	{ "shard", 0, "K/P", "with -m: write only part K of P of the output",
	  .parse = options_parse_shard, .required = "merge", .mpi_support = OPTION_MPI_NO,
	  .mpi_substitute = "run " GSORT_PROGRAM " --lines -m --shard=K/P for each K" },
	{ "zstd", 0, "LEVEL", "compress the output (level 3 if it is named *.zst)",
	  .default_value = "3", .parse = options_parse_zstd, MEMBER(spec.zstd_level) },
	{ "files0-from", 0, "FILE", "read NUL-terminated input names from FILE",
	  .parse = option_parse_text, MEMBER(files0_path), OF_GNU_SORT },
	{ "format", 0, "auto|raw", "decompress zstd and gzip inputs, or read any bytes",
	  .parse = option_parse_choice, MEMBER(spec.format), .choices = formats },
	{ "header", 0, "N", "keep the first N lines (1) of the input in front",
	  .default_value = "1", .parse = parse_number, MEMBER(n_header_lines) },
	{ "count", 0, NULL, "with -u: write before each line how many were equal",
	  .parse = option_parse_flag, MEMBER(spec.count), .required = "unique" },
	{ "limit", 0, "N", "write only the first N lines of the result", .parse = parse_number,
	  MEMBER(spec.limit) },
	{ "fsync", 0, NULL, "sync the output to stable storage before exit",
	  .parse = option_parse_flag, MEMBER(spec.fsync), .required = "output" },

	{ "buffer-size", 'S', "SIZE", "limit host memory; at least 4 MiB are used",
	  .section = "Resources", .parse = parse_size, MEMBER(spec.memory_nbytes), OF_GNU_SORT },
	{ "temporary-directory", 'T', "DIR", "store temporary files in DIR", .repeats = true,
	  .parse = parse_temp_directory, OF_GNU_SORT },
	{ "temp-limit", 0, "SIZE", "limit temporary space of spilled runs", .parse = parse_size,
	  MEMBER(spec.temp_limit_nbytes) },
	{ "temp-compress", 0, "MODE", "compress spilled runs: auto, none, zstd, zstd:LEVEL",
	  .parse = parse_compression, .choices = compression_words, MEMBER(spec.compression) },
	{ "checkpoint", 0, "DIR", "store runs in DIR; rerun the same command to resume",
	  .parse = option_parse_text, MEMBER(spec.checkpoint_path), .required = "output" },
	{ "compress-program", 0, "PROG", "compress spilled runs with Zstandard, whatever PROG is",
	  .parse = parse_compression, MEMBER(spec.compression), OF_GNU_SORT },
	{ "parallel", 0, "N", "use N CPU threads", .min = 1, .parse = parse_number,
	  MEMBER(spec.n_threads), OF_GNU_SORT },
	{ "batch-size", 0, "N", "merge at most N runs at once", .min = 2, .parse = parse_number,
	  MEMBER(spec.batch_size), OF_GNU_SORT },
	{ "backend", 0, "auto|cpu|cuda", "sort on a GPU or on the CPU",
	  .parse = option_parse_choice, MEMBER(spec.backend), .choices = option_backends },
	{ "device-memory", 0, "SIZE", "limit GPU memory", .parse = parse_size,
	  MEMBER(spec.device_memory_nbytes) },

	{ "explain", 0, "text|json", "print what would be done", .section = "Diagnostics",
	  .default_value = "text", .cli_only = true, .parse = option_parse_choice, MEMBER(explain),
	  .choices = option_explain_formats, SAME_ON_ALL },
	{ "progress", 0, "auto|always|never",
	  "show a progress line; auto: on a terminal, after a second; SIGUSR1 prints it once",
	  .cli_only = true, .parse = option_parse_choice, MEMBER(progress),
	  .choices = option_progress_modes, SAME_ON_ALL },
	{ "stats", 0, NULL, "print bytes, times and rates of each stage",
	  .parse = option_parse_flag, MEMBER(stats), SAME_ON_ALL },
	{ "stats-json", 0, "FILE", "write statistics to FILE as JSON", .parse = option_parse_text,
	  MEMBER(report_paths[REPORT_STATS_JSON]), SAME_ON_ALL },
	{ "trace", 0, "FILE", "write a timeline to FILE in the Chrome trace format",
	  .parse = option_parse_text, MEMBER(report_paths[REPORT_TRACE]), SAME_ON_ALL },
	{ "report", 0, "FILE", "write an HTML report to FILE", .parse = option_parse_text,
	  MEMBER(report_paths[REPORT_HTML]), SAME_ON_ALL },
	{ "debug", 0, NULL, "ignored, for compatibility with GNU sort", .cli_only = true,
	  .parse = option_parse_nothing, OF_GNU_SORT },
	{ "random-source", 0, "FILE", "ignored, for compatibility with GNU sort",
	  .parse = option_parse_nothing, OF_GNU_SORT },
	{ "y", 'y', "N", "ignored, for compatibility with GNU sort", .cli_only = true,
	  .parse = option_parse_nothing, OF_GNU_SORT },
	{ "lines", 0, NULL, "sort lines, with these options", .parse = option_parse_nothing },
	{ BUILTIN_OPTIONS_ROW_COMPLETION, .cli_only = true, SAME_ON_ALL },
	{ BUILTIN_OPTIONS_ROW_HELP, .cli_only = true, OF_GNU_SORT, SAME_ON_ALL },
	{ BUILTIN_OPTIONS_ROW_VERSION, .cli_only = true, OF_GNU_SORT, SAME_ON_ALL },

	{ "timeout", 0, "SECONDS", "abort if a rank has not answered for SECONDS (60)",
	  .cli_only = true, .section = "Ranks (" GSORT_PROGRAM "-mpi)",
	  .parse = option_parse_number, .max = OPTION_MAX_TIMEOUT_S, MEMBER(timeout_s),
	  .mpi_support = OPTION_MPI_ONLY },
	{ "shared-memory", 0, "auto|off",
	  "read runs in the memory of other ranks of the same machine (auto), or exchange all as "
	  "messages (off)",
	  .parse = option_parse_choice, MEMBER(spec.disable_shared_memory),
	  .choices = option_shared_memory_modes, .cli_only = true, .mpi_support = OPTION_MPI_ONLY },
};

static const struct option_conflict conflicts[] = {
	{ { "check", "C" },
	  { "output", "split", "shard", "count", "limit", "zstd", "checkpoint", "fsync" },
	  "a check writes nothing" },
	{ { "check", "C" }, { "explain" }, "a check has no plan" },
	{ { "explain" }, { "stats", "stats-json", "trace", "report" }, "nothing is sorted" },
	{ { "checkpoint" }, { "merge" }, "merge the files again instead" },
	{ { "checkpoint" }, { "temporary-directory" }, "temporary data is in the checkpoint" },
	{ { "split" }, { "shard" }, "a shard has no part manifest" },
	{ { "split" }, { "count" }, "part files hold lines only" },
	{ { "split" }, { "header" }, "part files hold sorted lines only" },
	{ { "shard" }, { "unique" }, "equal lines could be in two shards" },
	{ { "shard" }, { "limit", "header" }, "shards are made of all lines" },
};

const struct option_table line_option_table = {
	.specs = specs,
	.n_specs = sizeof specs / sizeof specs[0],
	.conflicts = conflicts,
	.n_conflicts = sizeof conflicts / sizeof conflicts[0],
	.replaces_values = true,
};

/* --- The options of a sort --- */

void line_options_init(struct options *options, struct line_keys *keys)
{
	line_keys_init(keys);
	options->line_keys = keys;
	options->spec.record_nbytes = 1;
	options->spec.compression.zstd_level = DEFAULT_ZSTD_LEVEL;
}

/* Set what was left open. */
static int set_defaults(struct options *options, const char *default_temp_dir)
{
	struct sort_spec *spec = &options->spec;

	spec->check_only = options_is_check(options);
	spec->skip_nbytes = options->n_header_lines;
	options_default_resources(spec);
	spec->n_threads = (unsigned)u64_min(spec->n_threads, OPTION_MAX_THREADS);
	spec->memory_nbytes = u64_max(u64_min(spec->memory_nbytes, memory_physical_nbytes()),
				      LINE_MIN_MEMORY_NBYTES);
	spec->zstd_level = option_find_zstd_level(spec->output_path, spec->zstd_level);
	return options_default_temp_dir(options, default_temp_dir);
}

int line_options_finalize(struct options *options, const char *default_temp_dir,
			  struct line_keys *ret_keys)
{
	const struct sort_spec *spec = &options->spec;
	const bool is_check = options_is_check(options);
	int r;

	if (is_check && spec->n_inputs > 1)
		return fail(-EINVAL, "extra operand '%s' not allowed with -%c", spec->inputs[1],
			    options->mode == MODE_CHECK ? 'c' : 'C');
	r = line_keys_finish(options->line_keys, ret_keys);
	if (r < 0)
		return r;
	ret_keys->stable = options->stable;
	ret_keys->unique = spec->unique;
	if (spec->comm && !spec->output_path && !is_check)
		return fail(-EINVAL, "standard output is not possible with several ranks; name a "
				     "file with -o");
	return set_defaults(options, default_temp_dir);
}

struct line_sort_params line_options_params(const struct options *options,
					    const struct line_keys *keys, struct stats *stats)
{
	return (struct line_sort_params){ .spec = options->spec,
					  .keys = keys,
					  .reads_part_files = options->mode != MODE_SORT,
					  .n_header_lines = options->n_header_lines,
					  .stats = stats };
}
