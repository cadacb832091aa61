/*
 * fetch - the slices of one window after the other (see fetch.h)
 *
 * The exact cut. The splitter (key, run) is the first element of a block that was not taken. A
 * run's elements below key come before it; equal ones do if their run is earlier (its upper bound
 * of key), and not if it is later (its lower bound); of the splitter's own run exactly the taken
 * blocks do. In each case less than one block is left over: a later run has taken no block that
 * starts at key.
 *
 * With -u equal elements of different runs must meet in one window: then all runs, the splitter's
 * too, are cut at their lower bound. Less than a block is left over only because runs hold no key
 * twice. Input runs (-m) may; what is read of them is made unique here. (If a run's next block
 * starts with the key of its last element, the splitter is not above that key, so the element is
 * still in the rest: duplicates always meet in the buffer.)
 *
 * A clean cut is at the lower bounds too, but once and without -u: what a merge has written before
 * such a cut depends on nothing but the key, and not on which records are in which run. The records
 * equal to the splitter that it leaves in the buffer are taken off the next window's quota.
 */
#include "src/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/crew.h"
#include "src/status.h"

/* One run's part in the merge. */
struct source {
	struct run *run;
	uint64_t next_block; /* the first not taken */
	uint64_t position;   /* resident: records consumed */
	const char *rest;    /* stored: n_rest records that the last window left, in its buffer */
	uint64_t n_rest;

	/* Stored: what is read for this window, by whoever of the crew */
	uint64_t n_blocks, n_read; /* blocks, records */
	char *to;                  /* device memory, with room for resident records */
	char *items;               /* where they are read to: its end, or staging */
	struct digest read;

	/* See make_unique() */
	uint64_t n_unique;
	struct digest dropped;
	struct arranged arranged;
};

struct fetch {
	const struct engine *engine;
	struct forecast *forecast;
	struct lane *lane;
	struct mark *mark;
	struct crew *crew; /* that reads; NULL if nothing is read */
	uint64_t quota_records, capacity_records;
	uint32_t n_sources;
	uint64_t number;    /* of the window */
	uint64_t n_carried; /* stored records that the last cut left beyond a block of each run */
	const struct splitter *start; /* while windows may have records before it; else NULL */
	bool asked_clean, is_clean;
	struct splitter splitter; /* of the last window */
	uint64_t *n_taken;        /* n_sources each: blocks, ... */
	uint64_t *cuts;
	uint64_t *lower_cuts;    /* for a clean cut */
	struct slice *available; /* what the window could hold, before the cut */
	struct digest dropped;
	void *edges[2]; /* records: an item each, where merge_records() leaves them */
	char *staging;  /* host memory that is read into, or NULL */
	size_t staging_nbytes, staging_used;
	struct source sources[];
};

static int wait_lane(struct fetch *fetch)
{
	const struct backend *backend = fetch->engine->backend;
	int r = backend->mark(fetch->lane, fetch->mark);

	return r < 0 ? r : backend->mark_wait(fetch->mark);
}

/* First keys of resident runs: sampled on the device, spread over a few lanes. */
static int sample_resident(struct fetch *fetch, uint64_t stride)
{
	int r = 0;

	for (uint32_t i = 0; i < fetch->n_sources && r == 0; i++)
		if (run_is_resident(fetch->sources[i].run))
			r = run_sample(fetch->sources[i].run, fetch->engine, fetch->lane, stride);
	return r < 0 ? r : wait_lane(fetch);
}

/* If something is to be read: who reads, and where to if that cannot be device memory. */
static int open_reading(struct fetch *fetch)
{
	const struct engine *engine = fetch->engine;
	uint32_t n_stored = 0, n_readers = engine->plan.n_readers;
	void *staging;
	int r;

	for (uint32_t i = 0; i < fetch->n_sources; i++)
		n_stored += !run_is_resident(fetch->sources[i].run);
	if (n_stored == 0)
		return 0;
	r = crew_open(n_readers < n_stored ? n_readers : n_stored, &fetch->crew);
	if (r < 0)
		return fail(r, "no memory for %u readers", n_readers);
	if (engine->info.unified)
		return 0;
	fetch->staging_nbytes = fetch->capacity_records * engine->layout->item_nbytes;
	r = engine->backend->alloc(engine->device, MEMORY_HOST, fetch->staging_nbytes, &staging);
	if (r < 0)
		return fail(r, "no pinned memory to read runs into: %m; try a smaller -S");
	fetch->staging = staging;
	return 0;
}

