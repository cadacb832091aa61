/*
 * line_sort.h - sort lines of text that need not fit in memory
 *
 *	inputs -> [ chunk: read, sort ] -> run, run, run ... -> [ window: sort ] -> output
 *
 * A chunk is as much text as fits in memory with its elements (line_block.h). If that is all, it is
 * written to the output. Otherwise each sorted chunk is spilled as a run of text (run_file.h), and
 * the runs are merged.
 *
 * The merge reads the next part of each run into memory. Of the last lines of these parts, the
 * first one in the order bounds the window: lines up to it cannot be preceded by any that is not in
 * memory. The lines of the window are then sorted like those of a chunk. That takes about as long
 * as merging them would, uses all threads, and needs no other code. Then the parts are filled up.
 * If the lines of a window need too much memory, the window is halved. Runs for which memory is too
 * small are merged in several passes.
 *
 * Several ranks sort shares of the input, and each merges one partition (line_ranks.c).
 *
 * Every line is counted and hashed when it is read, and when it is written or dropped
 * (src/record/digest.h), and neighbours are compared when they are written. So a sort that succeeds
 * has written the lines that it has read, in order.
 */
#pragma once

#include "io/file/file.h"
#include "io/spill/compression_policy.h"
#include "src/base/cancellation.h"
#include "src/base/stats.h"
#include "src/device/backend.h"
#include "src/lines/line_keys.h"
#include "src/sort/sort_summary.h"

struct comm;

/* The least memory_nbytes of a sort. Options raise a smaller limit to this. */
enum { LINE_MIN_MEMORY_NBYTES = 4 << 20 };

struct line_sort_params {
	const struct line_keys *keys;
	const char *const *inputs; /* n_inputs; "-" is standard input */
	size_t n_inputs;
	const struct endpoint *input_endpoints; /* n_inputs; NULL: the inputs are paths */
	const char *output;                     /* NULL: standard output */
	struct endpoint output_endpoint;        /* zeroed: output is a path */
	const char *const *temp_directories;    /* n_temp_directories > 0 */
	size_t n_temp_directories;
	uint64_t temp_limit_nbytes;            /* SPILL_UNLIMITED: none */
	struct compression_params compression; /* of runs */
	uint64_t memory_nbytes;                /* limit for text, elements and buffers */
	uint32_t n_threads;                    /* at least 1 */
	uint32_t max_runs;                     /* merged at once; 0: as many as memory permits */
	const char *checkpoint_path;           /* directory of --checkpoint; NULL: none */
	bool reads_part_files;    /* directories among the inputs stand for their part files */
	bool is_raw;              /* do not decompress inputs */
	uint32_t n_part_files;    /* in the directory `output`; 0: the output is a file */
	uint32_t shard, n_shards; /* write only part `shard` of n_shards, from 1; 0: all */
	bool counts;    /* with keys->unique: write how many lines are equal before each line */
	uint64_t limit; /* the maximum number of lines to write; UINT64_MAX: all */
	uint64_t n_header_lines;           /* of each input; those of the first are written first */
	int zstd_level;                    /* of the output; 0: it is not compressed */
	struct stats *stats;               /* NULL: none */
	struct cancellation *cancellation; /* NULL: never */
	struct comm *comm;                 /* the ranks that sort together; NULL: one process */
	bool disable_shared_memory;        /* exchange runs by messages, even on one host */
	enum backend_choice backend;
	uint64_t device_memory_nbytes; /* limit of the GPU's memory; 0: 90 % of what is free */
};

/*
 * Sort the inputs into the output. *ret_summary: numbers of a sort that has succeeded; its records
 * are lines. Returns 0 or a negative errno after a message.
 */
int line_sort_run(const struct syscalls *calls, const struct line_sort_params *params,
		  struct sort_summary *ret_summary);

/* A line that is out of order. */
struct line_disorder {
	uint64_t number;     /* from 1; 0: there is no disorder */
	unsigned char *line; /* NULL: another rank has it */
	size_t nbytes;
};

/*
 * Find the first line of the only input that is out of order; with keys->unique, or equal to the
 * line before. The caller frees ret_disorder->line. Returns 0 or a negative errno after a message.
 */
int line_sort_check(const struct syscalls *calls, const struct line_sort_params *params,
		    struct sort_summary *ret_summary, struct line_disorder *ret_disorder);
