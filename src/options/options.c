/*
 * options - all that can be asked of gsort, by name (see options.h)
 *
 * One row per option; rows are numbered by enum option_row so that the rules about combinations can
 * name them. The order of the rows is the order of --help.
 */
#include "src/options/options.h"

#include <stdlib.h>

#include "config.h"
#include "io/input/part_manifest.h"
#include "src/options/builtin_options.h"
#include "src/options/value_parsers.h"
#include "src/options/framing_options.h"
#include "src/options/option_spec.h"
#include "src/options/record_options.h"

/* Limits that catch typing errors. */
enum { MAX_THREADS = 1024, MAX_PARTITIONS = 1024, MAX_RANKS = 1 << 20 };

/* Some eleven days. */
enum { MAX_TIMEOUT_S = 1000000 };

enum option_row {
	ROW_TYPE,
	ROW_RECORD_SIZE,
	ROW_KEY,
	ROW_FIELDS,
	ROW_REVERSE,
	ROW_UNIQUE,
	ROW_STABLE,
	ROW_OUTPUT,
	ROW_CHECK,
	ROW_CHECK_QUIET,
	ROW_MERGE,
	ROW_SHARD,
	ROW_SPLIT,
	ROW_SPLIT_BY,
	ROW_EXPLAIN,
	ROW_ASSUME_SIZE,
	ROW_RANKS,
	ROW_ASSUME_RATES,
	ROW_VERIFY,
	ROW_FSYNC,
	ROW_FILES0,
	ROW_SKIP_BYTES,
	ROW_PARTIAL,
	ROW_FORMAT,
	ROW_LIMIT,
	ROW_COUNT,
	ROW_KEYS_ONLY,
	ROW_ARGSORT,
	ROW_ZSTD,
	ROW_BUFFER_SIZE,
	ROW_DEVICE_MEMORY,
	ROW_TEMP_DIR,
	ROW_TEMP_LIMIT,
	ROW_CHECKPOINT,
	ROW_TEMP_COMPRESS,
	ROW_PARALLEL,
	ROW_BATCH_SIZE,
	ROW_PARTITIONS,
	ROW_BACKEND,
	ROW_GPUS,
	ROW_PROGRESS,
	ROW_STATS,
	ROW_STATS_JSON,
	ROW_TRACE,
	ROW_REPORT,
	ROW_DEBUG,
	ROW_TIMEOUT,
	ROW_SHARED_MEMORY,
	ROW_COMPLETION,
	ROW_HELP,
	ROW_VERSION,
	N_ROWS
};

static const struct option_choice check_modes[] = { { "diagnose-first", MODE_CHECK },
						    { "quiet", MODE_CHECK_QUIET },
						    { "silent", MODE_CHECK_QUIET },
						    { 0 } };

static const struct option_choice backends[] = {
	{ "auto", BACKEND_AUTO }, { "cuda", BACKEND_CUDA }, { "cpu", BACKEND_CPU }, { 0 }
};

static const struct option_choice split_units[] = { { "records", false }, { "keys", true }, { 0 } };

static const struct option_choice progress_modes[] = { { "auto", PROGRESS_OPTION_AUTO },
						       { "always", PROGRESS_OPTION_ALWAYS },
						       { "never", PROGRESS_OPTION_NEVER },
						       { 0 } };

static const struct option_choice explain_formats[] = { { "text", EXPLAIN_TEXT },
							{ "json", EXPLAIN_JSON },
							{ 0 } };

static const struct option_choice shared_memory_modes[] = { { "auto", false },
							    { "off", true },
							    { 0 } };

#define MEMBER(member) OPTION_MEMBER(struct options, member)

_Static_assert(DEFAULT_ZSTD_LEVEL == 3, "what the row of --zstd says");