/* For forecast.h: the first item of a block. */
static int load_item(void *context, struct run *run, uint64_t block, void *item)
{
	struct fetch *fetch = context;
	const struct engine *engine = fetch->engine;
	const size_t item_nbytes = engine->layout->item_nbytes;
	int r;

	if (!run_is_resident(run))
		return run_read_first_item(run, block, item);
	r = engine->backend->copy(fetch->lane, item,
				  (const char *)run_memory(run) +
					  run_block_start(run, block) * item_nbytes,
				  item_nbytes);
	return r < 0 ? r : wait_lane(fetch);
}

/* The first blocks that can have records behind the start; NULL if it is the beginning. */
static const uint64_t *seek_start(struct fetch *fetch)
{
	if (!fetch->start)
		return NULL;
	for (uint32_t i = 0; i < fetch->n_sources; i++) {
		struct source *source = &fetch->sources[i];

		source->next_block = run_seek(source->run, fetch->start->key);
		if (run_is_resident(source->run))
			source->position = run_block_start(source->run, source->next_block);
		fetch->n_taken[i] = source->next_block;
	}
	return fetch->n_taken;
}

static int open_forecast(struct fetch *fetch, struct run *const *runs)
{
	const struct layout *layout = fetch->engine->layout;
	const struct item_loader loader = { .layout = layout, .load = load_item, .context = fetch };
	const uint64_t *first_blocks = seek_start(fetch);

	if (layout->kind != LAYOUT_RECORDS)
		return forecast_open(runs, fetch->n_sources, NULL, first_blocks, &fetch->forecast);
	for (int i = 0; i < 2; i++) {
		fetch->edges[i] = malloc(layout->item_nbytes);
		if (!fetch->edges[i])
			return fail(-ENOMEM, "no memory for a merge of %u runs", fetch->n_sources);
	}
	return forecast_open(runs, fetch->n_sources, &loader, first_blocks, &fetch->forecast);
}

static int fetch_start(struct fetch *fetch, struct run *const *runs,
		       const struct window_plan *windows)
{
	const struct engine *engine = fetch->engine;
	const size_t n = fetch->n_sources;
	int r;

	fetch->n_taken = calloc(n, sizeof *fetch->n_taken);
	fetch->cuts = calloc(n, sizeof *fetch->cuts);
	fetch->lower_cuts = calloc(n, sizeof *fetch->lower_cuts);
	fetch->available = calloc(n, sizeof *fetch->available);
	if (!fetch->n_taken || !fetch->cuts || !fetch->lower_cuts || !fetch->available)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	r = engine->backend->lane_open(engine->device, LANE_URGENT, &fetch->lane);
	if (r == 0)
		r = engine->backend->mark_open(engine->device, &fetch->mark);
	if (r < 0)
		return fail(r, "cannot start a merge: %m");
	r = open_reading(fetch);
	if (r == 0)
		r = sample_resident(fetch, windows->resident_stride);
	return r < 0 ? r : open_forecast(fetch, runs);
}

int fetch_open(const struct engine *engine, struct run *const *runs, uint32_t n_runs,
	       const struct window_plan *windows, const struct splitter *start,
	       struct fetch **ret_fetch)
{
	struct fetch *fetch = calloc(1, sizeof *fetch + n_runs * sizeof fetch->sources[0]);
	int r;

	if (!fetch)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	fetch->engine = engine;
	fetch->quota_records = windows->quota_records;
	fetch->capacity_records = windows->capacity_records;
	fetch->start = start;
	fetch->n_sources = n_runs;
	for (uint32_t i = 0; i < n_runs; i++)
		fetch->sources[i].run = runs[i];
	r = fetch_start(fetch, runs, windows);
	if (r < 0) {
		fetch_close(fetch);
		return r;
	}
	*ret_fetch = fetch;
	return 0;
}

void fetch_close(struct fetch *fetch)
{
	if (!fetch)
		return;
	if (fetch->lane)
		fetch->engine->backend->lane_close(fetch->lane);
	if (fetch->mark)
		fetch->engine->backend->mark_close(fetch->mark);
	crew_close(fetch->crew);
	forecast_close(fetch->forecast);
	fetch->engine->backend->release(fetch->engine->device, MEMORY_HOST, fetch->staging,
					fetch->staging_nbytes);
	free(fetch->edges[0]);
	free(fetch->edges[1]);
	free(fetch->n_taken);
	free(fetch->cuts);
	free(fetch->lower_cuts);
	free(fetch->available);
	free(fetch);
}

