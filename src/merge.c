/*
 * merge - k runs to one sorted sequence, window by window (see merge.h)
 *
 * A window's buffers go round:	free -> (fetched, merging) -> queue -> (being written) -> free
 *
 * Its input buffer is needed twice: by its own merge, and by the fetch of the next window, which
 * copies the rest of it. So a window has two holds, its writer's and the fetcher's, and is free
 * when both let go. With three windows in flight or more that never blocks: the fetcher holds one
 * and waits for another, and the writers need nothing but what they hold.
 */
#include "src/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "src/fetch.h"
#include "src/ring.h"
#include "src/status.h"

struct window {
	struct merge *merge;
	uint64_t number, n;
	atomic_int n_holds;
	void *in, *out, *scratch; /* device memory; in and scratch may be NULL */
	void *host;               /* what is written: out itself if the device is unified */
	struct slice *slices;     /* n_runs */
	uint64_t limit;           /* of the records that it keeps */
	void *first, *last;       /* LAYOUT_RECORDS: items, the first and the last one kept */
	code_t *first_keys;       /* of the sink's blocks; NULL if it wants none */
	void *clean_cut; /* the key that it ends at, if is_clean; NULL if no points are wanted */
	bool is_clean;
	struct lane *lane;
	struct mark *mark;

	/* Results of operations; valid once the mark is reached */
	uint64_t n_unique;
	struct digest dropped;
	struct decode_result decoded;
	struct arranged arranged; /* LAYOUT_RECORDS */
};

struct merge {
	const struct engine *engine;
	const struct sink *sink;
	uint32_t n_runs;
	struct window_plan plan;
	uint64_t host_nbytes;   /* of a window's host buffer */
	uint64_t buffer_nbytes; /* of in, and of out */
	bool reads;             /* some runs are not resident: windows have an input buffer */
	struct window *windows; /* plan.n_windows */
	uint64_t n_left;        /* until the limit; the caller's thread */
	uint64_t n_since_point; /* items in windows; the caller's thread */
	struct ring *free, *queue;
	pthread_t *writers;
	uint32_t n_writers;

	/* Under the lock: whose turn it is to be placed in the output, and what is known so far */
	pthread_mutex_t lock;
	pthread_cond_t turned;
	uint64_t turn;
	int error;
	bool has_last;
	code_t last;     /* codes */
	void *last_item; /* LAYOUT_RECORDS */
	struct merge_result result;
};

static bool moves_records(const struct merge *merge)
{
	return merge->engine->layout->kind == LAYOUT_RECORDS;
}

/* The first failure wins; nobody waits any longer. */
static void merge_fail(struct merge *merge, int r)
{
	pthread_mutex_lock(&merge->lock);
	if (!merge->error)
		merge->error = r;
	pthread_cond_broadcast(&merge->turned);
	pthread_mutex_unlock(&merge->lock);
	ring_fail(merge->free, r);
	ring_fail(merge->queue, r);
	if (merge->sink->cancel)
		merge->sink->cancel(merge->sink->context);
}

static int window_alloc(struct merge *merge, enum memory kind, size_t nbytes, void **ret_memory)
{
	const struct engine *engine = merge->engine;
	int r = engine->backend->alloc(engine->device, kind, nbytes, ret_memory);

	return r < 0 ? fail(r, "no memory for windows of %zu bytes: %m; try a smaller -S", nbytes) :
		       0;
}

size_t merge_key_nbytes(const struct layout *layout)
{
	return layout->kind == LAYOUT_RECORDS ? splitter_key_nbytes(layout) : sizeof(code_t);
}

size_t merge_edge_nbytes(const struct layout *layout)
{
	return layout->kind == LAYOUT_RECORDS ? layout->item_nbytes : sizeof(code_t);
}

/* Host memory for the window's bookkeeping. */
static int window_open_arrays(struct merge *merge, struct window *window)
{
	const uint64_t item_nbytes = merge->engine->layout->item_nbytes;
	const uint32_t block_n_items = merge->sink->block_n_items;
	bool complete;

	window->slices = calloc(merge->n_runs, sizeof *window->slices);
	complete = window->slices;
	if (block_n_items) {
		window->first_keys = malloc((merge->plan.capacity_records / block_n_items + 1) *
					    sizeof *window->first_keys);
		complete = complete && window->first_keys;
	}
	if (merge->sink->point) {
		window->clean_cut = malloc(merge_key_nbytes(merge->engine->layout));
		complete = complete && window->clean_cut;
	}
	if (moves_records(merge)) {
		window->first = malloc(item_nbytes);
		window->last = malloc(item_nbytes);
		complete = complete && window->first && window->last;
	}
	return complete ? 0 : fail(-ENOMEM, "no memory for a merge of %u runs", merge->n_runs);
}

