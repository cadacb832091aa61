/*
 * lines_main - gsort: records (src/cli/cli_main.h), or lines of text with the options of GNU sort
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "include/gsort.h"
#include "io/input/part_manifest.h"
#include "io/spill/spill.h"
#include "src/base/diagnostics.h"
#include "src/base/size.h"
#include "src/base/system_limits.h"
#include "src/base/text.h"
#include "src/cli/cli_main.h"
#include "src/cli/exit_status.h"
#include "src/cli/print_message.h"
#include "src/cli/process_setup.h"
#include "src/lib/process_hooks.h"
#include "src/lines/line_explain.h"
#include "src/lines/line_reports.h"
#include "src/lines/line_sort.h"

/* Options without a letter. */
enum long_option {
	OPTION_SORT = 256,
	OPTION_CHECK,
	OPTION_RANDOM_SOURCE,
	OPTION_COMPRESS_PROGRAM,
	OPTION_FILES0_FROM,
	OPTION_PARALLEL,
	OPTION_BATCH_SIZE,
	OPTION_DEBUG,
	OPTION_HELP,
	OPTION_VERSION,
	/* These, and --lines, are not of GNU sort. */
	OPTION_LINES,
	OPTION_HEADER,
	OPTION_COUNT,
	OPTION_LIMIT,
	OPTION_BACKEND,
	OPTION_DEVICE_MEMORY,
	OPTION_TEMP_COMPRESS,
	OPTION_TEMP_LIMIT,
	OPTION_ZSTD,
	OPTION_SPLIT,
	OPTION_SPLIT_BY,
	OPTION_SHARD,
	OPTION_EXPLAIN,
	OPTION_PROGRESS,
	OPTION_STATS,
	OPTION_STATS_JSON,
	OPTION_TRACE,
	OPTION_REPORT,
};

static const struct option long_options[] = {
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
	{ "temp-compress", required_argument, NULL, OPTION_TEMP_COMPRESS },
	{ "temp-limit", required_argument, NULL, OPTION_TEMP_LIMIT },
	{ "zstd", required_argument, NULL, OPTION_ZSTD },
	{ "split", required_argument, NULL, OPTION_SPLIT },
	{ "split-by", required_argument, NULL, OPTION_SPLIT_BY },
	{ "shard", required_argument, NULL, OPTION_SHARD },
	{ "explain", optional_argument, NULL, OPTION_EXPLAIN },
	{ "progress", required_argument, NULL, OPTION_PROGRESS },
	{ "stats", no_argument, NULL, OPTION_STATS },
	{ "stats-json", required_argument, NULL, OPTION_STATS_JSON },
	{ "trace", required_argument, NULL, OPTION_TRACE },
	{ "report", required_argument, NULL, OPTION_REPORT },
	{ NULL, 0, NULL, 0 },
};

