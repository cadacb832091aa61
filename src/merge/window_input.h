/*
 * window_input - the slices of one window after the other
 *
 * Takes the blocks that forecast.h says, has those of stored runs read into the window's buffer
 * (run_buffers.h), and cuts all runs at the splitter.
 *
 * Used by one thread.
 */
#pragma once

#include "src/merge/run_buffers.h"

struct slices;

/* The runs must outlive it. 0 or a negative errno after a message. */
int slices_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		const struct window_plan *windows, struct slices **ret_fetch);
/* NULL is fine. */
void slices_close(struct slices *fetch);

/*
 * The next window: slices[i], i < n_runs, of run i, *ret_n records in all (which may be none).
 * memory->in must stay untouched until the next call has returned. *ret_last: there are no more.
 */
int slices_next(struct slices *fetch, const struct supply_memory *memory, struct slice *slices,
		uint64_t *ret_n, bool *ret_last);

/*
 * Let the next window end in front of all records with the splitter's key, in whichever run, if its
 * buffer can carry what that leaves.
 */
void slices_ask_clean_cut(struct slices *fetch);

/*
 * The splitter that the last window ends at, if it has no record with the splitter's key; else
 * NULL. Valid until the next call.
 */
const struct splitter *slices_clean_cut(const struct slices *fetch);

/* Of all records that were read from input runs, and those dropped among them by -u. */
struct ledger slices_ledger(const struct slices *fetch);
