/*
 * window - the windows of a merge that are in flight (see window.h)
 */
#include "src/merge/window.h"

#include <errno.h>
#include <stdlib.h>

#include "io/input/input_mapped.h"
#include "src/base/diagnostics.h"
#include "src/base/bounded_queue.h"

/* Is what was merged elements, of which records are made for the sink? */
static bool decodes(const struct window_pool *pool)
{
	return pool->sink->takes_records && layout_has_elements(pool->job->layout);
}

/* Are the records elsewhere than in the windows until they are decoded? */
static bool refers(const struct window_pool *pool)
{
	return layout_refers(pool->job->layout);
}

/* Is what the sink takes elsewhere than what was merged? */
static bool leaves_from_apart(const struct window_pool *pool)
{
	return pool->job->plan.copies || refers(pool);
}

/* Host memory for the window's bookkeeping. */
static int open_arrays(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const struct layout *layout = pool->job->layout;
	const uint32_t block_n_items = pool->sink->block_n_items;
	bool complete;

	window->slices = calloc(pool->n_runs, sizeof *window->slices);
	complete = window->slices;
	if (block_n_items) {
		window->first_keys = malloc((pool->plan.capacity_records / block_n_items + 1) *
					    sizeof *window->first_keys);
		complete = complete && window->first_keys;
	}
	if (pool->sink->takes_packed) {
		window->packed_nbytes = malloc((pool->plan.capacity_records / block_n_items + 1) *
					       sizeof *window->packed_nbytes);
		complete = complete && window->packed_nbytes;
	}
	if (pool->sink->point) {
		window->clean_cut = malloc(layout_key_nbytes(layout));
		complete = complete && window->clean_cut;
	}
	if (!layout_has_elements(layout) || decodes(pool)) {
		window->first = malloc(layout_edge_nbytes(layout));
		window->last = malloc(layout_edge_nbytes(layout));
		complete = complete && window->first && window->last;
	}
	return complete ? 0 : fail(-ENOMEM, "no memory for a merge of %u runs", pool->n_runs);
}

static int open_window(struct window_pool *pool, struct window *window,
		       const struct window_buffers *buffers)
{
	window->pool = pool;
	window->buffers = *buffers;
	return open_arrays(window);
}

static void close_window(struct window *window)
{
	free(window->slices);
	free(window->first_keys);
	free(window->packed_nbytes);
	free(window->clean_cut);
	free(window->first);
	free(window->last);
}

static struct window_sizes sizes_of(const struct window_pool *pool)
{
	const struct job *job = pool->job;
	const uint64_t capacity = pool->plan.capacity_records;
	const uint64_t items_nbytes = capacity * job->layout->resident_nbytes;
	const uint32_t slack_nbytes = pool->sink->align_nbytes;
	const bool apart = leaves_from_apart(pool);

	return (struct window_sizes){
		.in = pool->reads ? items_nbytes : 0,
		.out = items_nbytes + (apart ? 0 : slack_nbytes),
		.scratch = pool->plan.scratch_nbytes,
		.host = apart ? capacity * pool->sink->item_nbytes + slack_nbytes : 0,
	};
}

int window_pool_open(struct window_pool *pool)
{
	const struct window_sizes sizes = sizes_of(pool);
	const struct window_buffers *buffers;
	int r;

	pool->windows = calloc(pool->plan.n_windows, sizeof *pool->windows);
	if (!pool->windows || ring_open(pool->plan.n_windows, &pool->free) < 0)
		return fail(-ENOMEM, "no memory for a merge of %u runs", pool->n_runs);
	r = window_memory_take(job_windows(pool->job), pool->job, pool->plan.n_windows, &sizes,
			       &buffers);
	for (uint32_t i = 0; i < pool->plan.n_windows && r == 0; i++) {
		r = open_window(pool, &pool->windows[i], &buffers[i]);
		if (r == 0)
			r = ring_push(pool->free, &pool->windows[i]);
	}
	return r;
}

void window_pool_close(struct window_pool *pool)
{
	/* Operations may still be under way: closing their lanes waits for them. */
	if (pool->has_failed)
		window_memory_drop(job_windows(pool->job));
	for (uint32_t i = 0; pool->windows && i < pool->plan.n_windows; i++)
		close_window(&pool->windows[i]);
	free(pool->windows);
	ring_close(pool->free);
}

int window_pool_take(struct window_pool *pool, struct window **ret_window)
{
	void *item;
	int r = ring_pop(pool->free, &item);

	if (r < 0)
		return r;
	*ret_window = item;
	atomic_store(&(*ret_window)->n_holds, 2);
	return 0;
}

void window_pool_fail(struct window_pool *pool, int r)
{
	atomic_store(&pool->has_failed, true);
	ring_fail(pool->free, r);
}

void window_let_go(struct window *window)
{
	if (atomic_fetch_sub(&window->n_holds, 1) == 1)
		ring_push(window->pool->free, window);
}