static const char help_text[] =
	"Sort lines of text as GNU sort does in the C locale.\n"
	"\n"
	"Ordering:\n"
	"  -b, --ignore-leading-blanks    skip blanks at the beginning of a key\n"
	"  -d, --dictionary-order         compare only blanks, letters and digits\n"
	"  -f, --ignore-case              compare lower case as upper case\n"
	"  -g, --general-numeric-sort     compare floating-point numbers\n"
	"  -h, --human-numeric-sort       compare numbers with suffixes (2K, 1G)\n"
	"  -i, --ignore-nonprinting       compare only printable characters\n"
	"  -M, --month-sort               compare months (JAN < ... < DEC)\n"
	"  -n, --numeric-sort             compare decimal numbers\n"
	"  -r, --reverse                  reverse the order\n"
	"  -V, --version-sort             compare version numbers in names\n"
	"      --sort=WORD                general-numeric, human-numeric, month, numeric\n"
	"                                 or version\n"
	"  -k, --key=POS1[,POS2]          compare from POS1 to POS2, or to the end of the line;\n"
	"                                 a position is FIELD[.CHAR][bdfghiMnrV]\n"
	"  -t, --field-separator=CHAR     separate fields by CHAR\n"
	"  -s, --stable                   keep the order of lines with equal keys\n"
	"  -u, --unique                   write only the first of lines with equal keys\n"
	"\n"
	"Operation and output:\n"
	"  -c, --check[=WORD]             check the order; quiet or silent: without a message\n"
	"  -C                             check the order without a message\n"
	"  -m, --merge                    merge sorted files\n"
	"  -o, --output=FILE              write to FILE, which may be an input\n"
	"  -z, --zero-terminated          end lines with NUL instead of newline\n"
	"      --split=P                  write P part files of equal numbers of lines, in the\n"
	"                                 directory of -o\n"
	"      --shard=K/P                with -m: write only part K of P of the output\n"
	"      --zstd=LEVEL               compress the output (3 if it is named *.zst)\n"
	"      --files0-from=FILE         read NUL-terminated input names from FILE\n"
	"      --header[=N]               keep the first N lines (1) of the input in front\n"
	"      --count                    with -u: write before each line how many were equal\n"
	"      --limit=N                  write only the first N lines of the result\n"
	"\n"
	"Resources:\n"
	"  -S, --buffer-size=SIZE         limit host memory\n"
	"  -T, --temporary-directory=DIR  store temporary files in DIR\n"
	"      --temp-limit=SIZE          limit temporary space of spilled runs\n"
	"      --temp-compress=MODE       compress spilled runs: auto, none, zstd, zstd:LEVEL\n"
	"      --compress-program=PROG    compress spilled runs with Zstandard, whatever PROG is\n"
	"      --parallel=N               use N CPU threads\n"
	"      --batch-size=N             merge at most N runs at once\n"
	"      --backend=auto|cpu|cuda    sort whole lines on a GPU or on the CPU\n"
	"      --device-memory=SIZE       limit GPU memory\n"
	"\n"
	"Diagnostics:\n"
	"      --explain[=FORM]           print what would be done, as text or json\n"
	"      --progress=WHEN            show a progress line: auto (on a terminal, after a\n"
	"                                 second), always or never; SIGUSR1 prints it once\n"
	"      --stats                    print bytes, times and rates of each stage\n"
	"      --stats-json=FILE          write statistics to FILE as JSON\n"
	"      --trace=FILE               write a timeline to FILE in the Chrome trace format\n"
	"      --report=FILE              write an HTML report to FILE\n"
	"\n"
	"Exit status: 0 success; 1 -c or -C found disorder; 2 error, with a message.\n";

enum { MAX_THREADS = 1024, MAX_TEMP_DIRECTORIES = 64 };

/* What the command line asks for. */
struct lines_command {
	struct line_keys keys;
	struct line_sort_params params;
	struct line_report_options reports;
	const char *temp_directories[MAX_TEMP_DIRECTORIES];
	const char **inputs; /* room for the words of the command line */
	const char *files0_from;
	char **words; /* the command line without obsolete keys */
	char check;   /* 'c', 'C'; 0: sort */
	bool merges;
	const char *explain; /* "text", "json"; NULL: sort */
};

/*
 * Return whether the command line is one of lines: the program is called "sort" or "lsort", or one
 * of the words before "--" is --lines.
 */
static bool lines_is_requested(int argc, char **argv)
{
	const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;

	name = name ? name + 1 : argc > 0 ? argv[0] : "";
	if (strcmp(name, "sort") == 0 || strcmp(name, "lsort") == 0)
		return true;
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		if (strcmp(argv[i], "--lines") == 0)
			return true;
	return false;
}

static int add_temp_directory(struct lines_command *command, const char *path)
{
	if (command->params.n_temp_directories == MAX_TEMP_DIRECTORIES)
		return fail(-EINVAL, "-T %s: more than %d directories", path, MAX_TEMP_DIRECTORIES);
	command->temp_directories[command->params.n_temp_directories++] = path;
	return 0;
}

static int take_backend(struct lines_command *command, const char *word)
{
	static const char *const words[] = {
		[BACKEND_AUTO] = "auto", [BACKEND_CPU] = "cpu", [BACKEND_CUDA] = "cuda"
	};

	for (enum backend_choice i = BACKEND_AUTO; i <= BACKEND_CUDA; i++) {
		if (strcmp(word, words[i]) == 0) {
			command->params.backend = i;
			return 0;
		}
	}
	return fail(-EINVAL, "--backend: '%s' is not auto, cpu or cuda", word);
}

static int take_compression(struct lines_command *command, const char *mode)
{
	if (compression_parse(mode, &command->params.compression) < 0)
		return fail(-EINVAL,
			    "--temp-compress: '%s' is not auto, none, delta, zstd or zstd:LEVEL",
			    mode);
	return 0;
}