static const struct option_spec specs[N_ROWS] = {
	[ROW_TYPE] = { RECORD_OPTIONS_ROW_TYPE, .section = "Records and keys", MEMBER(record),
		       .mpi_support = OPTION_MPI_YES },
	[ROW_RECORD_SIZE] = { RECORD_OPTIONS_ROW_SIZE, MEMBER(record),
			      .mpi_support = OPTION_MPI_YES },
	[ROW_KEY] = { RECORD_OPTIONS_ROW_KEY, MEMBER(record), .mpi_support = OPTION_MPI_YES },
	[ROW_FIELDS] = { RECORD_OPTIONS_ROW_FIELDS, MEMBER(record), .mpi_support = OPTION_MPI_YES },
	[ROW_REVERSE] = { "reverse", 'r', NULL,
			  "sort all keys in descending order; equal records keep "
			  "their input order",
			  .parse = option_parse_flag, MEMBER(record.reverse),
			  .mpi_support = OPTION_MPI_YES },
	[ROW_UNIQUE] = { "unique", 'u', NULL, "keep only the first of the records with equal keys",
			 .parse = option_parse_flag, MEMBER(unique),
			 .mpi_support = OPTION_MPI_YES },
	[ROW_STABLE] = { "stable", 's', NULL, "accept the option of GNU sort; every sort is stable",
			 .parse = value_parse_nothing, .mpi_support = OPTION_MPI_YES },

	[ROW_OUTPUT] = { "output", 'o', "FILE",
			 "write to FILE, which may be an input; FILE is replaced "
			 "only when the sort succeeds",
			 .section = "Operation and output", .parse = option_parse_text,
			 MEMBER(output_path), .mpi_support = OPTION_MPI_YES },
	[ROW_CHECK] = { "check", 'c', "diagnose-first|quiet|silent",
			"check the order and report the first disorder; with quiet "
			"or silent, report nothing; with -u, equal keys are "
			"disorder",
			.default_value = "diagnose-first", .cli_only = true,
			.parse = option_parse_choice, MEMBER(mode), .choices = check_modes,
			.mpi_support = OPTION_MPI_YES },
	[ROW_CHECK_QUIET] = { "C", 'C', NULL,
			      "check the order without a message, like --check=quiet",
			      .cli_only = true, .parse = option_parse_value, MEMBER(mode),
			      .value = MODE_CHECK_QUIET, .mpi_support = OPTION_MPI_YES },
	[ROW_MERGE] = { "merge", 'm', NULL, "merge inputs that are sorted already",
			.parse = option_parse_value, MEMBER(mode), .value = MODE_MERGE,
			.mpi_support = OPTION_MPI_YES },
	[ROW_SHARD] = { "shard", 0, "K/P",
			"with -m: write only the K-th of P shards of equal length",
			.parse = value_parse_shard, .same_value = value_same_shard,
			.mpi_substitute = "ranks share a merge already; or run " GSORT_PROGRAM
					  " -m --shard=K/P for "
					  "each K" },
	[ROW_SPLIT] = { "split", 0, "P",
			"split the output into P part files: -o names a directory of "
			"part-0000 and so on, and manifest.json, which appears "
			"complete or not at all",
			.max = PART_MANIFEST_MAX_PARTS, .parse = option_parse_count,
			MEMBER(n_part_files), .mpi_support = OPTION_MPI_YES },
	[ROW_SPLIT_BY] = { "split-by", 0, "records|keys",
			   "split after equal numbers of records, or between keys, so "
			   "that no key is in two part files (always with -u)",
			   .parse = option_parse_choice, MEMBER(split_at_keys),
			   .choices = split_units, .mpi_support = OPTION_MPI_YES },
	[ROW_EXPLAIN] = { "explain", 0, "text|json", "print the plan and exit",
			  .default_value = "text", .parse = option_parse_choice, MEMBER(explain),
			  .choices = explain_formats, .cli_only = true,
			  .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_ASSUME_SIZE] = { "assume-size", 0, "SIZE",
			      "with --explain: plan for SIZE bytes from a pipe",
			      .parse = option_parse_size, MEMBER(assumed_nbytes), .cli_only = true,
			      .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_RANKS] = { "ranks", 0, "N", "with --explain: plan for N MPI ranks", .max = MAX_RANKS,
			.parse = option_parse_count, MEMBER(n_ranks), .cli_only = true,
			.mpi_substitute =
				"leave it out to plan for these ranks, or use " GSORT_PROGRAM
				" --explain" },
	[ROW_ASSUME_RATES] = { "assume-rates", 0, "LIST",
			       "with --explain of ranks: use these rates of each rank per "
			       "second, for example "
			       "disk=2G,network=3G,messages=4000,processors=1G",
			       .parse = value_parse_rates, .cli_only = true,
			       .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_VERIFY] = { "verify", 0, NULL, "read the output back after writing and check it again",
			 .parse = option_parse_flag, MEMBER(verify),
			 .mpi_support = OPTION_MPI_YES },
	[ROW_FSYNC] = { "fsync", 0, NULL, "sync the output to stable storage before exit",
			.parse = option_parse_flag, MEMBER(fsync), .mpi_support = OPTION_MPI_YES },
	[ROW_FILES0] = { "files0-from", 0, "FILE",
			 "read NUL-terminated input names from FILE (-: standard "
			 "input)",
			 .parse = option_parse_text, MEMBER(files0_path),
			 .mpi_support = OPTION_MPI_YES },

	[ROW_SKIP_BYTES] = { FRAMING_OPTIONS_ROW_SKIP_BYTES,
			     .help = "skip an N-byte header in each input; copy the "
				     "first one to the output",
			     .section = "Input and output format", MEMBER(skip_nbytes),
			     .mpi_support = OPTION_MPI_YES },
	[ROW_PARTIAL] = { FRAMING_OPTIONS_ROW_PARTIAL,
			  .help = "refuse an incomplete last record (default), "
				  "append it to the output, or drop it",
			  MEMBER(partial), .mpi_support = OPTION_MPI_YES },
	[ROW_FORMAT] = { FRAMING_OPTIONS_ROW_FORMAT, MEMBER(format),
			 .mpi_support = OPTION_MPI_YES },
	[ROW_LIMIT] = { "limit", 0, "N", "write only the first N records of the result",
			.parse = option_parse_number, MEMBER(limit),
			.mpi_support = OPTION_MPI_YES },
	[ROW_COUNT] = { "count", 0, NULL,
			"with -u: write the number of equal records before each "
			"record, as u64",
			.parse = option_parse_flag, MEMBER(count), .mpi_support = OPTION_MPI_YES },
	[ROW_KEYS_ONLY] = { "keys-only", 0, NULL, "write the keys instead of the records",
			    .parse = option_parse_flag, MEMBER(keys_only),
			    .mpi_support = OPTION_MPI_YES },
	[ROW_ARGSORT] = { "argsort", 0, NULL,
			  "write the records' positions in the input, from 0, as "
			  "u64, instead of the records",
			  .parse = option_parse_flag, MEMBER(argsort),
			  .mpi_support = OPTION_MPI_YES },

	[ROW_ZSTD] = { "zstd", 0, "LEVEL", "compress the output (default if it is named *.zst)",
		       .default_value = "3", .parse = value_parse_zstd, MEMBER(zstd_level),
		       .mpi_support = OPTION_MPI_YES },

	[ROW_BUFFER_SIZE] = { "buffer-size", 'S', "SIZE",
			      "limit host memory for data; default: half of what is "
			      "available to this process",
			      .section =
				      "Resources (SIZE: number and b, K (default), M, G, T or %)",
			      .parse = option_parse_size, MEMBER(buffer_nbytes),
			      .mpi_support = OPTION_MPI_YES },
	[ROW_DEVICE_MEMORY] = { "device-memory", 0, "SIZE",
				"limit the memory on each GPU; default: 90 % of what is "
				"free",
				.parse = option_parse_size, MEMBER(device_memory_nbytes),
				.mpi_support = OPTION_MPI_YES },
	[ROW_TEMP_DIR] = { "temporary-directory", 'T', "DIR",
			   "store spilled runs in DIR; repeat to use several "
			   "directories; default $TMPDIR, else /tmp",
			   .repeats = true, .parse = value_parse_temp_dir,
			   .mpi_support = OPTION_MPI_YES },
	[ROW_TEMP_LIMIT] = { "temp-limit", 0, "SIZE",
			     "limit temporary space; fail before it is exceeded",
			     .parse = value_parse_temp_limit, MEMBER(temp_limit_nbytes),
			     .mpi_support = OPTION_MPI_YES },
	[ROW_CHECKPOINT] = { "checkpoint", 0, "DIR",
			     "store runs in DIR; rerun the same command to resume",
			     .parse = option_parse_text, MEMBER(checkpoint_path),
			     .mpi_support = OPTION_MPI_YES },
	[ROW_TEMP_COMPRESS] = { "temp-compress", 0, "MODE",
				"compress spilled runs: auto (default), none, delta, "
				"zstd[:LEVEL]",
				.get_word = value_temp_compress_word,
				.parse = value_parse_temp_compress, MEMBER(compression),
				.mpi_support = OPTION_MPI_YES },
	[ROW_PARALLEL] = { "parallel", 0, "N", "use N CPU threads; default: all available",
			   .max = MAX_THREADS, .parse = option_parse_count, MEMBER(n_threads),
			   .mpi_support = OPTION_MPI_YES },
	[ROW_BATCH_SIZE] = { "batch-size", 0, "N", "merge at most N runs at once", .min = 2,
			     .parse = option_parse_count, MEMBER(batch_size),
			     .mpi_support = OPTION_MPI_YES },
	[ROW_PARTITIONS] = { "partitions", 0, "N", "merge N partitions of the output in parallel",
			     .max = MAX_PARTITIONS, .parse = option_parse_count,
			     MEMBER(n_partitions), .mpi_support = OPTION_MPI_YES },
	[ROW_BACKEND] = { "backend", 0, "auto|cuda|cpu",
			  "sort and merge on this back end; default auto",
			  .parse = option_parse_choice, MEMBER(backend), .choices = backends,
			  .mpi_support = OPTION_MPI_YES },
	[ROW_GPUS] = { "gpus", 0, "LIST", "sort on these GPUs, for example 0,1, or on all",
		       .parse = value_parse_gpus, .same_value = value_same_gpus,
		       .mpi_support = OPTION_MPI_YES },

	[ROW_PROGRESS] = { "progress", 0, "auto|always|never",
			   "show a progress line on standard error; auto (default): "
			   "on a terminal, after a second; SIGUSR1 prints it once",
			   .section = "Diagnostics", .parse = option_parse_choice, MEMBER(progress),
			   .cli_only = true, .choices = progress_modes,
			   .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_STATS] = { "stats", 0, NULL,
			"print a table of bytes, times and rates of each stage on "
			"standard error at the end",
			.parse = option_parse_flag, MEMBER(stats),
			.mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_STATS_JSON] = { "stats-json", 0, "FILE", "write statistics to FILE as JSON",
			     .parse = option_parse_text, MEMBER(stats_json_path),
			     .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_TRACE] = { "trace", 0, "FILE",
			"write a timeline to FILE in the Chrome trace event format",
			.parse = option_parse_text, MEMBER(trace_path),
			.mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_REPORT] = { "report", 0, "FILE",
			 "write an HTML report to FILE: plan, phases, activity, "
			 "memory",
			 .parse = option_parse_text, MEMBER(report_path),
			 .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_DEBUG] = { "debug", 0, NULL, "print the parsed keys and the first encoded records",
			.parse = option_parse_flag, MEMBER(debug),
			.mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_TIMEOUT] = { "timeout", 0, "SECONDS",
			  "abort if a rank has not answered for SECONDS; 0: never; "
			  "default 60",
			  .max = MAX_TIMEOUT_S, .parse = option_parse_number, MEMBER(timeout_s),
			  .cli_only = true, .mpi_support = OPTION_MPI_ONLY },
	[ROW_SHARED_MEMORY] = { "shared-memory", 0, "auto|off",
				"read runs in the memory of other ranks of the same "
				"machine (auto, default), or exchange all runs as messages "
				"(off)",
				.parse = option_parse_choice, MEMBER(no_shared_memory),
				.choices = shared_memory_modes, .mpi_support = OPTION_MPI_ONLY },
	[ROW_COMPLETION] = { BUILTIN_OPTIONS_ROW_COMPLETION, .cli_only = true,
			     .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_HELP] = { BUILTIN_OPTIONS_ROW_HELP, .help = "print this help and exit",
		       .cli_only = true, .mpi_support = OPTION_MPI_SAME_ON_ALL },
	[ROW_VERSION] = { BUILTIN_OPTIONS_ROW_VERSION, .help = "print the version and exit",
			  .cli_only = true, .mpi_support = OPTION_MPI_SAME_ON_ALL },
};