/* Of the crew: read what a source has to read, if anything. */
static int read_source(void *context, uint32_t i)
{
	struct fetch *fetch = context;
	struct source *source = &fetch->sources[i];
	struct span span;
	int r;

	if (source->n_blocks == 0)
		return 0;
	span = stats_begin(STAGE_FETCH, fetch->number);
	r = run_read(source->run, source->next_block, source->n_blocks, source->items,
		     &source->read);
	stats_end(fetch->engine->stats, span, source->n_read * fetch->engine->layout->item_nbytes);
	return r;
}

/* Queue that what was read becomes records behind the rest. Narrower ones expand in place. */
static int take_in(struct fetch *fetch, struct source *source)
{
	const struct engine *engine = fetch->engine;
	const struct layout *layout = engine->layout;
	const uint64_t n = source->n_read;
	char *items = source->to + n * (layout->resident_nbytes - layout->item_nbytes);
	int r = 0;

	if (!engine->checkpoint)
		run_discard_before(source->run, source->next_block + source->n_blocks);
	if (items != source->items)
		r = engine->backend->copy(fetch->lane, items, source->items,
					  n * layout->item_nbytes);
	if (r < 0 || layout->kind == LAYOUT_RECORDS || !run_holds_records(source->run, layout) ||
	    code_map_is_identity(&layout->map))
		return r;
	return engine->backend->encode(fetch->lane, &(struct encode_op){
							    .layout = layout,
							    .records = items,
							    .elements = source->to,
							    .n = n,
						    });
}

static int make_codes_unique(struct fetch *fetch, struct source *source, const struct slice *slice)
{
	const struct engine *engine = fetch->engine;

	return engine->backend->unique(fetch->lane,
				       &(struct unique_op){
					       .elements = (void *)slice->elements,
					       .n = slice->n,
					       .element_nbytes = engine->layout->element_nbytes,
					       .layout = engine->layout,
					       .ret_n = &source->n_unique,
					       .ret_dropped = &source->dropped,
				       });
}

/* A merge of one slice, by way of other memory. */
static int make_records_unique(struct fetch *fetch, struct source *source,
			       const struct slice *slice, const struct fetch_memory *memory)
{
	const struct engine *engine = fetch->engine;
	int r = engine->backend->merge_records(fetch->lane, &(struct merge_records_op){
								    .layout = engine->layout,
								    .slices = slice,
								    .k = 1,
								    .out = memory->other,
								    .unique = true,
								    .limit = UINT64_MAX,
								    .scratch = memory->scratch,
								    .ret_first = fetch->edges[0],
								    .ret_last = fetch->edges[1],
								    .ret = &source->arranged,
							    });

	if (r < 0)
		return r;
	return engine->backend->copy(fetch->lane, (void *)slice->elements, memory->other,
				     slice->n * engine->layout->item_nbytes);
}

/* With -u: queue that an input run's part of the buffer loses its duplicates. */
static int make_unique(struct fetch *fetch, struct source *source, const struct slice *slice,
		       const struct fetch_memory *memory)
{
	source->n_unique = slice->n;
	source->dropped = (struct digest){ 0 };
	source->arranged = (struct arranged){ 0 };
	if (slice->n == 0)
		return 0;
	return fetch->engine->layout->kind == LAYOUT_RECORDS ?
		       make_records_unique(fetch, source, slice, memory) :
		       make_codes_unique(fetch, source, slice);
}

/* A stored source's part in the buffer, behind n_used records: its rest, then the blocks taken. */
static void place_stored(struct fetch *fetch, struct source *source, uint64_t n_blocks,
			 char *elements, struct slice *ret_slice)
{
	const struct layout *layout = fetch->engine->layout;
	const uint64_t first = run_block_start(source->run, source->next_block);

	source->n_blocks = n_blocks;
	source->n_read = run_block_start(source->run, source->next_block + n_blocks) - first;
	source->to = elements + source->n_rest * layout->resident_nbytes;
	if (fetch->staging) {
		source->items = fetch->staging + fetch->staging_used;
		fetch->staging_used += source->n_read * layout->item_nbytes;
	} else {
		source->items = source->to +
				source->n_read * (layout->resident_nbytes - layout->item_nbytes);
	}
	*ret_slice = (struct slice){ .elements = elements, .n = source->n_rest + source->n_read };
}