static int take_number(const char *option, const char *text, uint64_t *ret_number)
{
	char *end;

	errno = 0;
	*ret_number = strtoull(text, &end, 10);
	return *end || end == text || *text == '-' || errno ?
		       fail(-EINVAL, "%s: '%s' is not a number", option, text) :
		       0;
}

/* --sort=WORD */
static int take_sort_word(struct lines_command *command, const char *word)
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
			line_keys_add_letter(&command->keys, words[i].letter);
			return 0;
		}
	return fail(-EINVAL, "invalid argument '%s' for '--sort'", word);
}

/* --split=P */
static int take_split(struct lines_command *command, const char *text)
{
	uint64_t n;
	const int r = take_number("--split", text, &n);

	if (r == 0 && (n < 1 || n > PART_MANIFEST_MAX_PARTS))
		return fail(-EINVAL, "--split: '%s' is not from 1 to %d", text,
			    PART_MANIFEST_MAX_PARTS);
	command->params.n_part_files = (uint32_t)n;
	return r;
}

/* --shard=K/P */
static int take_shard(struct lines_command *command, const char *text)
{
	enum { MAX_SHARDS = 1000000 };
	struct line_sort_params *params = &command->params;
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
static int take_output_option(struct lines_command *command, int option, const char *value)
{
	switch (option) {
	case OPTION_COUNT:
		command->params.counts = true;
		return 0;
	case OPTION_LIMIT:
		return take_number("--limit", value, &command->params.limit);
	case OPTION_ZSTD:
		return compression_parse_level(value, &command->params.zstd_level) < 0 ?
			       fail(-EINVAL, "--zstd: '%s' is not a level from 1 to %d", value,
				    compression_max_level()) :
			       0;
	case OPTION_SPLIT:
		return take_split(command, value);
	case OPTION_SPLIT_BY:
		return strcmp(value, "records") == 0 ?
			       0 :
			       fail(-EINVAL,
				    "--split-by: lines are split by their number: records");
	case OPTION_SHARD:
		return take_shard(command, value);
	default:
		return 1;
	}
}

/* --explain[=FORM] */
static int take_explain(struct lines_command *command, const char *form)
{
	if (strcmp(form, "text") != 0 && strcmp(form, "json") != 0)
		return fail(-EINVAL, "--explain: '%s' is not text or json", form);
	command->explain = form;
	return 0;
}

/* --progress=WHEN */
static int take_progress(struct lines_command *command, const char *when)
{
	static const char *const modes[] = {
		[PROGRESS_AUTO] = "auto", [PROGRESS_ALWAYS] = "always", [PROGRESS_NEVER] = "never"
	};

	for (enum progress_mode mode = PROGRESS_AUTO; mode <= PROGRESS_NEVER; mode++)
		if (strcmp(when, modes[mode]) == 0) {
			command->reports.progress = mode;
			return 0;
		}
	return fail(-EINVAL, "--progress: '%s' is not auto, always or never", when);
}

/* Options that report on the sort. Returns 0, -EINVAL after a message, or 1 for others. */
static int take_report_option(struct lines_command *command, int option, const char *value)
{
	struct line_report_options *reports = &command->reports;

	switch (option) {
	case OPTION_EXPLAIN:
		return take_explain(command, value ? value : "text");
	case OPTION_PROGRESS:
		return take_progress(command, value);
	case OPTION_STATS:
		reports->prints_stats = true;
		return 0;
	case OPTION_STATS_JSON:
		reports->paths.stats_json = value;
		return 0;
	case OPTION_TRACE:
		reports->paths.trace = value;
		return 0;
	case OPTION_REPORT:
		reports->paths.html = value;
		return 0;
	default:
		return 1;
	}
}

/* --check=WORD */
static int take_check_word(struct lines_command *command, const char *word)
{
	char check = 'c';

	const size_t n = word ? strlen(word) : 0;

	if (n && (strncmp(word, "quiet", n) == 0 || strncmp(word, "silent", n) == 0))
		check = 'C';
	else if (word && (n == 0 || strncmp(word, "diagnose-first", n) != 0))
		return fail(-EINVAL, "invalid argument '%s' for '--check'", word);
	if (command->check && command->check != check)
		return fail(-EINVAL, "options '-cC' are incompatible");
	command->check = check;
	return 0;
}

static int take_output(struct lines_command *command, const char *path)
{
	if (command->params.output && strcmp(command->params.output, path) != 0)
		return fail(-EINVAL, "multiple output files specified");
	command->params.output = path;
	return 0;
}

static int take_option(struct lines_command *command, int option, const char *value)
{
	struct line_sort_params *params = &command->params;
	uint64_t number = 0;
	int r = take_report_option(command, option, value);

	if (r > 0)
		r = take_output_option(command, option, value);
	if (r <= 0)
		return r;
	switch (option) {
	case OPTION_LINES:
	case OPTION_DEBUG:
	case OPTION_RANDOM_SOURCE:
	case 'y':
		return 0;
	case OPTION_SORT:
		return take_sort_word(command, value);
	case OPTION_CHECK:
	case 'c':
		return take_check_word(command, value);
	case 'C':
		return take_check_word(command, "quiet");
	case 'k':
		return line_keys_add(&command->keys, value);
	case 'm':
		command->merges = true;
		return 0;
	case 'o':
		return take_output(command, value);
	case 'R':
		return fail(-EINVAL, "-R: random order is not supported");
	case 's':
		command->keys.stable = true;
		return 0;
	case 'S':
		return size_parse_option("-S", value, SIZE_OF_SPACE, &params->memory_nbytes);
	case 't':
		return line_keys_set_separator(&command->keys, value);
	case 'T':
		return add_temp_directory(command, value);
	case 'u':
		command->keys.unique = true;
		return 0;
	case 'z':
		command->keys.delimiter = '\0';
		return 0;
	case OPTION_FILES0_FROM:
		command->files0_from = value;
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
		return take_backend(command, value);
	case OPTION_DEVICE_MEMORY:
		return size_parse_option("--device-memory", value, SIZE_OF_SPACE,
					 &params->device_memory_nbytes);
	case OPTION_COMPRESS_PROGRAM:
		return take_compression(command, "zstd");
	case OPTION_TEMP_COMPRESS:
		return take_compression(command, value);
	case OPTION_TEMP_LIMIT:
		return size_parse_option("--temp-limit", value, SIZE_OF_SPACE,
					 &params->temp_limit_nbytes);
	case OPTION_HEADER:
		return take_number("--header", value ? value : "1", &params->n_header_lines);
	default:
		return line_keys_add_letter(&command->keys, (char)option) ? 0 : -EINVAL;
	}
}

/* Read the input names of --files0-from. */
static int read_names(struct lines_command *command)
{
	const bool is_stdin = strcmp(command->files0_from, "-") == 0;
	FILE *file = is_stdin ? stdin : fopen(command->files0_from, "re");
	size_t capacity = 0, n_names = 0;
	char *name = NULL;
	int r = 0;

	if (!file)
		return fail(-errno, "open failed: %s: %m", command->files0_from);
	command->params.n_inputs = 0;
	while (r == 0 && getdelim(&name, &capacity, '\0', file) > 0) {
		const char **grown = reallocarray(command->inputs, n_names + 1, sizeof *grown);
		char *copy = grown ? strdup(name) : NULL;

		if (grown)
			command->inputs = grown;
		if (!copy)
			r = fail(-ENOMEM, "no memory for the input names");
		else if (strcmp(name, "-") == 0)
			r = fail(-EINVAL, "%s:%zu: no file name of '-' allowed",
				 command->files0_from, n_names + 1);
		else if (!*name)
			r = fail(-EINVAL, "%s:%zu: invalid zero-length file name",
				 command->files0_from, n_names + 1);
		else
			grown[n_names++] = copy;
	}
	if (r == 0 && n_names == 0)
		r = fail(-EINVAL, "no input from '%s'", command->files0_from);
	command->params.n_inputs = n_names;
	free(name);
	if (!is_stdin)
		fclose(file);
	return r;
}

/* An obsolete position, F[.C][LETTERS] that counts from 0. Returns what follows the numbers. */
static const char *parse_obsolete(const char *text, unsigned long *ret_field,
				  unsigned long *ret_character)
{
	char *end;

	*ret_field = strtoul(text, &end, 10);
	*ret_character = 0;
	if (*end == '.')
		*ret_character = strtoul(end + 1, &end, 10);
	return end;
}

/*
 * Turn the obsolete key "+POS1 [-POS2]" at argv[i] into words of -k. Returns the number of words
 * that it takes, or 0 if there is none.
 */
static int convert_obsolete_key(int argc, char **argv, int i, char **ret_key)
{
	unsigned long field, character, end_field, end_character;
	const char *letters, *end_letters;
	const bool has_end = i + 1 < argc && argv[i + 1][0] == '-' && argv[i + 1][1] >= '0' &&
			     argv[i + 1][1] <= '9';

	if (argv[i][0] != '+' || argv[i][1] < '0' || argv[i][1] > '9')
		return 0;
	letters = parse_obsolete(argv[i] + 1, &field, &character);
	if (!has_end) {
		if (asprintf(ret_key, "%lu.%lu%s", field + 1, character + 1, letters) < 0)
			*ret_key = NULL;
		return 1;
	}
	end_letters = parse_obsolete(argv[i + 1] + 1, &end_field, &end_character);
	/* -F without characters ends after field F, counted from 1. */
	if (asprintf(ret_key, "%lu.%lu%s,%lu.%lu%s", field + 1, character + 1, letters,
		     end_character ? end_field + 1 : end_field, end_character, end_letters) < 0)
		*ret_key = NULL;
	return 2;
}

/* Return whether the option before a word takes it as its value. */
static bool takes_next_word(const char *word)
{
	static const char *const letters[] = { "-k", "-o", "-S", "-t", "-T" };

	for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++)
		if (strcmp(word, letters[i]) == 0)
			return true;
	for (const struct option *option = long_options; option->name; option++)
		if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, option->name) == 0)
			return option->has_arg == required_argument;
	return false;
}

