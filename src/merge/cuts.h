/*
 * cuts.h - cut k sorted runs at the same point of their merged order
 *
 * A cut gives for each run the number of items before it. The merged order is (key, rank, run,
 * position in the run), so equal keys are in the order of the input.
 */
#pragma once

#include "src/comm/comm.h"
#include "src/run/run.h"

struct splitter_params {
	uint32_t n_partitions;  /* at least 1 */
	uint64_t max_items;     /* divide only the first max_items of the merged order */
	bool at_key_boundaries; /* no key is in two partitions */
};

/*
 * Cut the runs into n_partitions partitions of about as many items each. Partition p has the items
 * of run i from ret_cuts[p * n_runs + i] to ret_cuts[(p + 1) * n_runs + i], so ret_cuts has
 * (n_partitions + 1) * n_runs elements. The last partition also gets all items after max_items.
 *
 * With a communicator (NULL: none) each rank has some of the runs, and the runs of all ranks are
 * cut. Every rank must make the call, with equal params, and gets the cuts of its own runs.
 *
 * Resident runs are sampled. Returns 0 or a negative errno (reported).
 */
int cuts_make(struct comm *comm, const struct job *job, struct run *const *runs, uint32_t n_runs,
	      const struct splitter_params *params, uint64_t *ret_cuts);

/*
 * Cut runs that are not resident exactly: ret_cuts[i] of the first n_items items of the merged
 * order are in run i. With at_key_boundary, all items of the key that would be divided are after
 * the cut. The result depends only on the items and the order of the runs, not on blocks, memory or
 * threads, so processes that do not communicate get the same one.
 *
 * Reads about 3 log2(items) items of each run. Runs that are not sorted are cut somewhere. Returns
 * 0 or a negative errno (reported).
 */
int cuts_after_items(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
		     uint64_t n_items, bool at_key_boundary, uint64_t *ret_cuts);