/* Where every source's available records will be, for the blocks taken. */
static int place_slices(struct fetch *fetch, const struct fetch_memory *memory)
{
	const uint64_t resident_nbytes = fetch->engine->layout->resident_nbytes;
	uint64_t n_used = 0;

	fetch->staging_used = 0;
	for (uint32_t i = 0; i < fetch->n_sources; i++) {
		struct source *source = &fetch->sources[i];
		struct slice *slice = &fetch->available[i];

		if (run_is_resident(source->run)) {
			slice->elements = (const char *)run_memory(source->run) +
					  source->position * resident_nbytes;
			slice->n = run_block_start(source->run,
						   source->next_block + fetch->n_taken[i]) -
				   source->position;
			continue;
		}
		place_stored(fetch, source, fetch->n_taken[i],
			     (char *)memory->in + n_used * resident_nbytes, slice);
		n_used += slice->n;
		if (n_used > fetch->capacity_records)
			return fail(-EOVERFLOW,
				    "internal error: a window of %" PRIu64 " records "
				    "has room for %" PRIu64,
				    n_used, fetch->capacity_records);
	}
	return 0;
}

/* Queue what makes a stored source's slice of its rest and what was read. */
static int fill_slice(struct fetch *fetch, struct source *source, const struct slice *slice,
		      const struct fetch_memory *memory)
{
	const struct engine *engine = fetch->engine;
	const uint64_t rest_nbytes = source->n_rest * engine->layout->resident_nbytes;
	int r = 0;

	if (rest_nbytes)
		r = engine->backend->copy(fetch->lane, (void *)slice->elements, source->rest,
					  rest_nbytes);
	if (r == 0 && source->n_blocks)
		r = take_in(fetch, source);
	if (r == 0 && engine->unique && run_holds_duplicates(source->run))
		r = make_unique(fetch, source, slice, memory);
	return r;
}

/* Every source's available records, for the blocks taken. */
static int gather(struct fetch *fetch, const struct fetch_memory *memory)
{
	int r = place_slices(fetch, memory);

	if (r == 0 && fetch->crew)
		r = crew_run(fetch->crew, read_source, fetch, fetch->n_sources);
	for (uint32_t i = 0; i < fetch->n_sources && r == 0; i++) {
		struct source *source = &fetch->sources[i];

		if (!run_is_resident(source->run))
			r = fill_slice(fetch, source, &fetch->available[i], memory);
		source->next_block += fetch->n_taken[i];
	}
	return r < 0 ? r : wait_lane(fetch);
}

/* After gather(), with -u: what is left of the input runs' parts. */
static void apply_unique(struct fetch *fetch)
{
	for (uint32_t i = 0; i < fetch->n_sources; i++) {
		struct source *source = &fetch->sources[i];

		if (!run_holds_duplicates(source->run))
			continue;
		if (fetch->engine->layout->kind == LAYOUT_RECORDS) {
			source->n_unique = source->arranged.n;
			source->dropped = source->arranged.dropped;
		}
		fetch->available[i].n = source->n_unique;
		digest_add(&fetch->dropped, source->dropped);
	}
}

/* Cut what is available at the splitter: equal records of runs before number `slice` precede it. */
static int cut_at(struct fetch *fetch, const struct splitter *splitter, uint32_t slice,
		  uint64_t *ret_cuts)
{
	const struct engine *engine = fetch->engine;
	int r;

	if (engine->layout->kind == LAYOUT_RECORDS)
		r = engine->backend->cut_records(fetch->lane, &(struct cut_records_op){
								      .layout = engine->layout,
								      .slices = fetch->available,
								      .k = fetch->n_sources,
								      .key = splitter->normalised,
								      .slice = slice,
								      .ret_cuts = ret_cuts,
							      });
	else
		r = engine->backend->cut(fetch->lane,
					 &(struct cut_op){
						 .slices = fetch->available,
						 .k = fetch->n_sources,
						 .element_nbytes = engine->layout->element_nbytes,
						 .key = splitter->key,
						 .slice = slice,
						 .ret_cuts = ret_cuts,
					 });
	return r < 0 ? r : wait_lane(fetch);
}

/* Take the lower bounds as the cuts, if the next window has room for what that leaves. */
static int cut_cleanly(struct fetch *fetch, const struct splitter *splitter)
{
	const struct plan *plan = &fetch->engine->plan;
	const uint64_t block_records = plan->block_nbytes / plan->resident_nbytes;
	uint64_t n_below = 0, n_left = 0;
	int r = cut_at(fetch, splitter, 0, fetch->lower_cuts);

	for (uint32_t i = 0; i < fetch->n_sources && r == 0; i++) {
		n_below += fetch->lower_cuts[i];
		if (!run_is_resident(fetch->sources[i].run))
			n_left += fetch->cuts[i] - fetch->lower_cuts[i];
	}
	/* Without any record below the key, windows before this one may have ended with it. */
	if (r < 0 || n_below == 0 || n_left + block_records > fetch->quota_records)
		return r;
	memcpy(fetch->cuts, fetch->lower_cuts, fetch->n_sources * sizeof *fetch->cuts);
	fetch->n_carried = n_left;
	fetch->is_clean = true;
	return 0;
}