static int window_open(struct merge *merge, struct window *window)
{
	const struct engine *engine = merge->engine;
	int r;

	window->merge = merge;
	r = window_open_arrays(merge, window);
	if (r == 0 && merge->reads)
		r = window_alloc(merge, MEMORY_DEVICE, merge->buffer_nbytes, &window->in);
	if (r == 0)
		r = window_alloc(merge, MEMORY_DEVICE, merge->buffer_nbytes, &window->out);
	if (r == 0 && merge->plan.scratch_nbytes)
		r = window_alloc(merge, MEMORY_DEVICE, merge->plan.scratch_nbytes,
				 &window->scratch);
	if (engine->info.unified)
		window->host = window->out;
	else if (r == 0)
		r = window_alloc(merge, MEMORY_HOST, merge->host_nbytes, &window->host);
	if (r < 0)
		return r;
	r = engine->backend->lane_open(engine->device, LANE_NORMAL, &window->lane);
	if (r == 0)
		r = engine->backend->mark_open(engine->device, &window->mark);
	return r < 0 ? fail(r, "cannot start a merge: %m") : 0;
}

static void window_close(struct merge *merge, struct window *window)
{
	const struct engine *engine = merge->engine;
	const struct backend *backend = engine->backend;

	if (window->lane)
		backend->lane_close(window->lane);
	if (window->mark)
		backend->mark_close(window->mark);
	if (!engine->info.unified)
		backend->release(engine->device, MEMORY_HOST, window->host, merge->host_nbytes);
	backend->release(engine->device, MEMORY_DEVICE, window->in, merge->buffer_nbytes);
	backend->release(engine->device, MEMORY_DEVICE, window->out, merge->buffer_nbytes);
	backend->release(engine->device, MEMORY_DEVICE, window->scratch,
			 merge->plan.scratch_nbytes);
	free(window->slices);
	free(window->first_keys);
	free(window->clean_cut);
	free(window->first);
	free(window->last);
}

static void window_let_go(struct window *window)
{
	if (atomic_fetch_sub(&window->n_holds, 1) == 1)
		ring_push(window->merge->free, window);
}

static int window_mark_and_wait(struct window *window)
{
	const struct backend *backend = window->merge->engine->backend;
	int r = backend->mark(window->lane, window->mark);

	return r < 0 ? r : backend->mark_wait(window->mark);
}

static int window_merge_records(struct window *window)
{
	const struct merge *merge = window->merge;
	const struct engine *engine = merge->engine;

	return engine->backend->merge_records(window->lane,
					      &(struct merge_records_op){
						      .layout = engine->layout,
						      .slices = window->slices,
						      .k = merge->n_runs,
						      .out = window->out,
						      .for_output = merge->sink->takes_records,
						      .unique = engine->unique,
						      .limit = window->limit,
						      .scratch = window->scratch,
						      .ret_first = window->first,
						      .ret_last = window->last,
						      .ret = &window->arranged,
					      });
}

static int window_merge_codes(struct window *window)
{
	const struct engine *engine = window->merge->engine;
	const struct backend *backend = engine->backend;
	const struct layout *layout = engine->layout;
	int r;

	window->n_unique = window->n;
	window->dropped = (struct digest){ 0 };
	r = backend->merge(window->lane, &(struct merge_op){
						 .slices = window->slices,
						 .k = window->merge->n_runs,
						 .element_nbytes = layout->element_nbytes,
						 .out = window->out,
						 .scratch = window->scratch,
					 });
	if (r == 0 && engine->unique)
		r = backend->unique(window->lane, &(struct unique_op){
							  .elements = window->out,
							  .n = window->n,
							  .element_nbytes = layout->element_nbytes,
							  .layout = layout,
							  .ret_n = &window->n_unique,
							  .ret_dropped = &window->dropped,
						  });
	return r;
}

/* Queue the merge of the window's slices. */
static int window_merge(struct window *window)
{
	int r = moves_records(window->merge) ? window_merge_records(window) :
					       window_merge_codes(window);

	return r == 0 ? window->merge->engine->backend->mark(window->lane, window->mark) : r;
}

