/*
 * global_splitters.h - cut the runs of all ranks into one partition per rank
 *
 * Like src/merge/splitters.h, but each rank has only some of the runs. All blocks are ordered by
 * (first key, rank, run, number in the run), which is the order of ties in the input. A splitter is
 * the last block with at most so many items before it. No rank has the whole sequence, so the
 * splitter is found by quickselect: each rank proposes a random remaining candidate block with a
 * random priority; the lowest priority wins, so that every block is equally likely. Then each rank
 * counts the items before the candidate in its own runs, and the sums tell which blocks remain.
 *
 * A round costs two collectives. To need fewer rounds, 16 candidates are drawn at once, after which
 * about one ninth of the blocks remains, and all splitters are searched at the same time. So there
 * are half a dozen rounds of some hundred bytes per splitter, and no rank needs the data of another
 * one. Finally every rank cuts its own runs.
 *
 *	Varman, Scheufler, Iyer, Ricard, "Merging multiple lists on hierarchical-memory
 *	multiprocessors", JPDC 1991 (exact splitting); Hoare's quickselect, as in
 *	multiseq_selection.h
 */
#pragma once

#include "src/comm/comm.h"
#include "src/run/run.h"

/*
 * Cut the first max_items items into n_partitions. at_key_boundaries: all items of a key are in the
 * same partition.
 */
struct splitter_params {
	uint32_t n_partitions;
	uint64_t max_items;
	bool at_key_boundaries;
};

/*
 * Collective, with the same parameters on all ranks. Cut the own runs into partitions that have
 * about the same number of items on all ranks together. Partition q of run i is [ret_cuts[q *
 * n_runs + i], ret_cuts[(q + 1) * n_runs + i]). Resident runs are sampled.
 */
int global_splitters_cut(struct comm *comm, const struct job *job, struct run *const *runs,
			 uint32_t n_runs, const struct splitter_params *params, uint64_t *ret_cuts);