/*
 * Find the option of GNU sort that a word abbreviates, if it could also be one that only gsort has.
 * NULL: there is none, or more than one.
 */
static const struct option *find_gnu_option(const char *word)
{
	const size_t n = strcspn(word, "=");
	const struct option *found = NULL;

	if (strncmp(word, "--", 2) != 0 || n == 2)
		return NULL;
	for (const struct option *option = long_options; option->name; option++) {
		if (strncmp(word + 2, option->name, n - 2) != 0)
			continue;
		if (option->name[n - 2] == '\0' || (option->val < OPTION_LINES && found))
			return NULL;
		if (option->val < OPTION_LINES)
			found = option;
	}
	return found;
}

/*
 * Write the abbreviated options of GNU sort out, so that the names of other options do not make
 * them ambiguous. Returns 0, or -ENOMEM after a message.
 */
static int complete_option_names(int argc, char **argv)
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct option *option =
			takes_next_word(argv[i - 1]) ? NULL : find_gnu_option(argv[i]);
		char *word;

		if (!option)
			continue;
		if (asprintf(&word, "--%s%s", option->name, argv[i] + strcspn(argv[i], "=")) < 0)
			return fail(-ENOMEM, "no memory for the option %s", argv[i]);
		argv[i] = word;
	}
	return 0;
}

