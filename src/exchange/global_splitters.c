/*
 * global_splitters.c - cut the runs of all ranks into partitions
 */
#include "src/exchange/global_splitters.h"

int global_splitters_cut(struct comm *comm, const struct job *job, struct run *const *runs,
			 uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts)
{
	return cuts_make(comm, job, runs, n_runs, params, ret_cuts);
}
