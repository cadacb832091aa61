/*
 * global_splitters.h - cut the runs of all ranks into partitions
 */
#pragma once

#include "src/merge/cuts.h"

/*
 * Like cuts_make() with a communicator. Collective: every rank makes the call, with equal params
 * and its own runs.
 */
int global_splitters_cut(struct comm *comm, const struct job *job, struct run *const *runs,
			 uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts);
