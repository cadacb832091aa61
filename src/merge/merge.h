/*
 * merge - k runs to one sorted sequence, window by window
 *
 * Forming a spilled run from sorted chunks, an intermediate pass and the final merge into the
 * output are the same thing; they differ in the runs and in the sink.
 *
 *	forecast -> fetch and cut -> merge, unique, decode -> write
 *	|______ the caller ______|   |__ queue of window __|   |_ writers _|
 *
 * The caller's thread decides which blocks make the next window, reads those that are stored, cuts
 * all runs at the splitter, and queues the merge on the window's queue. Writers take the windows in
 * order, wait for them, find their places in the output (window_order.h), and write them, several
 * at a time. At most plan.n_windows are in flight (window.h).
 */
#pragma once

#include "src/merge/sink.h"

/*
 * Merge the n_runs runs, whose order breaks ties, into the sink, with windows in memory_nbytes of
 * device memory. Returns 0, or a negative errno after a message. The runs stay the caller's.
 */
int merge_runs(const struct job *job, struct run *const *runs, uint32_t n_runs,
	       uint64_t memory_nbytes, const struct sink *sink, struct merge_result *ret_result);