/*
 * Replace obsolete keys in the command line. They end at "--", and are accepted as by GNU sort:
 * unless _POSIX2_VERSION is from 200112 to 200808. Returns the new number of words, or -ENOMEM
 * after a message.
 */
static int convert_obsolete_keys(int argc, char **argv, char **ret_words)
{
	const char *version = getenv("_POSIX2_VERSION");
	const long posix_version = version ? strtol(version, NULL, 10) : 200809;
	const bool accepts = posix_version < 200112 || posix_version >= 200809;
	int n = 0, i = 0;

	for (; i < argc && strcmp(argv[i], "--") != 0;) {
		char *key = NULL;
		const int n_taken = accepts && i > 0 ? convert_obsolete_key(argc, argv, i, &key) :
						       0;

		if (n_taken == 0) {
			ret_words[n++] = argv[i++];
			continue;
		}
		if (!key)
			return fail(-ENOMEM, "no memory for the key %s", argv[i]);
		ret_words[n++] = (char *)"-k";
		ret_words[n++] = key;
		i += n_taken;
	}
	while (i < argc)
		ret_words[n++] = argv[i++];
	ret_words[n] = NULL;
	if (n > 0) /* for the messages of getopt_long() */
		ret_words[0] = (char *)GSORT_PROGRAM;
	return n;
}