static int cut(struct fetch *fetch, const struct splitter *splitter)
{
	const bool unique = fetch->engine->unique;
	struct span span = stats_begin(STAGE_CUT, fetch->number);
	int r = cut_at(fetch, splitter, unique ? 0 : splitter->run, fetch->cuts);

	/* After a failure the lane may still be writing cuts. */
	if (r == 0 && !unique)
		fetch->cuts[splitter->run] = fetch->available[splitter->run].n;
	fetch->is_clean = unique;
	fetch->n_carried = 0;
	if (r == 0 && fetch->asked_clean && !unique)
		r = cut_cleanly(fetch, splitter);
	fetch->asked_clean = false;
	stats_waited(fetch->engine->stats, span);
	return r;
}

/* Does the splitter sort before the start? */
static bool is_before_start(const struct fetch *fetch, const struct splitter *splitter)
{
	const struct layout *layout = fetch->engine->layout;

	if (layout->kind != LAYOUT_RECORDS)
		return splitter->key < fetch->start->key;
	return memcmp(splitter->normalised, fetch->start->normalised,
		      layout->item_keys.key_nbytes) < 0;
}

/* All of the window that is available sorts before the start: leave it out. */
static void skip_window(struct slice *slices, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		slices[i].n = 0;
}

/* Leave out what of the available records sorts before the start, which is in this window. */
static int begin_at_start(struct fetch *fetch)
{
	const uint64_t resident_nbytes = fetch->engine->layout->resident_nbytes;
	int r = cut_at(fetch, fetch->start, 0, fetch->lower_cuts);

	for (uint32_t i = 0; i < fetch->n_sources && r == 0; i++) {
		struct slice *slice = &fetch->available[i];
		const uint64_t n = fetch->lower_cuts[i];

		slice->elements = (const char *)slice->elements + n * resident_nbytes;
		slice->n -= n;
		fetch->sources[i].position += n;
	}
	fetch->start = NULL;
	return r;
}

/* Split what is available into this window's slices and the rest. */
static uint64_t take_slices(struct fetch *fetch, bool last, struct slice *slices)
{
	const uint64_t resident_nbytes = fetch->engine->layout->resident_nbytes;
	uint64_t n = 0;

	for (uint32_t i = 0; i < fetch->n_sources; i++) {
		struct source *source = &fetch->sources[i];
		const struct slice *available = &fetch->available[i];
		const uint64_t taken = last ? available->n : fetch->cuts[i];

		slices[i] = (struct slice){ .elements = available->elements, .n = taken };
		source->rest = (const char *)available->elements + taken * resident_nbytes;
		source->n_rest = available->n - taken;
		source->position += taken;
		n += taken;
	}
	return n;
}

int fetch_next(struct fetch *fetch, const struct fetch_memory *memory, struct slice *slices,
	       uint64_t *ret_n, bool *ret_last)
{
	struct splitter *splitter = &fetch->splitter;
	const int more = forecast_take(fetch->forecast, fetch->quota_records - fetch->n_carried,
				       fetch->n_taken, splitter);
	int r = more < 0 ? more : gather(fetch, memory);
	bool skips;

	if (r < 0)
		return r;
	if (fetch->engine->unique)
		apply_unique(fetch);
	skips = fetch->start && more && is_before_start(fetch, splitter);
	if (fetch->start && !skips)
		r = begin_at_start(fetch);
	fetch->is_clean = false;
	if (r == 0 && more)
		r = cut(fetch, splitter);
	if (r < 0)
		return r;
	*ret_n = take_slices(fetch, !more, slices);
	if (skips) {
		skip_window(slices, fetch->n_sources);
		*ret_n = 0;
	}
	*ret_last = !more;
	fetch->number++;
	return 0;
}

void fetch_ask_clean_cut(struct fetch *fetch)
{
	fetch->asked_clean = true;
}

const struct splitter *fetch_clean_cut(const struct fetch *fetch)
{
	return fetch->is_clean ? &fetch->splitter : NULL;
}

struct digest fetch_digest_read(const struct fetch *fetch)
{
	struct digest read = { 0 };

	for (uint32_t i = 0; i < fetch->n_sources; i++)
		digest_add(&read, fetch->sources[i].read);
	return read;
}

struct digest fetch_digest_dropped(const struct fetch *fetch)
{
	return fetch->dropped;
}
