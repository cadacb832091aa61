/*
 * window.c - the windows of a merge that are in flight
 *
 * A window is a piece of the merged order that fits into memory (merge.c). It has four buffers:
 *
 *	in       the items of runs that are not in memory that this device reads
 *	out      the merged items
 *	scratch  scratch of the merge
 *	host     the items for the sink, if these are not in `out`: because the device has its own
 *	         memory, or because records are gathered from mapped inputs
 *
 * and a device queue on which its operations follow each other. A few windows are in flight, so
 * that reading, merging and writing overlap. With three:
 *
 *	time ->
 *	window 0   fetch merge write
 *	window 1         fetch merge write
 *	window 2               fetch merge write
 *	window 3                     fetch merge write       in the buffers of window 0
 *
 * The input buffer is needed twice: by the window's own merge, and by the fetch of the next window,
 * which copies from it what was left over after the cut. So a window is acquired with two
 * references, its writer's and the fetcher's, and is free when both are dropped. With three windows
 * or more this cannot deadlock: the fetcher holds one window and waits for another, and writers
 * only wait for the windows that they hold.
 *
 * A window gets its number when it is cut, but its position in the output is only known when all
 * windows before it are merged, because -u drops records. So finished windows take turns. In its
 * turn a window gets its position, and its first item is compared with the last item of the
 * previous window. Together with the checks inside each window, all neighbours of the output are
 * compared, whatever the device did. Then the window's slices can be discarded, because all earlier
 * windows are merged as well. Chunks that are spilled are not discarded: readers fill them again at
 * once, and the kernel would have to clear as much memory as is spilled.
 *
 * Buffers and queues outlive a merge. A sort that spills does a merge for every run, each with
 * windows of the same size. For new buffers the kernel would have to clear or pin as much memory as
 * is spilled, and cudaFree() waits for the whole device. So each device keeps them in a cache,
 * until a merge needs more.
 */
#include "src/merge/window.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "io/input/input.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"

/* --- Buffers --- */

/* Bytes of each buffer; 0: there is none. */
struct window_sizes {
	uint64_t in, out, scratch; /* device memory */
	uint64_t host;             /* host memory */
};

struct window_buffer_cache {
	struct device *device;
	struct window_sizes sizes;
	uint32_t n;
	struct window_buffers *buffers; /* n */
};

static int alloc_window_memory(const struct job *job, enum memory_kind kind, uint64_t nbytes,
			       void **ret_memory)
{
	int r = nbytes ? device_alloc(job_device(job), kind, nbytes, ret_memory) : 0;

	return r < 0 ? job_fail_window_memory(job, r, kind, nbytes) : 0;
}

static int open_buffers(const struct job *job, const struct window_sizes *sizes,
			struct window_buffers *buffers)
{
	struct device *device = job_device(job);
	int r = alloc_window_memory(job, MEMORY_DEVICE, sizes->in, &buffers->in);

	if (r == 0)
		r = alloc_window_memory(job, MEMORY_DEVICE, sizes->out, &buffers->out);
	if (r == 0)
		r = alloc_window_memory(job, MEMORY_DEVICE, sizes->scratch, &buffers->scratch);
	if (r == 0)
		r = alloc_window_memory(job, MEMORY_HOST, sizes->host, &buffers->host);
	if (r < 0)
		return r;
	r = device_queue_open(device, QUEUE_PRIORITY_NORMAL, &buffers->queue);
	if (r == 0)
		r = device_event_open(device, &buffers->event);
	return r < 0 ? job_fail_device(job, job->merge_device, r, "cannot start a merge") : 0;
}

int window_buffer_cache_open(struct window_buffer_cache **ret_cache)
{
	*ret_cache = calloc(1, sizeof **ret_cache);
	return *ret_cache ? 0 : fail(-ENOMEM, "no memory for windows");
}

