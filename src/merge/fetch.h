/*
 * fetch - the slices of one window after the other
 *
 * Takes the blocks that forecast.h says, has those of stored runs read into the window's buffer
 * (supply.h), and cuts all runs at the splitter.
 *
 * Used by one thread.
 */
#pragma once

#include "src/merge/supply.h"

struct fetch;

/*
 * The runs must outlive it. start: a splitter with run 0; what sorts before it is left out, and of
 * stored runs not read, but for a block of each. NULL: nothing is. 0 or a negative errno after a
 * message.
 */
int fetch_open(const struct engine *engine, struct run *const *runs, uint32_t n_runs,
	       const struct window_plan *windows, const struct splitter *start,
	       struct fetch **ret_fetch);
/* NULL is fine. */
void fetch_close(struct fetch *fetch);

/*
 * The next window: slices[i], i < n_runs, of run i, *ret_n records in all (which may be none).
 * memory->in must stay untouched until the next call has returned. *ret_last: there are no more.
 */
int fetch_next(struct fetch *fetch, const struct supply_memory *memory, struct slice *slices,
	       uint64_t *ret_n, bool *ret_last);

/*
 * Let the next window end in front of all records with the splitter's key, in whichever run, if its
 * buffer can carry what that leaves.
 */
void fetch_ask_clean_cut(struct fetch *fetch);

/*
 * The splitter that the last window ends at, if it has no record with the splitter's key; else
 * NULL. Valid until the next call.
 */
const struct splitter *fetch_clean_cut(const struct fetch *fetch);

/* Of all records that were read from input runs; and of those dropped among them by -u. */
struct digest fetch_digest_read(const struct fetch *fetch);
struct digest fetch_digest_dropped(const struct fetch *fetch);