static int window_sample(struct window *window)
{
	const struct engine *engine = window->merge->engine;
	const uint64_t stride = window->merge->sink->block_n_items;

	if (moves_records(window->merge))
		return engine->backend->sample_records(window->lane,
						       &(struct sample_records_op){
							       .layout = engine->layout,
							       .items = window->out,
							       .n = window->n,
							       .stride = stride,
							       .ret_keys = window->first_keys,
						       });
	return engine->backend->sample(window->lane,
				       &(struct sample_op){
					       .elements = window->out,
					       .n = window->n,
					       .stride = stride,
					       .element_nbytes = engine->layout->element_nbytes,
					       .ret_keys = window->first_keys,
				       });
}

static int window_decode(struct window *window)
{
	const struct engine *engine = window->merge->engine;

	return engine->backend->decode(window->lane, &(struct decode_op){
							     .layout = engine->layout,
							     .elements = window->out,
							     .records = window->out,
							     .n = window->n,
							     .strict = engine->unique,
							     .ret = &window->decoded,
						     });
}

/* Once it is merged: what the sink wants to have of it. */
static int window_finish(struct window *window)
{
	const struct merge *merge = window->merge;
	const struct backend *backend = merge->engine->backend;
	const struct sink *sink = merge->sink;
	int r = backend->mark_wait(window->mark);

	if (moves_records(merge)) {
		window->n = window->arranged.n;
		window->dropped = window->arranged.dropped;
	} else {
		window->n = window->n_unique;
	}
	if (r == 0 && sink->block_n_items && window->n)
		r = window_sample(window);
	if (r == 0 && sink->takes_records && !moves_records(merge))
		r = window_decode(window);
	if (r == 0 && window->host != window->out && window->n)
		r = backend->copy(window->lane, window->host, window->out,
				  window->n * sink->item_nbytes);
	return r == 0 ? window_mark_and_wait(window) : r;
}

/* Under the lock: do the last record of the window before and this one's first break the order? */
static bool edge_is_disorder(const struct merge *merge, const struct window *window)
{
	const struct decode_result *decoded = &window->decoded;
	int order;

	if (!merge->has_last)
		return false;
	if (moves_records(merge))
		order = key_compare(&merge->engine->layout->item_keys, merge->last_item,
				    window->first);
	else
		order = merge->last < decoded->first ? -1 : merge->last > decoded->first;
	return order > 0 || (order == 0 && merge->engine->unique);
}

/* Under the lock: add what was found out about the n > 0 records of the window. */
static void add_findings(struct merge *merge, const struct window *window)
{
	struct merge_result *result = &merge->result;

	result->n_disorders += edge_is_disorder(merge, window);
	merge->has_last = true;
	if (moves_records(merge)) {
		result->n_disorders += window->arranged.n_disorders;
		result->n_counted += window->arranged.n_counted;
		digest_add(&result->written, window->arranged.digest);
		memcpy(merge->last_item, window->last, merge->engine->layout->item_nbytes);
	} else {
		result->n_disorders += window->decoded.n_disorders;
		result->n_counted += window->n;
		digest_add(&result->written, window->decoded.digest);
		merge->last = window->decoded.last;
	}
}

/*
 * Under the lock: tell the sink that the merge can be taken up behind the window. Behind the limit
 * there is nothing to take up.
 */
static int give_point(struct merge *merge, const struct window *window)
{
	const struct merge_point point = {
		.key = window->clean_cut,
		.last = moves_records(merge) ? merge->last_item : (const void *)&merge->last,
		.result = merge->result,
	};

	if (!window->is_clean || merge->result.n_items == merge->engine->limit)
		return 0;
	return merge->sink->point(merge->sink->context, &point);
}

/* Wait for the window's turn, find its place in the output, and add up what is known of it. */
static int window_place(struct window *window, uint64_t *ret_position)
{
	struct merge *merge = window->merge;
	struct merge_result *result = &merge->result;
	int r;

	pthread_mutex_lock(&merge->lock);
	while (merge->turn != window->number && !merge->error)
		pthread_cond_wait(&merge->turned, &merge->lock);
	r = merge->error;
	if (r == 0) {
		*ret_position = result->n_items;
		result->n_items += window->n;
		result->n_windows++;
		digest_add(&result->dropped, window->dropped);
		if (window->n && (merge->sink->takes_records || moves_records(merge)))
			add_findings(merge, window);
		r = give_point(merge, window);
		merge->turn++;
		pthread_cond_broadcast(&merge->turned);
	}
	pthread_mutex_unlock(&merge->lock);
	return r;
}

