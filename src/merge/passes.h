/*
 * passes.h - merge neighbouring runs into fewer and longer spilled runs
 */
#pragma once

#include "src/run/run.h"

/*
 * Keep spilled runs for another process. Implemented by a checkpoint (src/checkpoint/); without
 * one, runs are lost when the process ends.
 */
struct checkpoint_hooks {
	void *context;
	/*
	 * Called when `run` is complete and spilled, before it replaces the n runs from `first` on.
	 * The hook takes the spilled ones of these runs out of the list, leaving NULL, and removes
	 * them when they are no longer needed. Returns 0 or a negative errno (reported).
	 */
	int (*on_run_spilled)(void *context, struct run_list *list, size_t first, size_t n,
			      const struct run *run);
};

/*
 * Merge the n runs from `first` on into one spilled run, which replaces them, with windows in
 * memory_nbytes. Records read from inputs, and records dropped by -u, are added to *totals. Returns
 * 0 or a negative errno (reported).
 */
int merge_to_run(const struct job *job, struct run_list *list, size_t first, size_t n,
		 uint64_t memory_nbytes, struct record_totals *totals);

/*
 * Call merge_to_run() until at most plan.fan_in runs are stored. *ret_n_passes: how many of these
 * merges any record went through at most; 0 if there was none. Returns 0 or a negative errno
 * (reported).
 */
int merge_passes(const struct job *job, struct run_list *list, uint64_t memory_nbytes,
		 struct record_totals *totals, uint32_t *ret_n_passes);
