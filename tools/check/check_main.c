/*
 * gsort-check - are these files sorted, and what do they hold?
 *
 *	$ gsort-check sorted.bin
 *	sorted.bin: 1048576 records, sorted, 0 duplicate keys, checksum 5d1c9d3f0a6d0b58
 *
 * The checksum is that of the multiset of records: it is the same before and after sorting. For the
 * sort benchmark's records it is the benchmark's own, and so is the form of the answer.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

#include <zlib.h>

#include "io/input/input.h"
#include "src/base/memory_limit.h"
#include "src/base/status.h"
#include "src/check/verify.h"
#include "tools/tool.h"

/* Of the sort benchmark, whose checksum is the sum of zlib's crc32 of each record. */
enum { BENCHMARK_RECORD_NBYTES = 100 };

struct check_options {
	struct record_options record;
	bool unique;
	bool same;
	unsigned n_threads;
};

static const struct option_spec specs[] = {
	{ RECORD_OPTIONS_ROW_TYPE, .offset = offsetof(struct check_options, record) },
	{ RECORD_OPTIONS_ROW_SIZE, .offset = offsetof(struct check_options, record) },
	{ RECORD_OPTIONS_ROW_KEY, .offset = offsetof(struct check_options, record) },
	{ .name = "reverse",
	  .letter = 'r',
	  .help = "sorted means descending",
	  .take = option_take_flag,
	  .offset = offsetof(struct check_options, record.reverse) },
	{ .name = "unique",
	  .letter = 'u',
	  .help = "equal neighbours are disorder",
	  .take = option_take_flag,
	  .offset = offsetof(struct check_options, unique) },
	{ .name = "same",
	  .help = "do not look at the order: does the first FILE hold the same records as all "
		  "others together?",
	  .take = option_take_flag,
	  .offset = offsetof(struct check_options, same) },
	{ .name = "parallel",
	  .argument = "N",
	  .help = "threads (default: all available)",
	  .take = option_take_count,
	  .offset = offsetof(struct check_options, n_threads) },
	TOOL_ROW_HELP,
	TOOL_ROW_VERSION,
};

static const struct tool tool = {
	.name = "gsort-check",
	.usage = "gsort-check [OPTION]... FILE...\n"
		 "  or:  gsort-check [OPTION]... --same FILE FILE...\n"
		 "Check the order of binary records, and print their number and checksum.\n",
	.notes = RECORD_OPTIONS_TYPES
	"\n"
	"FILE may be - for standard input. For records of 100 bytes the findings are\n"
	"printed as valsort, the validator of the sort benchmark, prints them.\n"
	"\n"
	"Exit status: 0 sorted (or the same), 1 not so, 2 trouble.",
	.options = { .specs = specs, .n_specs = sizeof specs / sizeof specs[0] },
};

static uint32_t crc_of(const void *record, uint64_t nbytes)
{
	return (uint32_t)crc32(0, record, (unsigned)nbytes);
}

/* All of the paths as one stream. */
static int examine(const struct layout *layout, const struct check_options *options,
		   const char *const *paths, size_t n_paths, struct verify_result *ret_result)
{
	const struct verify_options verify = {
		.layout = layout,
		.strict = options->unique,
		.n_threads = options->n_threads,
		.hash = layout->record_nbytes == BENCHMARK_RECORD_NBYTES ? crc_of : NULL,
	};
	struct input *input;
	int r;

	r = input_open(&io_engine_plain, paths, n_paths, layout->record_nbytes, &input);
	if (r < 0)
		return r;
	r = verify_input(input, &verify, ret_result);
	input_close(input);
	return r;
}

static void print_line(const char *path, const struct verify_result *result)
{
	printf("%s: %" PRIu64 " records, ", path, result->digest.n_records);
	if (result->first_disorder)
		printf("disorder at record %" PRIu64 " and %" PRIu64 " more, ",
		       result->first_disorder, result->n_disorders - 1);
	else
		printf("sorted, ");
	printf("%" PRIu64 " duplicate keys, checksum %016" PRIx64 "\n", result->n_duplicates,
	       result->digest.sum);
}

/* Hexadecimal without leading zeros. */
static void print_hex(uint128_t n)
{
	if (n >> 64)
		printf("%" PRIx64 "%016" PRIx64, (uint64_t)(n >> 64), (uint64_t)n);
	else
		printf("%" PRIx64, (uint64_t)n);
}

/* As valsort does it: it counts records from 0. */
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

/* Returns an exit status or a negative errno. */
static int check_order(const struct layout *layout, const struct check_options *options,
		       const char *const *paths, size_t n_paths)
{
	int status = EXIT_SORTED;

	for (size_t i = 0; i < n_paths; i++) {
		struct verify_result result;
		const int r = examine(layout, options, &paths[i], 1, &result);

		if (r < 0)
			return r;
		if (layout->record_nbytes != BENCHMARK_RECORD_NBYTES) {
			print_line(paths[i], &result);
		} else {
			if (n_paths > 1)
				printf("%s:\n", paths[i]);
			print_as_valsort(&result);
		}
		if (result.first_disorder)
			status = EXIT_DISORDER;
	}
	return status;
}

static int compare(const struct layout *layout, const struct check_options *options,
		   const char *const *paths, size_t n_paths)
{
	struct verify_result first, others;
	int r;

	r = examine(layout, options, paths, 1, &first);
	if (r < 0)
		return r;
	r = examine(layout, options, paths + 1, n_paths - 1, &others);
	if (r < 0)
		return r;
	if (digest_equal(first.digest, others.digest))
		return EXIT_SORTED;
	printf("%s: %" PRIu64 " records, checksum %016" PRIx64 "; the other%s %" PRIu64
	       ", checksum %016" PRIx64 "\n",
	       paths[0], first.digest.n_records, first.digest.sum, n_paths > 2 ? "s" : "",
	       others.digest.n_records, others.digest.sum);
	return EXIT_DISORDER;
}

/* Returns an exit status or a negative errno. */
static int check(struct check_options *options, const char *const *paths, size_t n_paths)
{
	struct layout layout;
	int r;

	if (!options->same && n_paths < 1)
		return fail(-EINVAL, "which file? see --help");
	if (options->same && n_paths < 2)
		return fail(-EINVAL, "--same compares a file with others: give at least two");
	r = tool_make_layout(&options->record, &layout);
	if (r < 0)
		return r;
	r = options->same ? compare(&layout, options, paths, n_paths) :
			    check_order(&layout, options, paths, n_paths);
	layout_free(&layout);
	return r;
}

int main(int argc, char **argv)
{
	struct check_options options = {
		.n_threads = cpus_available(""),
	};
	struct option_result given;
	int r = tool_parse(&tool, argc, argv, &options, &given);

	if (r > 0)
		return EXIT_SORTED;
	if (r == 0)
		r = check(&options, (const char *const *)given.operands, given.n_operands);
	record_options_free(&options.record);
	if (r >= 0 && fflush(stdout) != 0)
		r = fail(-errno, "standard output: %m");
	return r < 0 ? EXIT_TROUBLE : r;
}