/* Free all buffers, after waiting for their queues. */
static void clear_cache(struct window_buffer_cache *cache)
{
	for (uint32_t i = 0; i < cache->n; i++) {
		struct window_buffers *buffers = &cache->buffers[i];

		device_queue_close(buffers->queue);
		device_event_close(buffers->event);
		device_free(cache->device, MEMORY_HOST, buffers->host, cache->sizes.host);
		device_free(cache->device, MEMORY_DEVICE, buffers->in, cache->sizes.in);
		device_free(cache->device, MEMORY_DEVICE, buffers->out, cache->sizes.out);
		device_free(cache->device, MEMORY_DEVICE, buffers->scratch, cache->sizes.scratch);
	}
	free(cache->buffers);
	*cache = (struct window_buffer_cache){ 0 };
}

void window_buffer_cache_clear_all(const struct job *job)
{
	for (uint32_t i = 0; i < job->n_devices; i++)
		clear_cache(job->devices[i].window_buffers);
}

void window_buffer_cache_close(struct window_buffer_cache *cache)
{
	if (cache)
		clear_cache(cache);
	free(cache);
}

static bool has_buffers(const struct window_buffer_cache *cache, uint32_t n,
			const struct window_sizes *sizes)
{
	const struct window_sizes *available = &cache->sizes;

	return cache->n == n && available->in >= sizes->in && available->out >= sizes->out &&
	       available->scratch >= sizes->scratch && available->host >= sizes->host;
}

/*
 * Get the buffers of n windows, of at least these sizes, with idle queues. The cache owns them; the
 * caller may use them until its next call. Returns 0 or a negative errno (reported).
 */
static int acquire_buffers(struct window_buffer_cache *cache, const struct job *job, uint32_t n,
			   const struct window_sizes *sizes,
			   const struct window_buffers **ret_buffers)
{
	int r = 0;

	if (!has_buffers(cache, n, sizes)) {
		clear_cache(cache);
		cache->device = job_device(job);
		cache->sizes = *sizes;
		cache->buffers = calloc(n, sizeof *cache->buffers);
		if (!cache->buffers)
			r = fail(-ENOMEM, "no memory for %" PRIu32 " windows", n);
		for (; cache->n < n && r == 0; cache->n++)
			r = open_buffers(job, sizes, &cache->buffers[cache->n]);
	}
	*ret_buffers = cache->buffers;
	return r;
}

/* --- Windows --- */

/* Return whether the sink takes records that have to be decoded from merged elements. */
static bool needs_decode(const struct window_pool *pool)
{
	return pool->sink->takes_records && layout_has_elements(pool->job->layout);
}

/* Return whether the records are gathered from mapped inputs. */
static bool is_indirect_window(const struct window_pool *pool)
{
	return layout_is_indirect(pool->job->layout);
}

/* Return whether the sink takes its items from window->host instead of window->out. */
static bool has_separate_output(const struct window_pool *pool)
{
	return pool->job->plan.copies_to_device || is_indirect_window(pool);
}

/* Allocate the window's arrays in host memory. */
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
	r = acquire_buffers(job_window_buffers(pool->job), pool->job, pool->plan.n_windows, &sizes,
			    &buffers);
	for (uint32_t i = 0; i < pool->plan.n_windows && r == 0; i++) {
		pool->windows[i].pool = pool;
		pool->windows[i].buffers = buffers[i];
		r = open_arrays(&pool->windows[i]);
		if (r == 0)
			r = bounded_queue_push(pool->free_windows, &pool->windows[i]);
	}
	return r;
}

