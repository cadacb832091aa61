/*
 * splitters - where the ranges of a merge begin (see partitions.h)
 *
 * A splitter is chosen among the blocks of all runs, and then every run is cut there: resident ones
 * by the device, others by reading the block that the cut is in.
 */
#pragma once

#include "src/run/run.h"

/*
 * Cut the runs into n_ranges ranges of about as many items: run i, from ret_cuts[r * n_runs + i]
 * to ret_cuts[(r + 1) * n_runs + i], is in range r. at_keys: such that no key is in two of them;
 * range r > 0 then begins in front of a key, which is put into ret_keys[r], of
 * layout_key_nbytes(); NULL: it is not wanted. ret_cuts: room for (n_ranges + 1) * n_runs. Resident
 * runs are sampled for that. Returns 0 or a negative errno after a message.
 */
int splitters_cut(const struct job *job, struct run *const *runs, uint32_t n_runs,
		  uint32_t n_partitions, bool at_key_boundaries, void *const *ret_keys,
		  uint64_t *ret_cuts);

/*
 * Cut the runs in front of each of n keys, which are in order: run i is cut at
 * ret_cuts[k * n_runs + i]. NULL is in front of all. Returns as above.
 */
int splitters_cut_at(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     const void *const *keys, uint32_t n, uint64_t *ret_cuts);
