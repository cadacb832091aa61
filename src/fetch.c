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
 */
#include "src/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/status.h"

/* One run's part in the merge. */
struct source {
	struct run *run;
	uint64_t next_block; /* the first not taken */
	uint64_t position;   /* resident: elements consumed */
	const char *rest;    /* stored: n_rest elements that the last window left, in its buffer */
	uint64_t n_rest;
	uint64_t n_unique; /* see make_unique() */
	struct digest dropped;
};

struct fetch {
	const struct engine *engine;
	struct forecast *forecast;
	struct lane *lane;
	struct mark *mark;
	uint64_t quota_records, capacity_records;
	uint32_t n_sources;
	uint64_t number;   /* of the window */
	uint64_t *n_taken; /* n_sources each: blocks, ... */
	uint64_t *cuts;
	struct slice *available; /* what the window could hold, before the cut */
	struct digest read, dropped;
	char *staging; /* host memory that is read into, or NULL */
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
	fetch->staging_nbytes = fetch->capacity_records * engine->layout->record_nbytes;
	r = engine->backend->alloc(engine->device, MEMORY_HOST, fetch->staging_nbytes, &staging);
	if (r < 0)
		return fail(r, "no pinned memory to read runs into: %m; try a smaller -S");
	fetch->staging = staging;
	return 0;
}

static int fetch_start(struct fetch *fetch, struct run *const *runs,
		       const struct window_plan *windows)
{
	const struct engine *engine = fetch->engine;
	const size_t n = fetch->n_sources;
	int r;

	fetch->n_taken = calloc(n, sizeof *fetch->n_taken);
	fetch->cuts = calloc(n, sizeof *fetch->cuts);
	fetch->available = calloc(n, sizeof *fetch->available);
	if (!fetch->n_taken || !fetch->cuts || !fetch->available)
		return fail(-ENOMEM, "no memory for a merge of %zu runs", n);
	r = engine->backend->lane_open(engine->device, LANE_URGENT, &fetch->lane);
	if (r == 0)
		r = engine->backend->mark_open(engine->device, &fetch->mark);
	if (r < 0)
		return fail(r, "cannot start a merge: %m");
	r = open_staging(fetch);
	if (r == 0)
		r = sample_resident(fetch, windows->resident_stride);
	return r < 0 ? r : forecast_open(runs, fetch->n_sources, &fetch->forecast);
}

