/*
 * forecast - in which order the blocks of k sorted runs will be needed
 *
 * A merge consumes the blocks of its runs in the order of their first keys (ties: earlier run
 * first). These are all in memory, so the whole schedule of reads is known before the first block
 * is read (Knuth, The Art of Computer Programming, vol. 3, 5.4.9, "forecasting").
 *
 *	run 0   [ 1 . . . | 8 . . . | 9 . . . ]		order: 0:1 1:2 1:3 0:8 1:8 0:9
 *	run 1   [ 2 . . | 3 . . . . | 8 . . . ]
 *
 * It also gives the windows. Take blocks in this order until they hold as many records as a window
 * is to have; the first key of the next block is the splitter. What sorts before the splitter is in
 * the blocks taken so far, since every other block starts at it or behind it; so the runs can be
 * cut exactly there without reading on. What is left of the taken blocks behind the splitter is
 * carried into the next window, and is less than a block of each run.
 *
 * Of a block only the first 16 bytes of its first key are in memory. Where two blocks tie on these
 * and keys are longer, the whole keys decide: they are loaded when they are needed, of the next
 * block of each run at most, because keys can be as long as blocks are.
 */
#pragma once

#include "src/run/run.h"

struct forecast;

/* A point that cuts all runs: before records equal to `key` of runs from number `run` on. */
struct splitter {
	const void *key; /* whole (layout_key_nbytes()); valid until the next window */
	uint32_t run;
};

/* Where whole keys come from. */
struct item_loader {
	const struct layout *layout;
	/* The first item of a block of a run. 0 or a negative errno after a message. */
	int (*load)(void *context, struct run *run, uint64_t block, void *item);
	void *context;
};

/*
 * The runs must outlive it, with their first keys known. The loader is copied. 0, or a
 * negative errno after a message.
 */
int forecast_open(struct run *const *runs, uint32_t n_runs, const struct item_loader *loader,
		  struct forecast **ret_forecast);
void forecast_close(struct forecast *forecast);

/*
 * Take the blocks of the next window: at least one, and as many as keep it within quota_records.
 * n_taken[i] is set to the number of blocks taken of run i, continuing where the last window
 * stopped. Returns 1, or 0 when the window reaches to the end of all runs (there is no splitter
 * then), or a negative errno after a message.
 */
int forecast_next_window(struct forecast *forecast, uint64_t quota_records, uint64_t *n_blocks,
			 struct splitter *ret_splitter);
