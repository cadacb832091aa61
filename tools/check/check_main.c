/*
 * check_main.c - gsort-check: check the order of files, print record number and checksum
 *
 *	$ gsort-check sorted.bin
 *	sorted.bin: 1048576 records, sorted, 0 duplicate keys, checksum 5d1c9d3f0a6d0b58
 *
 * The checksum is that of the multiset of records: sorting does not change it. For records of the
 * sort benchmark, the checksum and the output are those of its validator, valsort.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zlib.h>

#include "config.h"
#include "io/input/input.h"
#include "src/base/text.h"
#include "src/base/system_limits.h"
#include "src/base/diagnostics.h"
#include "src/check/verify.h"
#include "src/cli/process_setup.h"
#include "src/options/file_roles.h"
#include "src/plan/sort_spec.h"
#include "tools/cli/tool_main.h"

/* Records of the sort benchmark; its checksum is the sum of zlib's crc32 of each record. */
enum { SORT_BENCHMARK_RECORD_NBYTES = 100 };

struct check_options {
	struct sort_spec spec; /* without inputs */
	struct record_options record;
	const char *files0_path; /* NULL: FILEs are operands */
	bool same_records;
};

static const struct option_spec specs[] = {
	{ RECORD_OPTIONS_ROW_TYPE, OPTION_MEMBER(struct check_options, record) },
	{ RECORD_OPTIONS_ROW_SIZE, OPTION_MEMBER(struct check_options, record) },
	{ RECORD_OPTIONS_ROW_KEY, OPTION_MEMBER(struct check_options, record) },
	{ RECORD_OPTIONS_ROW_FIELDS, .offset = offsetof(struct check_options, record) },
	{ "reverse", 'r', NULL, "check for descending order", .parse = option_parse_flag,
	  OPTION_MEMBER(struct check_options, record.reverse) },
	{ RECORD_OPTIONS_ROW_NAN, OPTION_MEMBER(struct check_options, record.nan_position) },
	{ "unique", 'u', NULL, "report equal neighbours as disorder", .parse = option_parse_flag,
	  OPTION_MEMBER(struct check_options, spec.unique) },
	{ "same-records", 0, NULL,
	  "check that the first FILE holds the same records as all others together, in any order",
	  .parse = option_parse_flag, OPTION_MEMBER(struct check_options, same_records) },
	{ FRAMING_OPTIONS_ROW_SKIP_BYTES, .help = "skip an N-byte header in each FILE",
	  OPTION_MEMBER(struct check_options, spec.skip_nbytes) },
	{ FRAMING_OPTIONS_ROW_PARTIAL,
	  .help = "refuse an incomplete last record (default), or ignore it; with keep, "
		  "--same-records compares it",
	  OPTION_MEMBER(struct check_options, spec.partial) },
	{ FRAMING_OPTIONS_ROW_FORMAT, OPTION_MEMBER(struct check_options, spec.format) },
	{ "files0-from", 0, "FILE", "read NUL-terminated FILE names from FILE (-: standard input)",
	  .parse = option_parse_text, OPTION_MEMBER(struct check_options, files0_path) },
	{ "parallel", 0, "N", "use N threads (default: all available)", .parse = option_parse_count,
	  OPTION_MEMBER(struct check_options, spec.n_threads) },
	{ "buffer-size", 'S', "SIZE",
	  "limit memory, for compressed FILEs for example (default: half of what is available)",
	  .parse = option_parse_size, OPTION_MEMBER(struct check_options, spec.memory_nbytes) },
	{ BUILTIN_OPTIONS_ROW_COMPLETION },
	{ BUILTIN_OPTIONS_ROW_HELP },
	{ BUILTIN_OPTIONS_ROW_VERSION },
};

