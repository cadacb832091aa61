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

#include "src/status.h"

/* One run's part in the merge. */
struct source {
	struct run *run;
	uint64_t next_block; /* the first not taken */
	uint64_t position;   /* resident: records consumed */
	const char *rest;    /* stored: n_rest records that the last window left, in its buffer */
	uint64_t n_rest;

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
	struct digest read, dropped;
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

/* If something is to be read, and device memory cannot be read into. */
static int open_staging(struct fetch *fetch)
{
	const struct engine *engine = fetch->engine;
	bool reads = false;
	void *staging;
	int r;

	for (uint32_t i = 0; i < fetch->n_sources; i++)
		reads = reads || !run_is_resident(fetch->sources[i].run);
	if (!reads || engine->info.unified)
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
	r = open_staging(fetch);
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

/*
 * Read blocks with n items to `items`, which is device memory: directly, or by way of the staging
 * buffer.
 */
static int read_items(struct fetch *fetch, struct source *source, uint64_t n_blocks, char *items,
		      uint64_t n)
{
	const struct engine *engine = fetch->engine;
	const size_t nbytes = n * engine->layout->item_nbytes;
	char *to = fetch->staging ? fetch->staging + fetch->staging_used : items;
	struct span span = stats_begin(STAGE_FETCH, fetch->number);
	int r = run_read(source->run, source->next_block, n_blocks, to, &fetch->read);

	stats_end(engine->stats, span, nbytes);
	if (r < 0 || to == items)
		return r;
	fetch->staging_used += nbytes;
	return engine->backend->copy(fetch->lane, items, to, nbytes);
}

/*
 * Read the taken blocks of a stored run to `to` (n records). Those narrower than their elements are
 * read to the end of that room, and expand in place.
 */
static int read_blocks(struct fetch *fetch, struct source *source, uint64_t n_blocks, char *to,
		       uint64_t n)
{
	const struct engine *engine = fetch->engine;
	const struct layout *layout = engine->layout;
	char *items = to + n * (layout->resident_nbytes - layout->item_nbytes);
	int r = read_items(fetch, source, n_blocks, items, n);

	if (r < 0)
		return r;
	if (!engine->checkpoint)
		run_discard_before(source->run, source->next_block + n_blocks);
	if (layout->kind == LAYOUT_RECORDS || !run_holds_records(source->run, layout) ||
	    code_map_is_identity(&layout->map))
		return 0;
	return engine->backend->encode(fetch->lane, &(struct encode_op){
							    .layout = layout,
							    .records = items,
							    .elements = to,
							    .n = n,
						    });
}

/* What is left of the last window, then the blocks taken, to `to`. */
static int gather_stored(struct fetch *fetch, struct source *source, uint64_t n_blocks, char *to,
			 uint64_t n_read)
{
	const struct engine *engine = fetch->engine;
	const uint64_t rest_nbytes = source->n_rest * engine->layout->resident_nbytes;
	int r = 0;

	if (rest_nbytes)
		r = engine->backend->copy(fetch->lane, to, source->rest, rest_nbytes);
	if (r == 0 && n_blocks)
		r = read_blocks(fetch, source, n_blocks, to + rest_nbytes, n_read);
	return r;
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

/* Every source's available records, for the blocks taken. */
static int gather(struct fetch *fetch, const struct fetch_memory *memory)
{
	const struct engine *engine = fetch->engine;
	const uint64_t resident_nbytes = engine->layout->resident_nbytes;
	uint64_t n_used = 0;
	int r = 0;

	fetch->staging_used = 0;
	for (uint32_t i = 0; i < fetch->n_sources && r == 0; i++) {
		struct source *source = &fetch->sources[i];
		const uint64_t end_block = source->next_block + fetch->n_taken[i];
		const uint64_t end = run_block_start(source->run, end_block);
		struct slice *slice = &fetch->available[i];

		if (run_is_resident(source->run)) {
			slice->elements = (const char *)run_memory(source->run) +
					  source->position * resident_nbytes;
			slice->n = end - source->position;
		} else {
			const uint64_t n_read =
				end - run_block_start(source->run, source->next_block);

			slice->elements = (char *)memory->in + n_used * resident_nbytes;
			slice->n = source->n_rest + n_read;
			n_used += slice->n;
			if (n_used > fetch->capacity_records)
				return fail(-EOVERFLOW,
					    "internal error: a window of %" PRIu64 " records "
					    "has room for %" PRIu64,
					    n_used, fetch->capacity_records);
			r = gather_stored(fetch, source, fetch->n_taken[i], (char *)slice->elements,
					  n_read);
			if (r == 0 && engine->unique && run_holds_duplicates(source->run))
				r = make_unique(fetch, source, slice, memory);
		}
		source->next_block = end_block;
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
	return fetch->read;
}

struct digest fetch_digest_dropped(const struct fetch *fetch)
{
	return fetch->dropped;
}