static int window_write(struct window *window)
{
	struct merge *merge = window->merge;
	const struct sink *sink = merge->sink;
	struct merged merged = {
		.number = window->number,
		.items = window->host,
		.first_keys = window->first_keys,
	};
	struct span span = stats_begin(sink->stage, window->number);
	int r = window_finish(window);

	if (r == 0)
		r = window_place(window, &merged.position);
	stats_waited(merge->engine->stats, span);
	if (r < 0 || window->n == 0)
		return r;
	merged.n_items = window->n;
	span = stats_begin(sink->stage, window->number);
	r = sink->write(sink->context, &merged);
	stats_end(merge->engine->stats, span, merged.n_items * sink->item_nbytes);
	return r;
}

static void *writer_main(void *argument)
{
	struct merge *merge = argument;
	void *window;
	int r;

	while ((r = ring_pop(merge->queue, &window)) == 0) {
		r = window_write(window);
		if (r < 0)
			break;
		window_let_go(window);
	}
	if (r != -ENODATA)
		merge_fail(merge, r);
	return NULL;
}

/* With -u only the merge tells how many records the window keeps. */
static int count_towards_limit(struct merge *merge, const struct window *window)
{
	uint64_t n = window->n;
	int r = 0;

	if (merge->n_left == UINT64_MAX)
		return 0;
	if (merge->engine->unique) {
		r = merge->engine->backend->mark_wait(window->mark);
		n = window->arranged.n;
	}
	merge->n_left -= n < merge->n_left ? n : merge->n_left;
	return r;
}

/* Queue the window behind those before it; empty ones go no further. */
static int window_submit(struct merge *merge, struct window *window, uint64_t *n_submitted)
{
	int r;

	if (window->n == 0) {
		window_let_go(window);
		return 0;
	}
	window->number = (*n_submitted)++;
	window->limit = merge->n_left;
	r = window_merge(window);
	if (r == 0)
		r = count_towards_limit(merge, window);
	return r == 0 ? ring_push(merge->queue, window) : r;
}

/* Is the window to end so that the merge could be taken up behind it? */
static void ask_clean_cut(struct merge *merge, struct fetch *fetch)
{
	if (merge->sink->point && merge->n_since_point >= merge->sink->point_interval)
		fetch_ask_clean_cut(fetch);
}

/* Remember where it ends, if it does. */
static void note_clean_cut(struct merge *merge, struct window *window, const struct fetch *fetch)
{
	const struct splitter *splitter = fetch_clean_cut(fetch);

	merge->n_since_point += window->n;
	window->is_clean = merge->sink->point && splitter && window->n &&
			   merge->n_since_point >= merge->sink->point_interval;
	if (!window->is_clean)
		return;
	merge->n_since_point = 0;
	memcpy(window->clean_cut,
	       moves_records(merge) ? splitter->normalised : (const void *)&splitter->key,
	       merge_key_nbytes(merge->engine->layout));
}

/* The caller's thread: cut one window after the other. */
static int feed(struct merge *merge, struct fetch *fetch)
{
	struct window *previous = NULL;
	uint64_t n_submitted = 0;
	bool last = false;

	while (!last) {
		struct span span = stats_begin(STAGE_FETCH, n_submitted);
		struct window *window;
		void *item;
		int r = ring_pop(merge->free, &item);

		stats_waited(merge->engine->stats, span);
		if (r < 0)
			return r;
		window = item;
		atomic_store(&window->n_holds, 2);
		ask_clean_cut(merge, fetch);
		r = fetch_next(fetch,
			       &(struct fetch_memory){ window->in, window->out, window->scratch },
			       window->slices, &window->n, &last);
		if (r == 0)
			note_clean_cut(merge, window, fetch);
		if (r == 0)
			r = window_submit(merge, window, &n_submitted);
		if (r < 0)
			return r;
		if (previous)
			window_let_go(previous);
		previous = window;
	}
	return 0;
}

static int start_writers(struct merge *merge)
{
	const uint32_t n = merge->engine->plan.n_writers;
	int r = 0;

	merge->writers = calloc(n, sizeof *merge->writers);
	if (!merge->writers)
		return fail(-ENOMEM, "no memory for %u writers", n);
	for (; merge->n_writers < n && r == 0; merge->n_writers += r == 0)
		r = -pthread_create(&merge->writers[merge->n_writers], NULL, writer_main, merge);
	return r < 0 ? fail(r, "cannot start a writer thread: %m") : 0;
}