static const struct tool tool = {
	.name = GSORT_PROGRAM "-check",
	.usage = GSORT_PROGRAM
	"-check [OPTION]... [FILE]...\n"
	"  or:  " GSORT_PROGRAM "-check [OPTION]... --same-records FILE FILE...\n"
	"Check the order of binary records, and print their number and checksum.\n",
	.notes = RECORD_OPTIONS_TYPES
	"\n"
	"Without FILE, or if FILE is -, standard input is checked. For records of 100\n"
	"bytes the output has the format of valsort, the validator of the sort\n"
	"benchmark.\n"
	"\n"
	"Exit status: 0 sorted (or the same records), 1 not, 2 error.",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

static uint32_t record_crc32(const void *record, uint64_t nbytes)
{
	return (uint32_t)crc32(0, record, (unsigned)nbytes);
}

/* The contents of some files. */
struct check_result {
	struct verify_result records;
	bool is_benchmark;       /* records of the sort benchmark */
	unsigned char *partials; /* of --partial=keep, concatenated; owned */
	size_t partials_nbytes;
};

static int gather_partials(const struct input *input, struct check_result *result)
{
	size_t nbytes = 0;

	for (size_t i = 0; i < input_n_files(input); i++)
		nbytes += input_trailer(input, i).nbytes;
	result->partials = malloc(nbytes + 1);
	if (!result->partials)
		return fail(-ENOMEM, "no memory for incomplete records of %zu bytes", nbytes);
	for (size_t i = 0; i < input_n_files(input); i++) {
		const struct input_trailer tail = input_trailer(input, i);

		if (tail.nbytes)
			memcpy(result->partials + result->partials_nbytes, tail.data, tail.nbytes);
		result->partials_nbytes += tail.nbytes;
	}
	return 0;
}

/* Limit the memory for reading, and *n_threads. */
static int limit_memory(struct input *input, const struct check_options *options,
			unsigned *n_threads)
{
	const uint64_t memory_nbytes = options->spec.memory_nbytes ?
					       options->spec.memory_nbytes :
					       memory_available_nbytes("") / 2;
	const bool is_stream = input_total_nbytes(input) == INPUT_SIZE_UNKNOWN;
	int r = is_stream ? input_probe_pipe(input, true) : 0;

	if (r < 0)
		return r;
	if (is_stream)
		*n_threads = 1;
	input_limit_windows(input, memory_nbytes, true);
	return input_check_reading_memory(input, memory_nbytes, VERIFY_THREAD_NBYTES, n_threads);
}

/* Check paths as one stream. *ret_result must be zeroed, and be freed even after an error. */
static int check_inputs_as_one(const struct check_options *options, const char *const *paths,
			       size_t n_paths, struct check_result *ret_result)
{
	struct sort_spec spec = options->spec;
	struct verify_options verify = { .strict = spec.unique, .n_threads = spec.n_threads };
	struct input_probe opened;
	int r;

	spec.inputs = paths;
	spec.n_inputs = n_paths;
	r = spec_open_inputs(&spec, tool.name, &opened);
	if (r == 0)
		r = spec_finish_probe(&spec, &opened);
	if (r == 0)
		r = file_roles_check_streams(opened.input, true);
	if (r == 0)
		r = limit_memory(opened.input, options, &verify.n_threads);
	if (r == 0) {
		const uint64_t record_nbytes = opened.layout.record_nbytes;

		ret_result->is_benchmark = record_nbytes == SORT_BENCHMARK_RECORD_NBYTES;
		verify.layout = &opened.layout;
		verify.hash = ret_result->is_benchmark ? record_crc32 : NULL;
		r = verify_input(opened.input, &verify, &ret_result->records);
	}
	if (r == 0)
		r = gather_partials(opened.input, ret_result);
	if (r == 0)
		r = input_check_state(opened.input);
	spec_close_probe(&opened);
	return r;
}

/* Print a name as messages do. */
static void print_name(const char *path)
{
	char line[QUOTED_NBYTES(PATH_MAX)];

	fputs(quote_text(path, line, sizeof line), stdout);
}

static void print_line(const char *path, const struct verify_result *result)
{
	print_name(path);
	printf(": %" PRIu64 " records, ", result->digest.n_records);
	if (result->first_disorder)
		printf("disorder at record %" PRIu64 " and %" PRIu64 " more, ",
		       result->first_disorder, result->n_disorders - 1);
	else
		printf("sorted, ");
	printf("%" PRIu64 " duplicate keys, checksum %016" PRIx64 "\n", result->n_duplicates,
	       result->digest.sum);
}

/* Print hexadecimal digits without leading zeros. */
static void print_hex(uint128_t n)
{
	if (n >> 64)
		printf("%" PRIx64 "%016" PRIx64, (uint64_t)(n >> 64), (uint64_t)n);
	else
		printf("%" PRIx64, (uint64_t)n);
}

/* Print what valsort prints. It counts records from 0. */
static void print_as_valsort(const struct verify_result *result)
{
	if (result->first_disorder)
		printf("First unordered record is record %" PRIu64 "\n",
		       result->first_disorder - 1);
	printf("Records: %" PRIu64 "\nChecksum: ", result->digest.n_records);
	print_hex(result->hash_sum);
	if (result->first_disorder)
		printf("\nERROR - there are %" PRIu64 " unordered records\n", result->n_disorders);
	else
		printf("\nDuplicate keys: %" PRIu64 "\nSUCCESS - all records are in order\n",
		       result->n_duplicates);
}

/* Return an exit status or a negative errno (reported). */
static int check_order(const struct check_options *options, const char *const *paths,
		       size_t n_paths)
{
	int status = EXIT_SORTED;

	for (size_t i = 0; i < n_paths; i++) {
		struct check_result file_result = { 0 };
		const int r = check_inputs_as_one(options, &paths[i], 1, &file_result);
		const struct verify_result result = file_result.records;

		free(file_result.partials);
		if (r < 0)
			return r;
		if (!file_result.is_benchmark) {
			print_line(paths[i], &result);
		} else {
			if (n_paths > 1) {
				print_name(paths[i]);
				puts(":");
			}
			print_as_valsort(&result);
		}
		if (result.first_disorder)
			status = EXIT_DISORDER;
	}
	return status;
}

static bool has_same_records(const struct check_result *a, const struct check_result *b)
{
	return digest_equal(a->records.digest, b->records.digest) &&
	       a->partials_nbytes == b->partials_nbytes &&
	       memcmp(a->partials, b->partials, a->partials_nbytes) == 0;
}

static void print_difference(const char *path, bool is_plural, const struct check_result *reference,
			     const struct check_result *others)
{
	const struct digest a = reference->records.digest, b = others->records.digest;

	print_name(path);
	if (digest_equal(a, b))
		printf(": the records are the same, the incomplete ones are not\n");
	else
		printf(": %" PRIu64 " records, checksum %016" PRIx64 "; the other%s %" PRIu64
		       ", checksum %016" PRIx64 "\n",
		       a.n_records, a.sum, is_plural ? "s" : "", b.n_records, b.sum);
}

/* Return an exit status or a negative errno (reported). */
static int compare_record_sets(const struct check_options *options, const char *const *paths,
			       size_t n_paths)
{
	struct check_result first = { 0 }, others = { 0 };
	int r = check_inputs_as_one(options, paths, 1, &first);

	if (r == 0)
		r = check_inputs_as_one(options, paths + 1, n_paths - 1, &others);
	if (r == 0 && !has_same_records(&first, &others)) {
		print_difference(paths[0], n_paths > 2, &first, &others);
		r = EXIT_DISORDER;
	}
	free(first.partials);
	free(others.partials);
	return r;
}

/* Return the names of operands or of --files0-from. The caller frees both results. */
static int resolve_paths(const struct check_options *options, const struct parsed_options *parsed,
			 const char ***ret_paths, size_t *ret_n, char **ret_text)
{
	const char **paths;

	if (options->files0_path && parsed->n_operands)
		return fail(-EINVAL, "--files0-from: operand '%s' cannot be given as well",
			    parsed->operands[0]);
	if (options->files0_path)
		return files0_read(options->files0_path, 0, ret_paths, ret_n, ret_text);
	paths = calloc(parsed->n_operands + 1, sizeof *paths);
	if (!paths)
		return fail(-ENOMEM, "file names: %m");
	paths[0] = "-";
	for (unsigned i = 0; i < parsed->n_operands; i++)
		paths[i] = parsed->operands[i];
	*ret_paths = paths;
	*ret_n = parsed->n_operands == 0 ? 1 : parsed->n_operands;
	return 0;
}

/* Refuse a second reading of standard input: it would be empty, and so sorted. */
static int check_standard_input(const char *const *paths, size_t n_paths)
{
	size_t n_stdin = 0;

	for (size_t i = 0; i < n_paths; i++)
		n_stdin += !strcmp(paths[i], "-");
	if (n_stdin > 1)
		return fail(-EINVAL, "'-': standard input can be read only once, not %zu times",
			    n_stdin);
	return 0;
}

/* Refuse an output that is one of the inputs. */
static int check_input_conflicts(const struct check_options *options, const char *const *paths,
				 size_t n_paths)
{
	struct file_roles roles = { 0 };
	int r = file_roles_add_list(&roles, options->files0_path);

	if (r == 0)
		r = file_roles_add_stream(&roles, ROLE_MESSAGES, STDOUT_FILENO);
	if (r == 0)
		r = file_roles_add_stream(&roles, ROLE_MESSAGES, STDERR_FILENO);
	for (size_t i = 0; i < n_paths && r == 0; i++)
		r = file_roles_check_input(&roles, paths[i]);
	file_roles_free(&roles);
	return r;
}

/* Return an exit status or a negative errno (reported). */
static int check_or_compare(struct check_options *options, const char *const *paths, size_t n_paths)
{
	int r;

	if (options->same_records && n_paths < 2)
		return fail(-EINVAL, "--same-records requires at least two files");
	r = check_standard_input(paths, n_paths);
	if (r == 0)
		r = check_input_conflicts(options, paths, n_paths);
	if (r < 0)
		return r;
	r = record_options_finalize(&options->record, &options->spec);
	if (r < 0)
		return r;
	return options->same_records ? compare_record_sets(options, paths, n_paths) :
				       check_order(options, paths, n_paths);
}

static int run_gsort_check(int argc, char **argv)
{
	struct check_options options = {
		.spec = { .check_only = true,
			  .limit = SORT_SPEC_UNLIMITED,
			  .n_threads = cpus_available("") },
	};
	struct parsed_options parsed;
	const char **paths = NULL;
	char *names = NULL;
	size_t n_paths = 0;
	int r = tool_parse(&tool, argc, argv, &options, &parsed);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0)
		r = resolve_paths(&options, &parsed, &paths, &n_paths, &names);
	if (r == 0)
		r = check_or_compare(&options, paths, n_paths);
	free(paths);
	free(names);
	record_options_free(&options.record);
	if (r >= 0 && fflush(stdout) != 0)
		r = fail(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : r;
}

int main(int argc, char **argv)
{
	return process_run_main(run_gsort_check, argc, argv);
}