static const struct option_conflict conflicts[] = {
	{ ROW_CHECK, ROW_CHECK_QUIET, "choose one of them" },
	{ ROW_CHECK, ROW_OUTPUT, "a check writes nothing" },
	{ ROW_CHECK, ROW_CHECKPOINT, "a check writes nothing" },
	{ ROW_CHECK, ROW_MERGE, "a check merges nothing" },
	{ ROW_CHECK, ROW_EXPLAIN, "a check has no plan" },
	{ ROW_CHECK, ROW_VERIFY, "a check writes nothing" },
	{ ROW_CHECK, ROW_FSYNC, "a check writes nothing" },
	{ ROW_CHECK, ROW_LIMIT, "a check writes nothing" },
	{ ROW_CHECK, ROW_COUNT, "a check writes nothing" },
	{ ROW_CHECK, ROW_KEYS_ONLY, "a check writes nothing" },
	{ ROW_CHECK, ROW_ARGSORT, "a check writes nothing" },
	{ ROW_CHECK, ROW_ZSTD, "a check writes nothing" },
	{ ROW_CHECK, ROW_SPLIT, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_SPLIT, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_ZSTD, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_OUTPUT, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_CHECKPOINT, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_MERGE, "a check merges nothing" },
	{ ROW_CHECK_QUIET, ROW_EXPLAIN, "a check has no plan" },
	{ ROW_CHECK_QUIET, ROW_VERIFY, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_FSYNC, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_LIMIT, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_COUNT, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_KEYS_ONLY, "a check writes nothing" },
	{ ROW_CHECK_QUIET, ROW_ARGSORT, "a check writes nothing" },
	{ ROW_EXPLAIN, ROW_REPORT, "nothing is sorted" },
	{ ROW_EXPLAIN, ROW_STATS_JSON, "nothing is sorted" },
	{ ROW_EXPLAIN, ROW_TRACE, "nothing is sorted" },
	{ ROW_CHECKPOINT, ROW_MERGE, "merge the files again instead" },
	{ ROW_CHECKPOINT, ROW_TEMP_DIR, "temporary data is in the checkpoint" },
	{ ROW_SHARD, ROW_SPLIT, "a shard has no part manifest" },
	{ ROW_SHARD, ROW_UNIQUE, "equal records could be in two shards" },
	{ ROW_SHARD, ROW_LIMIT, "shards are made of all records" },
	{ ROW_COUNT, ROW_ARGSORT, "choose what is written" },
	{ ROW_KEYS_ONLY, ROW_ARGSORT, "choose what is written" },
	{ ROW_VERIFY, ROW_ARGSORT, "positions have no order to verify" },
};

