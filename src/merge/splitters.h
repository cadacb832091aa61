/*
 * splitters - where the ranges of a merge begin (see partitions.h)
 *
 * A splitter is chosen among the blocks of all runs, and then every run is cut there: resident ones
 * by the device, others by reading the block that the cut is in.
 */
#pragma once

#include "src/run/run.h"

/*
 * Cut the runs into n_partitions partitions of about as many items: partition p consists of the
 * items of run i from ret_cuts[p * n_runs + i] to ret_cuts[(p + 1) * n_runs + i]. ret_cuts has room
 * for (n_partitions + 1) * n_runs. at_key_boundaries: no key is in two partitions. Resident runs
 * are sampled for that. Returns 0 or a negative errno after a message.
 */
int splitters_cut(const struct job *job, struct run *const *runs, uint32_t n_runs,
		  uint32_t n_partitions, bool at_key_boundaries, uint64_t *ret_cuts);
