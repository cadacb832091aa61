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

#include <stdbool.h>
#include <stdio.h>

#include "src/lines/line_keys.h"
#include "src/plan/sort_spec.h"
#include "src/sort/sort.h"
#include "src/sort/sort_summary.h"

/* The least memory_nbytes of a sort. Options raise a smaller limit to this. */
enum { LINE_MIN_MEMORY_NBYTES = 4 << 20 };

struct line_sort_params {
	/*
	 * The sort, described as one of records of one byte. `limit` and shards count lines, and
	 * skip_nbytes equals n_header_lines. n_threads and memory_nbytes must be set. Keys and
	 * fields are not used.
	 */
	struct sort_spec spec;
	const struct line_keys *keys;
	bool reads_part_files;   /* directories among the inputs stand for their part files */
	uint64_t n_header_lines; /* of each input; those of the first are written first */
	struct stats *stats;     /* NULL: none */
};

/*
 * Sort the inputs into the output. *ret_summary: numbers of a sort that has succeeded; its records
 * are lines. Returns 0 or a negative errno after a message.
 */
int line_sort_run(const struct line_sort_params *params, struct sort_summary *ret_summary);

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
int line_sort_check(const struct line_sort_params *params, struct sort_summary *ret_summary,
		    struct line_disorder *ret_disorder);

/*
 * Plan a sort without sorting (--explain); of several ranks, on one of them. The memory is divided
 * as for the sort, and the first lines of the input tell how much text fits in it. Reads nothing
 * from pipes. Returns 0 or a negative errno after a message.
 */
int line_sort_explain(const struct line_sort_params *params, struct explanation *ret_explanation);
