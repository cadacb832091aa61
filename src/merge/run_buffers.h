/*
 * run_buffers - what the runs of a merge offer to a window, before it is cut
 *
 * Of each run a slice of available records. That of a resident run points into its chunk; that of a
 * stored run is put together in the window's buffer, of what the last window left of it and of the
 * blocks that are read, by a thread pool. So is that of a run that is resident with another
 * worker: its blocks are fetched from there, straight if its memory can be reached, else by way
 * of the host:
 *
 *	buffer of window w	[ run 0: rest | blocks read ][ run 2: rest | blocks read ] ...
 *	                                          ^ cut                     ^ cut
 *	                                           \ rest, copied to the buffer of window w + 1
 *
 * For each window: gather, then cut as often as need be, then take. Used by one thread.
 */
#pragma once

#include "src/merge/forecast.h"

struct run_buffers;

/* What a window has for its supply: device memory for capacity_records each. */
struct run_buffers_memory {
	void *in;        /* what is read; not used if all runs are resident */
	void *workspace; /* to work in, */
	void *scratch;   /* as a merge has it: both only until the call returns */
};

/*
 * Samples the first keys of resident runs. The runs must outlive it. 0, or a negative errno after a
 * message.
 */
int run_buffers_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		     const struct window_plan *windows, struct run_buffers **ret_buffers);
/* NULL is fine. */
void run_buffers_close(struct run_buffers *buffers);

/* For struct item_loader: the first item of a block of a run; the context is the supply. */
int run_buffers_load_item(void *context, struct run *run, uint64_t block, void *item);

/*
 * Make the next n_blocks[i] of each run i available, behind what is left of it; without duplicates
 * if -u. number: the window's, for the statistics. memory->in must stay untouched until the next
 * call has returned. 0, or a negative errno after a message.
 */
int run_buffers_fill(struct run_buffers *buffers, const struct run_buffers_memory *memory,
		     const uint64_t *n_blocks, uint64_t number);

/* How many records are available of run i. */
uint64_t run_buffers_n_available(const struct run_buffers *buffers, uint32_t i);

/*
 * Cut what is available at the splitter, equal records of runs before number `slice` preceding it:
 * ret_cuts[i] records of run i come before it. 0, or a negative errno after a message.
 */
int run_buffers_cut(struct run_buffers *buffers, const struct splitter *splitter, uint32_t slice,
		    uint64_t *ret_cuts);

/*
 * The window's slices: the first cuts[i] available records of run i; all if cuts is NULL. The
 * others are left for the next one. Returns how many records are in the slices.
 */
uint64_t run_buffers_take(struct run_buffers *buffers, const uint64_t *cuts, struct slice *slices);

/* Of all records that were read from input runs, and those dropped among them by -u. */
struct record_totals run_buffers_totals(const struct run_buffers *buffers);