void window_pool_close(struct window_pool *pool)
{
	/* Operations may still be running: closing their queues waits for them. */
	if (pool->has_failed)
		clear_cache(job_window_buffers(pool->job));
	for (uint32_t i = 0; pool->windows && i < pool->plan.n_windows; i++) {
		struct window *window = &pool->windows[i];

		free(window->slices);
		free(window->first_keys);
		free(window->packed_nbytes);
		free(window->first);
		free(window->last);
	}
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

	position += sink->base_position;
	if (sink->align_nbytes && sink->map_position)
		shift = sink->map_position(sink->context, position) % sink->align_nbytes;
	else if (sink->align_nbytes)
		shift = (sink->base_offset + position * sink->item_nbytes) % sink->align_nbytes;
	if (has_separate_output(pool)) {
		window->out = window->buffers.out;
		window->host = (char *)window->buffers.host + shift;
	} else {
		/* Elements need the alignment of their type. */
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
					  .is_unsorted = pool->has_buckets,
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

	/* Decoding is most of the work, and result.n is known in advance. */
	if (r == 0 && is_indirect_window(window->pool))
		r = queue_window_decode(window);
	return r == 0 ? device_queue_record(window->buffers.queue, window->buffers.event) : r;
}

int window_wait_merged(struct window *window)
{
	return device_event_wait(window->buffers.event);
}

static int queue_sample(struct window *window)
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

/* Pack the window into its scratch, which the merge no longer needs. */
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

/* Queue the copy of the items, packed if the sink takes packed blocks, to the host. */
static int queue_download(struct window *window)
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

/* Set the results that the decode reports. Key-only records have no counts. */
static void apply_decode_result(struct window *window)
{
	const struct decode_result *decoded = &window->decoded;

	window->result.n_counted = window->result.n;
	window->result.n_disorders = decoded->n_disorders;
	window->result.digest = decoded->digest;
	*(encoded_key_t *)window->first = decoded->first;
	*(encoded_key_t *)window->last = decoded->last;
}

/* Queue the operations that bring the merged items to window->host as the sink takes them. */
static int queue_output(struct window *window)
{
	const struct window_pool *pool = window->pool;
	int r = 0;

	if (is_indirect_window(pool)) /* window_merge() has queued the decode */
		return input_check_mapped(pool->job->input);
	if (needs_decode(pool))
		r = queue_window_decode(window);
	return r == 0 && window->host != window->out ? queue_download(window) : r;
}

int window_finish(struct window *window)
{
	const struct window_pool *pool = window->pool;
	int r = window_wait_merged(window);

	if (r == 0 && pool->sink->block_n_items && window->result.n)
		r = queue_sample(window);
	if (r == 0)
		r = queue_output(window);
	if (r == 0)
		r = device_queue_synchronize(window->buffers.queue, window->buffers.event);
	if (r == 0 && needs_decode(pool))
		apply_decode_result(window);
	return r;
}

/* --- The order of windows in the output --- */

int window_order_open(struct window_order *order)
{
	const size_t nbytes = layout_edge_nbytes(order->job->layout);

	pthread_mutex_init(&order->lock, NULL);
	pthread_cond_init(&order->turn_changed, NULL);
	order->edges.first = calloc(1, nbytes);
	order->edges.last = calloc(1, nbytes);
	return order->edges.first && order->edges.last ? 0 : fail(-ENOMEM, "no memory for a merge");
}

void window_order_close(struct window_order *order)
{
	free(order->edges.first);
	free(order->edges.last);
	pthread_cond_destroy(&order->turn_changed);
	pthread_mutex_destroy(&order->lock);
}

/* Requires the lock. */
static void add_window_result(struct window_order *order, const struct window *window)
{
	const struct job *job = order->job;
	const struct merge_edges edges = { window->first, window->last, .has_items = true };
	struct merge_result *result = &order->result;
	const struct sort_op_result *window_result = &window->result;

	result->n_items += window_result->n;
	result->n_windows++;
	digest_add(&result->totals.dropped, window_result->dropped);
	if (window_result->n == 0 || !window->last)
		return;
	result->n_disorders += window_result->n_disorders;
	result->n_disorders += merge_edges_append(job->layout, job->unique, &order->edges, &edges);
	result->n_counted += window_result->n_counted;
	digest_add(&result->totals.written, window_result->digest);
}

int window_order_assign(struct window_order *order, const struct window *window,
			uint64_t *ret_position)
{
	SCOPED_LOCK(&order->lock);
	while (order->turn != window->number && !order->error)
		pthread_cond_wait(&order->turn_changed, &order->lock);
	if (order->error)
		return order->error;
	*ret_position = order->result.n_items;
	add_window_result(order, window);
	if (order->discards_runs)
		for (uint32_t i = 0; i < order->n_runs; i++)
			run_discard_slice(order->runs[i], &window->slices[i]);
	order->turn++;
	pthread_cond_broadcast(&order->turn_changed);
	return 0;
}

void window_order_fail(struct window_order *order, int r)
{
	SCOPED_LOCK(&order->lock);
	if (!order->error)
		order->error = r;
	pthread_cond_broadcast(&order->turn_changed);
}
