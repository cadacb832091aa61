/*
 * window - the windows of a merge that are in flight (see window.h)
 */
#include "src/merge/window.h"

#include <errno.h>
#include <stdlib.h>

#include "io/input/input.h"
#include "src/base/diagnostics.h"
#include "src/base/thread_pool.h"

/* Is what was merged elements, of which records are made for the sink? */
static bool needs_decode(const struct window_pool *pool)
{
	return pool->sink->takes_records && layout_has_elements(pool->job->layout);
}

/* Are the records elsewhere than in the windows until they are decoded? */
static bool is_indirect_window(const struct window_pool *pool)
{
	return layout_is_indirect(pool->job->layout);
}

/* Is what the sink takes elsewhere than what was merged? */
static bool has_separate_output(const struct window_pool *pool)
{
	return pool->job->plan.copies_to_device || is_indirect_window(pool);
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
	if (!layout_has_elements(layout) || needs_decode(pool)) {
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
	free(window->first);
	free(window->last);
}

static struct window_sizes window_buffer_sizes(const struct window_pool *pool)
{
	const struct job *job = pool->job;
	const uint64_t capacity = pool->plan.capacity_records;
	const uint64_t items_nbytes = capacity * job->layout->resident_nbytes;
	const uint32_t slack_nbytes = pool->sink->align_nbytes;
	const bool is_separate = has_separate_output(pool);

	return (struct window_sizes){
		.in = pool->has_input ? items_nbytes : 0,
		.out = items_nbytes + (is_separate ? 0 : slack_nbytes),
		.scratch = pool->plan.scratch_nbytes,
		.host = is_separate ? capacity * pool->sink->item_nbytes + slack_nbytes : 0,
	};
}

int window_pool_open(struct window_pool *pool)
{
	const struct window_sizes sizes = window_buffer_sizes(pool);
	const struct window_buffers *buffers;
	int r;

	pool->windows = calloc(pool->plan.n_windows, sizeof *pool->windows);
	if (!pool->windows || bounded_queue_open(pool->plan.n_windows, &pool->free_windows) < 0)
		return fail(-ENOMEM, "no memory for a merge of %u runs", pool->n_runs);
	r = window_buffer_cache_acquire(job_window_buffers(pool->job), pool->job,
					pool->plan.n_windows, &sizes, &buffers);
	for (uint32_t i = 0; i < pool->plan.n_windows && r == 0; i++) {
		r = open_window(pool, &pool->windows[i], &buffers[i]);
		if (r == 0)
			r = bounded_queue_push(pool->free_windows, &pool->windows[i]);
	}
	return r;
}

void window_pool_close(struct window_pool *pool)
{
	/* Operations may still be under way: closing their queues waits for them. */
	if (pool->has_failed)
		window_buffer_cache_clear(job_window_buffers(pool->job));
	for (uint32_t i = 0; pool->windows && i < pool->plan.n_windows; i++)
		close_window(&pool->windows[i]);
	free(pool->windows);
	bounded_queue_close(pool->free_windows);
}

int window_pool_acquire(struct window_pool *pool, struct window **ret_window)
{
	void *item;
	int r = bounded_queue_pop(pool->free_windows, &item);

	if (r < 0)
		return r;
	*ret_window = item;
	atomic_store(&(*ret_window)->n_refs, 2);
	return 0;
}

void window_pool_fail(struct window_pool *pool, int r)
{
	atomic_store(&pool->has_failed, true);
	bounded_queue_fail(pool->free_windows, r);
}

void window_release(struct window *window)
{
	if (atomic_fetch_sub(&window->n_refs, 1) == 1)
		bounded_queue_push(window->pool->free_windows, window);
}

void window_align(struct window *window, uint64_t position)
{
	const struct window_pool *pool = window->pool;
	const struct layout *layout = pool->job->layout;
	const struct sink *sink = pool->sink;
	uint64_t shift = 0;

	if (sink->align_nbytes && sink->map_position)
		shift = sink->map_position(sink->context, position) % sink->align_nbytes;
	else if (sink->align_nbytes)
		shift = (sink->base_offset + position * sink->item_nbytes) % sink->align_nbytes;
	if (has_separate_output(pool)) {
		window->out = window->buffers.out;
		window->host = (char *)window->buffers.host + shift;
	} else {
		/* Elements have to be aligned as what they are. */
		if (layout_has_elements(layout) && shift % layout->element_nbytes != 0)
			shift = 0;
		window->host = window->out = (char *)window->buffers.out + shift;
	}
}

static int queue_window_merge(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const struct job *job = pool->job;

	return device_queue_merge(window->buffers.queue,
				  &(struct merge_op){
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
					  .ret = &window->result,
				  });
}

static int queue_window_decode(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const struct job *job = pool->job;

	return device_queue_decode(window->buffers.queue,
				   &(struct decode_op){
					   .layout = job->layout,
					   .sources = job->sources,
					   .n_sources = job->n_sources,
					   .elements = window->out,
					   .records = is_indirect_window(pool) ? window->host :
										 window->out,
					   .n = window->result.n,
					   .strict = job->unique,
					   .ret = &window->decoded,
				   });
}

int window_merge(struct window *window)
{
	int r = queue_window_merge(window);

	/* The longer part of the work, and how many there are is known. */
	if (r == 0 && is_indirect_window(window->pool))
		r = queue_window_decode(window);
	return r == 0 ? device_queue_record(window->buffers.queue, window->buffers.event) : r;
}

int window_wait_merged(struct window *window)
{
	return device_event_wait(window->buffers.event);
}

static int sample_first_keys(struct window *window)
{
	return device_queue_sample(window->buffers.queue,
				   &(struct sample_op){
					   .layout = window->pool->job->layout,
					   .items = window->out,
					   .n = window->result.n,
					   .stride = window->pool->sink->block_n_items,
					   .ret_keys = window->first_keys,
				   });
}

/* Pack the window into its scratch, which the merge does not need any more. */
static int pack_window(struct window *window, uint64_t *ret_nbytes)
{
	const struct window_pool *pool = window->pool;
	const struct job *job = pool->job;
	const uint32_t block_n = pool->sink->block_n_items;
	int r = device_queue_pack(window->buffers.queue,
				  &(struct pack_op){
					  .elements = window->out,
					  .n = window->result.n,
					  .element_nbytes = job->layout->element_nbytes,
					  .block_n = block_n,
					  .packed = window->buffers.scratch,
					  .ret_nbytes = window->packed_nbytes,
				  });

	if (r == 0)
		r = device_queue_synchronize(window->buffers.queue, window->buffers.event);
	*ret_nbytes = 0;
	for (uint64_t i = 0; r == 0 && i * block_n < window->result.n; i++)
		*ret_nbytes += window->packed_nbytes[i];
	return r;
}

/* Queue what brings to the host what the sink takes. */
static int download_window(struct window *window)
{
	const struct window_pool *pool = window->pool;
	const void *source = window->packed_nbytes ? window->buffers.scratch : window->out;
	uint64_t nbytes = window->result.n * pool->sink->item_nbytes;
	int r = 0;

	if (nbytes == 0)
		return 0;
	if (window->packed_nbytes)
		r = pack_window(window, &nbytes);
	if (r < 0)
		return r;
	return device_queue_copy(window->buffers.queue, window->host, source, nbytes);
}

/* What was found out about codes, as it is said of items. */
static void apply_decode_result(struct window *window)
{
	const struct decode_result *decoded = &window->decoded;

	window->result.n_counted = window->result.n;
	window->result.n_disorders = decoded->n_disorders;
	window->result.digest = decoded->digest;
	*(encoded_key_t *)window->first = decoded->first;
	*(encoded_key_t *)window->last = decoded->last;
}

int window_finish(struct window *window)
{
	const struct window_pool *pool = window->pool;
	int r = window_wait_merged(window);

	if (r == 0 && pool->sink->block_n_items && window->result.n)
		r = sample_first_keys(window);
	if (r == 0 && is_indirect_window(pool))
		r = input_check_mapped(pool->job->input);
	else if (r == 0 && needs_decode(pool))
		r = queue_window_decode(window);
	if (r == 0 && window->host != window->out && !is_indirect_window(pool))
		r = download_window(window);
	if (r == 0)
		r = device_queue_synchronize(window->buffers.queue, window->buffers.event);
	if (r == 0 && needs_decode(pool))
		apply_decode_result(window);
	return r;
}
