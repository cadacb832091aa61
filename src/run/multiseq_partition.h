/*
 * multiseq_partition - where a merge of runs has written so many items
 *
 * What is said of it depends on nothing but the items of the runs and their order: not on blocks,
 * memory or threads. So processes that have never met agree.
 */
#pragma once

#include "src/run/run.h"

/*
 * Cut runs that are not resident: the first ret_cuts[i] items of each run i, of n_runs, are the
 * first `rank` items that come of them in the order of (key, run, place in the run). Of n items
 * some 3 log n are looked up in each run. Runs that are not in order are cut somewhere. Returns 0
 * or a negative errno after a message.
 */
int multiseq_partition(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
		       uint64_t rank, uint64_t *ret_cuts);

/*
 * The same, but no key is on both sides of the cut: all items of the key that would be divided come
 * behind it.
 */
int multiseq_partition_at_key(const struct layout *layout, struct run *const *runs, uint32_t n_runs,
			      uint64_t rank, uint64_t *ret_cuts);