const struct option_table options_table = {
	.specs = specs,
	.n_specs = N_ROWS,
	.conflicts = conflicts,
	.n_conflicts = sizeof conflicts / sizeof conflicts[0],
};

void options_free(struct options *options)
{
	record_options_free(&options->record);
	free(options->inputs);
	free(options->files0_text);
	free(options->temp_dirs);
	free(options->gpus);
	*options = (struct options){ 0 };
}

struct sort_spec options_spec(const struct options *options)
{
	const struct record_options *record = &options->record;

	return (struct sort_spec){
		.inputs = options->inputs,
		.n_inputs = options->n_inputs,
		.merge_inputs = options->mode == MODE_MERGE,
		.check_only = options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET,
		.skip_nbytes = options->skip_nbytes,
		.partial = options->partial,
		.format = options->format,
		.record_nbytes = record->record_nbytes,
		.keys = record->keys,
		.n_keys = record->n_keys,
		.record_spec = record->spec_kind,
		.key_requests = record->key_requests,
		.n_key_requests = record->n_key_requests,
		.reverse = record->reverse,
		.output_path = options->output_path,
		.unique = options->unique,
		.limit = options->limit,
		.count = options->count,
		.keys_only = options->keys_only,
		.argsort = options->argsort,
		.zstd_level = options->zstd_level,
		.n_part_files = options->n_part_files,
		.split_by_keys = options->split_at_keys,
		.verify = options->verify,
		.fsync = options->fsync,
		.backend = options->backend,
		.gpus = options->gpus,
		.n_gpus = options->n_gpus,
		.all_gpus = options->all_gpus,
		.n_threads = options->n_threads,
		.memory_nbytes = options->buffer_nbytes,
		.device_memory_nbytes = options->device_memory_nbytes,
		.batch_size = options->batch_size,
		.n_partitions = options->n_partitions,
		.disable_shared_memory = options->no_shared_memory,
		.n_assumed_ranks = options->n_ranks,
		.shard = options->shard,
		.n_shards = options->n_shards,
		.temp_dirs = options->temp_dirs,
		.n_temp_dirs = options->n_temp_dirs,
		.temp_limit_nbytes = options->temp_limit_nbytes,
		.compression = options->compression,
		.checkpoint_path = options->checkpoint_path,
		.measure_peak_rates = options->stats || options->stats_json_path ||
				      options->report_path,
	};
}
