/*
 * forecast.h - the order in which a merge needs the blocks of its runs
 *
 * merge.c explains forecasting, windows and splitters.
 */
#pragma once

#include "src/run/run.h"

struct forecast;

/* A point of the merged order: before items equal to `key` of runs from number `run` on. */
struct splitter {
	const void *key; /* layout_key_nbytes(); valid until the next window */
	uint32_t run;
};

/* Loads items, for keys that are longer than what is in memory of them. */
struct item_loader {
	const struct layout *layout;
	/* Load the first item of a block of a run. Returns 0 or a negative errno (reported). */
	int (*load)(void *context, struct run *run, uint64_t block, void *item);
	void *context;
};

/*
 * Open a forecast of runs, which must outlive it and whose first keys must be known. The loader is
 * copied. Returns 0 or a negative errno (reported).
 */
int forecast_open(struct run *const *runs, uint32_t n_runs, const struct item_loader *loader,
		  struct forecast **ret_forecast);
void forecast_close(struct forecast *forecast);

/*
 * Take the blocks of the next window: at least one, and then as many as hold no more than
 * quota_records together. n_blocks[i] is set to the number of blocks taken of run i, from where the
 * last window stopped. Returns 1; or 0 if the window reaches to the end of all runs, and there is
 * no splitter; or a negative errno (reported).
 */
int forecast_next_window(struct forecast *forecast, uint64_t quota_records, uint64_t *n_blocks,
			 struct splitter *ret_splitter);