int fetch_open(const struct engine *engine, struct run *const *runs, uint32_t n_runs,
	       const struct window_plan *windows, struct fetch **ret_fetch)
{
	struct fetch *fetch = calloc(1, sizeof *fetch + n_runs * sizeof fetch->sources[0]);
	int r;

	if (!fetch)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	fetch->engine = engine;
	fetch->quota_records = windows->quota_records;
	fetch->capacity_records = windows->capacity_records;
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
	free(fetch->n_taken);
	free(fetch->cuts);
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
	const size_t nbytes = n * engine->layout->record_nbytes;
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
 * Read the taken blocks of a stored run to `elements` (n of them). Records narrower than elements
 * are read to the end of that room, and expand in place.
 */
static int read_blocks(struct fetch *fetch, struct source *source, uint64_t n_blocks,
		       char *elements, uint64_t n)
{
	const struct engine *engine = fetch->engine;
	const struct layout *layout = engine->layout;
	char *items = elements + n * (layout->element_nbytes - layout->record_nbytes);
	int r = read_items(fetch, source, n_blocks, items, n);

	if (r < 0)
		return r;
	run_discard_before(source->run, source->next_block + n_blocks);
	if (!run_holds_records(source->run, layout) || code_map_is_identity(&layout->map))
		return 0;
	return engine->backend->encode(fetch->lane, &(struct encode_op){
							    .layout = layout,
							    .records = items,
							    .elements = elements,
							    .n = n,
						    });
}

/* What is left of the last window, then the blocks taken, to `to`. */
static int gather_stored(struct fetch *fetch, struct source *source, uint64_t n_blocks, char *to,
			 uint64_t n_read)
{
	const struct engine *engine = fetch->engine;
	const uint32_t element_nbytes = engine->layout->element_nbytes;
	int r = 0;

	if (source->n_rest)
		r = engine->backend->copy(fetch->lane, to, source->rest,
					  source->n_rest * element_nbytes);
	if (r == 0 && n_blocks)
		r = read_blocks(fetch, source, n_blocks, to + source->n_rest * element_nbytes,
				n_read);
	return r;
}

/* With -u: queue that an input run's part of the buffer loses its duplicates. */
static int make_unique(struct fetch *fetch, struct source *source, struct slice slice)
{
	const struct engine *engine = fetch->engine;

	source->n_unique = slice.n;
	source->dropped = (struct digest){ 0 };
	if (slice.n == 0)
		return 0;
	return engine->backend->unique(fetch->lane,
				       &(struct unique_op){
					       .elements = (void *)slice.elements,
					       .n = slice.n,
					       .element_nbytes = engine->layout->element_nbytes,
					       .layout = engine->layout,
					       .ret_n = &source->n_unique,
					       .ret_dropped = &source->dropped,
				       });
}

/* Every source's available elements, for the blocks taken. */
static int gather(struct fetch *fetch, char *buffer)
{
	const struct engine *engine = fetch->engine;
	const uint32_t element_nbytes = engine->layout->element_nbytes;
	uint64_t n_used = 0;
	int r = 0;

	fetch->staging_used = 0;
	for (uint32_t i = 0; i < fetch->n_sources && r == 0; i++) {
		struct source *source = &fetch->sources[i];
		const uint64_t end_block = source->next_block + fetch->n_taken[i];
		const uint64_t end = run_block_start(source->run, end_block);
		struct slice *slice = &fetch->available[i];

		if (run_is_resident(source->run)) {
			slice->elements = (const char *)run_elements(source->run) +
					  source->position * element_nbytes;
			slice->n = end - source->position;
		} else {
			const uint64_t n_read =
				end - run_block_start(source->run, source->next_block);

			slice->elements = buffer + n_used * element_nbytes;
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
				r = make_unique(fetch, source, *slice);
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
		fetch->available[i].n = source->n_unique;
		digest_add(&fetch->dropped, source->dropped);
	}
}

static int cut(struct fetch *fetch, struct splitter splitter)
{
	const struct engine *engine = fetch->engine;
	struct span span = stats_begin(STAGE_CUT, fetch->number);
	int r = engine->backend->cut(fetch->lane,
				     &(struct cut_op){
					     .slices = fetch->available,
					     .k = fetch->n_sources,
					     .element_nbytes = engine->layout->element_nbytes,
					     .key = splitter.key,
					     .slice = engine->unique ? 0 : splitter.run,
					     .ret_cuts = fetch->cuts,
				     });

	if (r == 0)
		r = wait_lane(fetch);
	if (!engine->unique)
		fetch->cuts[splitter.run] = fetch->available[splitter.run].n;
	stats_waited(engine->stats, span);
	return r;
}

/* Split what is available into this window's slices and the rest. */
static uint64_t take_slices(struct fetch *fetch, bool last, struct slice *slices)
{
	const uint32_t element_nbytes = fetch->engine->layout->element_nbytes;
	uint64_t n = 0;

	for (uint32_t i = 0; i < fetch->n_sources; i++) {
		struct source *source = &fetch->sources[i];
		const struct slice *available = &fetch->available[i];
		const uint64_t taken = last ? available->n : fetch->cuts[i];

		slices[i] = (struct slice){ .elements = available->elements, .n = taken };
		source->rest = (const char *)available->elements + taken * element_nbytes;
		source->n_rest = available->n - taken;
		source->position += taken;
		n += taken;
	}
	return n;
}

int fetch_next(struct fetch *fetch, void *buffer, struct slice *slices, uint64_t *ret_n,
	       bool *ret_last)
{
	struct splitter splitter;
	const bool last =
		!forecast_take(fetch->forecast, fetch->quota_records, fetch->n_taken, &splitter);
	int r = gather(fetch, buffer);

	if (r < 0)
		return r;
	if (fetch->engine->unique)
		apply_unique(fetch);
	if (!last) {
		r = cut(fetch, splitter);
		if (r < 0)
			return r;
	}
	*ret_n = take_slices(fetch, last, slices);
	*ret_last = last;
	fetch->number++;
	return 0;
}

struct digest fetch_digest_read(const struct fetch *fetch)
{
	return fetch->read;
}

struct digest fetch_digest_dropped(const struct fetch *fetch)
{
	return fetch->dropped;
}