void window_align(struct window *window, uint64_t position)
{
	const struct window_pool *pool = window->pool;
	const struct layout *layout = pool->job->layout;
	const struct sink *sink = pool->sink;
	uint64_t shift = 0;

	if (sink->align_nbytes && sink->place)
		shift = sink->place(sink->context, position) % sink->align_nbytes;
	else if (sink->align_nbytes)
		shift = (sink->base + position * sink->item_nbytes) % sink->align_nbytes;
	if (leaves_from_apart(pool)) {
		window->out = window->buffers.out;
		window->host = (char *)window->buffers.host + shift;
	} else {
		/* Elements have to be aligned as what they are. */
		if (layout_has_elements(layout) && shift % layout->element_nbytes != 0)
			shift = 0;
		window->host = window->out = (char *)window->buffers.out + shift;
	}
}

static int merge(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const struct job *job = pool->job;

	return lane_merge(window->buffers.lane, &(struct merge_op){
							.layout = job->layout,
							.slices = window->slices,
							.k = pool->n_runs,
							.out = window->out,
							.for_output = pool->sink->takes_records,
							.unique = job->unique,
							.limit = window->limit,
							.scratch = window->buffers.scratch,
							.ret_first = window->first,
							.ret_last = window->last,
							.ret = &window->found,
						});
}

static int decode(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const struct job *job = pool->job;

	return lane_decode(window->buffers.lane,
			   &(struct decode_op){
				   .layout = job->layout,
				   .sources = job->sources,
				   .n_sources = job->n_sources,
				   .elements = window->out,
				   .records = refers(pool) ? window->host : window->out,
				   .n = window->found.n,
				   .strict = job->unique,
				   .ret = &window->decoded,
			   });
}

int window_merge(struct window *window)
{
	int r = merge(window);

	/* The longer part of the work, and how many there are is known. */
	if (r == 0 && refers(window->pool))
		r = decode(window);
	return r == 0 ? lane_mark(window->buffers.lane, window->buffers.mark) : r;
}

int window_wait_merged(struct window *window)
{
	return mark_wait(window->buffers.mark);
}

static int sample(struct window *window)
{
	return lane_sample(window->buffers.lane,
			   &(struct sample_op){
				   .layout = window->pool->job->layout,
				   .items = window->out,
				   .n = window->found.n,
				   .stride = window->pool->sink->block_n_items,
				   .ret_keys = window->first_keys,
			   });
}

/* Pack the window into its scratch, which the merge does not need any more. */
static int pack(struct window *window, uint64_t *ret_nbytes)
{
	const struct window_pool *pool = window->pool;
	const struct job *job = pool->job;
	const uint32_t block_n = pool->sink->block_n_items;
	int r = lane_pack(window->buffers.lane,
			  &(struct pack_op){
				  .elements = window->out,
				  .n = window->found.n,
				  .element_nbytes = job->layout->element_nbytes,
				  .block_n = block_n,
				  .packed = window->buffers.scratch,
				  .ret_nbytes = window->packed_nbytes,
			  });

	if (r == 0)
		r = lane_wait(window->buffers.lane, window->buffers.mark);
	*ret_nbytes = 0;
	for (uint64_t i = 0; r == 0 && i * block_n < window->found.n; i++)
		*ret_nbytes += window->packed_nbytes[i];
	return r;
}

/* Queue what brings to the host what the sink takes. */
static int download(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const void *from = window->packed_nbytes ? window->buffers.scratch : window->out;
	uint64_t nbytes = window->found.n * pool->sink->item_nbytes;
	int r = 0;

	if (nbytes == 0)
		return 0;
	if (window->packed_nbytes)
		r = pack(window, &nbytes);
	if (r < 0)
		return r;
	return lane_copy(window->buffers.lane, window->host, from, nbytes);
}

/* What was found out about codes, as it is said of items. */
static void take_in_decoded(struct window *window)
{
	const struct decode_result *decoded = &window->decoded;

	window->found.n_counted = window->found.n;
	window->found.n_disorders = decoded->n_disorders;
	window->found.digest = decoded->digest;
	*(code_t *)window->first = decoded->first;
	*(code_t *)window->last = decoded->last;
}

int window_finish(struct window *window)
{
	const struct window_pool *pool = window->pool;
	int r = window_wait_merged(window);

	if (r == 0 && pool->sink->block_n_items && window->found.n)
		r = sample(window);
	if (r == 0 && refers(pool))
		r = input_check_mapped(pool->job->input);
	else if (r == 0 && decodes(pool))
		r = decode(window);
	if (r == 0 && window->host != window->out && !refers(pool))
		r = download(window);
	if (r == 0)
		r = lane_wait(window->buffers.lane, window->buffers.mark);
	if (r == 0 && decodes(pool))
		take_in_decoded(window);
	return r;
}
