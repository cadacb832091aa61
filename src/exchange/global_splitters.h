/*
 * global_splitters - where the ranges of the ranks begin
 *
 * As src/merge/splitters.h, of runs of which each rank has some: the order of all blocks is that of
 * (first key, rank, run, number in the run), which is the order of ties in the input. Of that
 * sequence, which nobody has as a whole, the last block is selected before which there are at most
 * so many items: each rank draws one of its own blocks that it can still be, and a lot with it, the
 * least lot wins, such that all blocks are as likely; each rank counts what comes before that block
 * in its own runs, and the sums say which blocks are left. Up to 16 blocks are drawn so at once,
 * and what is between two of them is left, a ninth or so: a round waits for messages, and for
 * nothing else. All splitters are looked for at once, so each of half a dozen rounds is two
 * collectives with some hundred bytes for each splitter, and nobody has what all others have. Then
 * every rank cuts its own runs.
 *
 *	Varman, Scheufler, Iyer, Ricard, "Merging multiple lists on hierarchical-memory
 *	multiprocessors", JPDC 1991 (exact splitting); Hoare's quickselect, as in
 *	multiseq_selection.h
 */
#pragma once

#include "src/comm/comm.h"
#include "src/run/run.h"

/* Into how many ranges, of how many items together at most; at_key_boundaries: no key is in two of
 * them. */
struct splitter_params {
	uint32_t n_partitions;
	uint64_t max_items;
	bool at_key_boundaries;
};

/*
 * Cut the own runs into ranges of about as many items of all runs together each, or of the first
 * max_items of them: of run i, from ret_cuts[q * n_runs + i] to ret_cuts[(q + 1) * n_runs + i] is
 * in range q. Resident runs are sampled for that. Every rank calls it, and wishes the same.
 * Returns 0 or a negative errno after a message.
 */
int global_splitters_cut(struct comm *comm, const struct job *job, struct run *const *runs,
			 uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts);