/* Check combinations of options that GNU sort does not have. */
static int check_options(const struct lines_command *command)
{
	const struct line_sort_params *params = &command->params;
	const char *option = params->n_part_files ? "--split" :
			     params->n_shards     ? "--shard" :
			     params->counts       ? "--count" :
			     command->explain     ? "--explain" :
						    NULL;

	if (option && command->check)
		return fail(-EINVAL, "options '-%c %s' are incompatible", command->check, option);
	if (params->counts && !command->keys.unique)
		return fail(-EINVAL, "--count requires -u");
	if (params->n_part_files && !params->output)
		return fail(-EINVAL, "--split requires -o");
	if (params->n_shards && !command->merges)
		return fail(-EINVAL, "--shard requires -m");
	if (params->n_part_files && (params->n_shards || params->counts || params->n_header_lines))
		return fail(-EINVAL, "--split: not with --shard, --count or --header");
	if (params->n_shards &&
	    (command->keys.unique || params->limit != UINT64_MAX || params->n_header_lines))
		return fail(-EINVAL, "--shard: not with -u, --limit or --header");
	return 0;
}

/* Returns 0, 1 if --help or --version was printed, or a negative errno after a message. */
static int parse_words(struct lines_command *command, int argc, char **argv)
{
	int option, r = 0;

	optind = 0; /* a process may parse several command lines */
	while (r == 0 && (option = getopt_long(argc, argv, "bcCdfghik:mMno:rRsS:t:T:uVy:z",
					       long_options, NULL)) != -1) {
		if (option == '?')
			return -EINVAL;
		if (option == OPTION_HELP) {
			printf("Usage: %s --lines [OPTION]... [FILE]...\n%s", GSORT_PROGRAM,
			       help_text);
			return 1;
		}
		if (option == OPTION_VERSION) {
			printf("%s %s\n", GSORT_PROGRAM, GSORT_VERSION);
			return 1;
		}
		/* -y takes a number, or nothing. */
		if (option == 'y' && optarg == argv[optind - 1] && (*optarg < '0' || *optarg > '9'))
			optind--;
		r = take_option(command, option, optarg);
	}
	command->inputs = calloc((size_t)argc + 1, sizeof *command->inputs);
	if (r == 0 && !command->inputs)
		r = fail(-ENOMEM, "no memory for the command line");
	for (int i = optind; r == 0 && i < argc; i++)
		command->inputs[command->params.n_inputs++] = argv[i];
	if (r == 0 && command->files0_from) {
		if (command->params.n_inputs > 0)
			return fail(-EINVAL,
				    "extra operand '%s': file operands cannot be combined with "
				    "--files0-from",
				    command->inputs[0]);
		r = read_names(command);
	}
	if (r == 0 && command->params.n_inputs == 0)
		command->inputs[command->params.n_inputs++] = "-";
	if (r == 0)
		r = check_options(command);
	if (r == 0 && command->check && command->params.n_inputs > 1)
		r = fail(-EINVAL, "extra operand '%s' not allowed with -%c", command->inputs[1],
			 command->check);
	if (r == 0 && command->check && command->params.output)
		r = fail(-EINVAL, "options '-%co' are incompatible", command->check);
	return r;
}

