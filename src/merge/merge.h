/*
 * merge.h - merge k sorted runs into one sorted sequence
 *
 * Merging sorted chunks into a spilled run, an intermediate merge pass and the final merge into the
 * output are the same operation. They differ in their runs and in the sink that takes the items.
 *
 *	merge_runs()		one merge, by one device (merge.c)
 *	merge_in_partitions()	several merges at the same time (partitions.c)
 *	merge_to_run(),
 *	merge_shrink_index(),
 *	merge_passes()		merges into spilled runs (passes.c)
 */
#pragma once

#include "src/merge/sink.h"
#include "src/run/run.h"

/*
 * Merge n_runs runs, whose order breaks ties, into the sink. The windows take up to memory_nbytes
 * of device memory. Returns 0 or a negative errno (reported). The caller still owns the runs.
 */
int merge_runs(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       uint64_t memory_nbytes, const struct sink *sink, struct merge_result *ret_result);

/*
 * Like merge_runs(), but in partitions that are merged at the same time: as many as the plan has
 * and memory has room for, or, into a spilled run, one for each device. There is only one partition
 * if
 *
 *	-u and a limit are both given, or
 *	-u is given and the sink needs positions before the merge (see struct sink).
 *
 * The sink's writes must not wait for each other. The caller still owns the runs, but must not read
 * them any more.
 */
int merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			uint64_t memory_nbytes, const struct sink *sink,
			struct merge_result *ret_result);

/*
 * Keep spilled runs for another process. Implemented by a checkpoint (src/checkpoint/); without
 * one, runs are lost when the process ends.
 */
struct checkpoint_hooks {
	void *context;
	/*
	 * Called when `run` is complete and spilled, before it replaces the n runs from `first` on.
	 * The hook takes those of the n runs that are spilled out of the list, leaving NULL, and
	 * removes them when they are no longer needed. Returns 0 or a negative errno (reported).
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
 * For an input of unknown size: while the index of all blocks does not fit its memory, lengthen the
 * blocks of the plan and merge the spilled runs. Returns 0, -E2BIG if blocks cannot be longer, or
 * another negative errno (both reported).
 */
int merge_shrink_index(struct job *job, struct run_list *list, uint64_t memory_nbytes,
		       struct record_totals *totals);

/*
 * Call merge_to_run() until at most plan.fan_in runs are stored. *ret_n_passes: the maximum number
 * of these merges that a record went through; 0 if there was none. Returns 0 or a negative errno
 * (reported).
 */
int merge_passes(const struct job *job, struct run_list *list, uint64_t memory_nbytes,
		 struct record_totals *totals, uint32_t *ret_n_passes);
