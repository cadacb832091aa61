/*
 * window_input - the slices of one window after the other (see window_input.h)
 *
 * The exact cut. The splitter (key, run) is the first element of a block that was not taken. A
 * run's elements below key come before it; equal ones do if their run is earlier (its upper bound
 * of key), and not if it is later (its lower bound); of the splitter's own run exactly the taken
 * blocks do. In each case less than one block is left over: a later run has taken no block that
 * starts at key.
 *
 * With -u equal elements of different runs must meet in one window: then all runs, the splitter's
 * too, are cut at their lower bound. Less than a block is left over only because runs hold no key
 * twice. Input runs (-m) may; what is read of them is made unique (run_buffers.c). (If a run's next
 * block starts with the key of its last element, the splitter is not above that key, so the element
 * is still in the rest: duplicates always meet in the buffer.)
 *
 * A clean cut is at the lower bounds too, but once and without -u: what a merge has written before
 * such a cut depends on nothing but the key, and not on which records are in which run. The records
 * equal to the splitter that it leaves in the buffer are taken off the next window's quota.
 */
#include "src/merge/window_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

struct slices {
	const struct job *job;
	struct run *const *runs;
	uint32_t n_runs;
	struct supply *supply;
	struct forecast *forecast;
	uint64_t quota_records;
	uint64_t number;    /* of the window */
	uint64_t n_carried; /* records that the last cut left beyond a block of each run */
	bool asked_clean, is_clean;
	struct splitter splitter; /* of the last window */
	uint64_t *n_blocks;       /* n_runs each: taken for the window, ... */
	uint64_t *cuts;
	uint64_t *lower_cuts; /* for a clean cut */
};

static int open_forecast(struct slices *fetch)
{
	const struct layout *layout = fetch->job->layout;
	const struct item_loader loader = {
		.layout = layout,
		.load = supply_load_item,
		.context = fetch->supply,
	};

	return forecast_open(fetch->runs, fetch->n_runs, &loader, &fetch->forecast);
}

static int slices_start(struct slices *fetch, const struct window_plan *windows)
{
	const size_t n = fetch->n_runs;
	int r;

	fetch->n_blocks = calloc(n, sizeof *fetch->n_blocks);
	fetch->cuts = calloc(n, sizeof *fetch->cuts);
	fetch->lower_cuts = calloc(n, sizeof *fetch->lower_cuts);
	if (!fetch->n_blocks || !fetch->cuts || !fetch->lower_cuts)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	r = supply_open(fetch->job, fetch->runs, fetch->n_runs, windows, &fetch->supply);
	return r < 0 ? r : open_forecast(fetch);
}

int slices_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		const struct window_plan *windows, struct slices **ret_fetch)
{
	struct slices *fetch = calloc(1, sizeof *fetch);
	int r;

	if (!fetch)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	fetch->job = job;
	fetch->runs = runs;
	fetch->n_runs = n_runs;
	fetch->quota_records = windows->quota_records;
	r = slices_start(fetch, windows);
	if (r < 0) {
		slices_close(fetch);
		return r;
	}
	*ret_fetch = fetch;
	return 0;
}

void slices_close(struct slices *fetch)
{
	if (!fetch)
		return;
	supply_close(fetch->supply);
	forecast_close(fetch->forecast);
	free(fetch->n_blocks);
	free(fetch->cuts);
	free(fetch->lower_cuts);
	free(fetch);
}

/* Take the lower bounds as the cuts, if the next window has room for what that leaves. */
static int cut_cleanly(struct slices *fetch, const struct splitter *splitter)
{
	const struct plan *plan = &fetch->job->plan;
	const uint64_t block_records = plan->block_nbytes / plan->resident_nbytes;
	uint64_t n_below = 0, n_left = 0;
	int r = supply_cut(fetch->supply, splitter, 0, fetch->lower_cuts);

	for (uint32_t i = 0; i < fetch->n_runs && r == 0; i++) {
		n_below += fetch->lower_cuts[i];
		n_left += fetch->cuts[i] - fetch->lower_cuts[i];
	}
	/* Without any record below the key, windows before this one may have ended with it. */
	if (r < 0 || n_below == 0 || n_left + block_records > fetch->quota_records)
		return r;
	memcpy(fetch->cuts, fetch->lower_cuts, fetch->n_runs * sizeof *fetch->cuts);
	fetch->n_carried = n_left;
	fetch->is_clean = true;
	return 0;
}

static int cut(struct slices *fetch, const struct splitter *splitter)
{
	const bool unique = fetch->job->unique;
	struct span span = stats_begin(STAGE_CUT, fetch->number);
	int r = supply_cut(fetch->supply, splitter, unique ? 0 : splitter->run, fetch->cuts);

	/* After a failure the lane may still be writing cuts. */
	if (r == 0 && !unique)
		fetch->cuts[splitter->run] = supply_n_available(fetch->supply, splitter->run);
	fetch->is_clean = unique;
	fetch->n_carried = 0;
	if (r == 0 && fetch->asked_clean && !unique)
		r = cut_cleanly(fetch, splitter);
	fetch->asked_clean = false;
	stats_waited(fetch->job->stats, span);
	return r;
}

int slices_next(struct slices *fetch, const struct supply_memory *memory, struct slice *slices,
		uint64_t *ret_n, bool *ret_last)
{
	struct splitter *splitter = &fetch->splitter;
	const int more = forecast_take(fetch->forecast, fetch->quota_records - fetch->n_carried,
				       fetch->n_blocks, splitter);
	int r = more < 0 ? more :
			   supply_gather(fetch->supply, memory, fetch->n_blocks, fetch->number);

	if (r < 0)
		return r;
	fetch->is_clean = false;
	if (r == 0 && more)
		r = cut(fetch, splitter);
	if (r < 0)
		return r;
	*ret_n = supply_take(fetch->supply, more ? fetch->cuts : NULL, slices);
	*ret_last = !more;
	fetch->number++;
	return 0;
}

void slices_ask_clean_cut(struct slices *fetch)
{
	fetch->asked_clean = true;
}

const struct splitter *slices_clean_cut(const struct slices *fetch)
{
	return fetch->is_clean ? &fetch->splitter : NULL;
}

struct ledger slices_ledger(const struct slices *fetch)
{
	return supply_ledger(fetch->supply);
}