/* Print the plan. Returns the exit status. */
static int explain(const struct lines_command *command)
{
	struct line_plan plan;
	int r = line_plan_make(process_syscalls(process_get()), &command->params, &plan);

	if (r == 0 && strcmp(command->explain, "json") == 0)
		r = line_plan_write_json(&plan, stdout);
	else if (r == 0)
		line_plan_print(&plan, stdout);
	if (r == 0 && fflush(stdout) != 0)
		r = fail(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : EXIT_SORTED;
}

/* Print the disorder that was found. */
static void print_disorder(const struct lines_command *command,
			   const struct line_disorder *disorder)
{
	fprintf(stderr, "%s: %s:%llu: disorder: ", GSORT_PROGRAM, command->inputs[0],
		(unsigned long long)disorder->number);
	fwrite(disorder->line, 1, disorder->nbytes, stderr);
	fputc(command->keys.delimiter, stderr);
}

/* Sort or check, and report. Returns the exit status. */
static int sort_or_check(const struct lines_command *command)
{
	const struct syscalls *calls = process_syscalls(process_get());
	const struct line_sort_params *params = &command->params;
	struct line_disorder disorder = { 0 };
	struct sort_summary summary;
	struct line_reports reports;
	int r = line_reports_open(calls, &command->reports, params, &reports);

	if (r == 0) {
		struct line_sort_params with_stats = *params;

		with_stats.stats = reports.stats;
		r = command->check ? line_sort_check(calls, &with_stats, &summary, &disorder) :
				     line_sort_run(calls, &with_stats, &summary);
	}
	line_reports_stop_display(&reports);
	if (r == 0 && disorder.number && command->check == 'c')
		print_disorder(command, &disorder);
	if (r == 0)
		r = line_reports_write(&reports, params, &summary, command->check, disorder.number);
	line_reports_close(&reports);
	free(disorder.line);
	return r < 0 ? EXIT_TROUBLE : disorder.number ? EXIT_DISORDER : EXIT_SORTED;
}

/* Set what the command line leaves open. */
static int complete_params(struct lines_command *command)
{
	struct line_sort_params *params = &command->params;
	const char *directory = getenv("TMPDIR");
	const size_t n = params->output ? strlen(params->output) : 0;

	params->keys = &command->keys;
	params->inputs = command->inputs;
	params->reads_part_files = command->merges || command->check;
	params->temp_directories = command->temp_directories;
	if (params->n_threads == 0) {
		params->n_threads = cpus_available("");
		if (params->n_threads > MAX_THREADS)
			params->n_threads = MAX_THREADS;
	}
	if (params->memory_nbytes == 0)
		params->memory_nbytes = memory_available_nbytes("") / 2;
	if (params->memory_nbytes > memory_physical_nbytes())
		params->memory_nbytes = memory_physical_nbytes();
	if (!params->zstd_level && n > 4 && strcmp(params->output + n - 4, ".zst") == 0)
		params->zstd_level = DEFAULT_ZSTD_LEVEL;
	if (params->n_temp_directories > 0)
		return 0;
	return add_temp_directory(command, directory && *directory ? directory : "/tmp");
}

static int run_command(struct lines_command *command, int argc, char **argv)
{
	int r = process_setup(), n_words;

	if (r < 0) {
		fail(r, "cannot handle signals: %m");
		return EXIT_TROUBLE;
	}
	fatal_signals_install();
	command->words = calloc(2 * (size_t)argc + 1, sizeof *command->words);
	if (!command->words) {
		fail(-ENOMEM, "no memory for the command line");
		return EXIT_TROUBLE;
	}
	n_words = convert_obsolete_keys(argc, argv, command->words);
	r = n_words < 0 ? n_words : complete_option_names(n_words, command->words);
	if (r == 0)
		r = parse_words(command, n_words, command->words);
	if (r > 0)
		return fflush(stdout) == 0 ? EXIT_SORTED : EXIT_TROUBLE;
	if (r == 0)
		r = line_keys_finish(&command->keys);
	if (r < 0)
		return EXIT_TROUBLE;
	r = complete_params(command);
	if (r < 0)
		return EXIT_TROUBLE;
	return command->explain ? explain(command) : sort_or_check(command);
}

static void print_diagnostic(void *context, const struct message *message)
{
	char line[QUOTED_NBYTES(MESSAGE_NBYTES)];

	(void)context;
	cli_message(message->kind == MESSAGE_ERROR   ? GSORT_ERROR :
		    message->kind == MESSAGE_WARNING ? GSORT_WARNING :
						       GSORT_NOTICE,
		    quote_text(message->text, line, sizeof line));
}

/* Sort or check lines. Returns the exit status. */
static int lines_main(int argc, char **argv)
{
	struct lines_command command = {
		.params = { .limit = UINT64_MAX,
			    .temp_limit_nbytes = SPILL_UNLIMITED,
			    .compression = { .zstd_level = DEFAULT_ZSTD_LEVEL } },
	};
	struct diagnostics diagnostics;
	int status;

	diagnostics_init(&diagnostics, print_diagnostic, NULL);
	diagnostics_push(&diagnostics);
	line_keys_init(&command.keys);
	status = run_command(&command, argc, argv);
	line_keys_free(&command.keys);
	free(command.inputs);
	free(command.words);
	fatal_signals_raise_pending();
	return status;
}

static int run_gsort(int argc, char **argv)
{
	return lines_is_requested(argc, argv) ? lines_main(argc, argv) :
						cli_main(&(struct cli_hooks){ 0 }, argc, argv);
}

int main(int argc, char **argv)
{
	cli_configure_malloc();
	return process_run_main(run_gsort, argc, argv);
}