/* Go on from where the sink wants to start. */
static void take_up(struct merge *merge, const struct merge_point *start)
{
	merge->result = start->result;
	merge->has_last = start->last;
	if (start->last)
		memcpy(moves_records(merge) ? merge->last_item : (void *)&merge->last, start->last,
		       merge_edge_nbytes(merge->engine->layout));
	if (merge->n_left != UINT64_MAX)
		merge->n_left -= start->result.n_items;
}

static int merge_open(struct merge *merge)
{
	int r = 0;

	pthread_mutex_init(&merge->lock, NULL);
	pthread_cond_init(&merge->turned, NULL);
	merge->windows = calloc(merge->plan.n_windows, sizeof *merge->windows);
	if (moves_records(merge))
		merge->last_item = malloc(merge->engine->layout->item_nbytes);
	if (!merge->windows || (moves_records(merge) && !merge->last_item) ||
	    ring_open(merge->plan.n_windows, &merge->free) < 0 ||
	    ring_open(merge->plan.n_windows, &merge->queue) < 0)
		return fail(-ENOMEM, "no memory for a merge of %u runs", merge->n_runs);
	if (merge->sink->start)
		take_up(merge, merge->sink->start);
	for (uint32_t i = 0; i < merge->plan.n_windows && r == 0; i++) {
		r = window_open(merge, &merge->windows[i]);
		if (r == 0)
			r = ring_push(merge->free, &merge->windows[i]);
	}
	return r == 0 ? start_writers(merge) : r;
}

/* Everything that was queued has ended when the lanes are closed. */
static void merge_close(struct merge *merge)
{
	for (uint32_t i = 0; merge->windows && i < merge->plan.n_windows; i++)
		window_close(merge, &merge->windows[i]);
	free(merge->windows);
	free(merge->last_item);
	free(merge->writers);
	ring_close(merge->free);
	ring_close(merge->queue);
	pthread_cond_destroy(&merge->turned);
	pthread_mutex_destroy(&merge->lock);
}

/* Feed the writers, and wait for them. */
static int merge_run(struct merge *merge, struct fetch *fetch)
{
	int r = feed(merge, fetch);

	if (r < 0)
		merge_fail(merge, r);
	else
		ring_finish(merge->queue);
	for (uint32_t i = 0; i < merge->n_writers; i++)
		pthread_join(merge->writers[i], NULL);
	merge->n_writers = 0;
	merge->result.read = fetch_digest_read(fetch);
	digest_add(&merge->result.dropped, fetch_digest_dropped(fetch));
	return merge->error;
}

static uint64_t count_items(struct run *const *runs, uint32_t n_runs)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < n_runs; i++)
		n += run_n_items(runs[i]);
	return n;
}

static uint32_t count_resident(struct run *const *runs, uint32_t n_runs)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < n_runs; i++)
		n += run_is_resident(runs[i]);
	return n;
}

int merge_runs(const struct engine *engine, struct run *const *runs, uint32_t n_runs,
	       uint64_t memory_nbytes, const struct sink *sink, struct merge_result *ret_result)
{
	struct merge merge = {
		.engine = engine, .sink = sink, .n_runs = n_runs, .n_left = engine->limit
	};
	const uint32_t n_resident = count_resident(runs, n_runs);
	struct fetch *fetch = NULL;
	struct splitter start;
	int r;

	if (sink->start)
		splitter_make(engine->layout, sink->start->key, &start);
	plan_windows(&engine->plan, &engine->request, memory_nbytes, count_items(runs, n_runs),
		     n_resident, n_runs - n_resident, &merge.plan);
	merge.reads = n_resident < n_runs;
	merge.buffer_nbytes = merge.plan.capacity_records * engine->layout->resident_nbytes;
	merge.host_nbytes = merge.plan.capacity_records * sink->item_nbytes;
	r = fetch_open(engine, runs, n_runs, &merge.plan, sink->start ? &start : NULL, &fetch);
	if (r == 0)
		r = merge_open(&merge);
	if (r == 0) {
		r = merge_run(&merge, fetch);
	} else if (merge.n_writers) {
		merge_fail(&merge, r);
		for (uint32_t i = 0; i < merge.n_writers; i++)
			pthread_join(merge.writers[i], NULL);
	}
	fetch_close(fetch);
	merge_close(&merge);
	if (r == 0)
		*ret_result = merge.result;
	return r;
}
