/*
 * partition - one range of a merge: a part of the output that is a merge of its own
 *
 * It merges parts of all runs, between two cuts, and gives what it makes to the sink of all, at its
 * place. Which ranges there are, and who merges them, is known by partitions.c alone.
 */
#pragma once

#include "src/merge/sink.h"
#include "src/plan/job.h"
#include "src/run/run.h"

struct merge_partition {
	/* Of whoever merges it; all else 0 */
	uint32_t number;
	struct job job; /* with a plan, and memory of windows, of its own; the limit of all */
	const struct sink *shared_sink; /* that all ranges go to */

	/* Its own */
	struct run **runs; /* n_runs: parts, each with something in it */
	uint32_t n_runs;
	uint64_t n_items;  /* in them */
	uint64_t position; /* of the first in the output; with -u from where it counts */

	/* Found, in the end */
	struct merge_edges edges;
	struct merge_result result;
};

/* Where it begins in each run, and where it ends. */
struct partition_extents {
	struct run *const *runs;
	uint32_t n_runs;
	const uint64_t *begins, *ends;
};

/*
 * Merge it. Returns 0, or a negative errno after a message; what it has found is kept in either
 * case, until partition_free(). Of several threads each has ranges of its own.
 */
int partition_merge(struct merge_partition *partition, const struct partition_extents *extents);

void partition_free(struct merge_partition *partition);
