/*
 * chunk_pool.c - the buffers of chunks, and the queues that sort them
 *
 * Records that are narrower than elements lie at the end of the room for elements, and expand in
 * place, the first record first:
 *
 *	full chunk	[          | r0 r1 r2 r3 ... ]	->  [ e0   e1   e2   e3   ... ]
 *
 * In a chunk that is not full, records begin too early for that. They are moved first: in host
 * memory directly, in device memory by way of the scratch.
 *
 * Elements of an indirect layout are encoded from the records where these are mapped.
 *
 * Items (layout_has_elements() is false) are sorted from the chunk's buffer into another one, the
 * queue's output buffer. The two buffers are exchanged: the chunk's old buffer is the output of the
 * next sort on that queue. Elements are distributed in the same way.
 */
#include "src/rungen/chunk_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/thread.h"

void *chunk_records(const struct chunk *chunk, uint64_t n)
{
	const struct layout *layout = chunk->pool->job->layout;

	if (!layout_has_elements(layout))
		return chunk->buffer;
	return (char *)chunk->buffer + n * (layout->element_nbytes - layout->record_nbytes);
}

static struct device *chunk_device(const struct chunk *chunk)
{
	return chunk->pool->job->devices[chunk->device_index].device;
}

static int chunk_alloc(struct chunk *chunk)
{
	return device_alloc(chunk_device(chunk), MEMORY_DEVICE, chunk->pool->job->plan.chunk_nbytes,
			    &chunk->buffer);
}

static void chunk_free(struct chunk *chunk)
{
	device_free(chunk_device(chunk), MEMORY_DEVICE, chunk->buffer,
		    chunk->pool->job->plan.chunk_nbytes);
	chunk->buffer = NULL;
}

static int alloc_queue_memory(struct device *device, uint64_t nbytes, void **ret_memory)
{
	return nbytes ? device_alloc(device, MEMORY_DEVICE, nbytes, ret_memory) : 0;
}

static uint32_t count_sort_queues(const struct job *job)
{
	return job->n_devices * job->plan.n_queues;
}

static struct device *sort_queue_device(const struct job *job, uint32_t i)
{
	return job->devices[i / job->plan.n_queues].device;
}

static int open_sort_queues(struct chunk_pool *pool)
{
	const struct job *job = pool->job;
	const struct plan *plan = &job->plan;
	const uint32_t n = count_sort_queues(job);
	int r = 0;

	for (uint32_t i = 0; i < n; i++)
		pthread_mutex_init(&pool->sort_queues[i].lock, NULL);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct device *device = sort_queue_device(job, i);
		struct sort_queue *sort_queue = &pool->sort_queues[i];

		r = device_queue_open(device, QUEUE_PRIORITY_LOW, &sort_queue->queue);
		if (r == 0)
			r = alloc_queue_memory(device, plan->sort_scratch_nbytes,
					       &sort_queue->scratch);
		if (r == 0)
			r = alloc_queue_memory(device, plan->sort_output_nbytes,
					       &sort_queue->output);
	}
	return r;
}

/* Append the chunk to the free list of its device, and push a token for it. */
static int push_free_chunk(struct chunk *chunk)
{
	struct chunk_pool *pool = chunk->pool;
	struct chunk_list *list = &pool->free_lists[chunk->device_index];

	pthread_mutex_lock(&pool->lock);
	list->n_pending -= chunk->is_pending;
	chunk->is_pending = false;
	chunk->next = NULL;
	*list->last = chunk;
	list->last = &chunk->next;
	pthread_mutex_unlock(&pool->lock);
	return bounded_queue_push(pool->free_tokens, pool);
}

/* Requires the lock. Of the devices with a free chunk, find the one with the fewest to sort. */
static struct chunk_list *find_free_list(const struct chunk_pool *pool)
{
	struct chunk_list *best = NULL;

	for (uint32_t i = 0; i < pool->job->n_devices; i++) {
		struct chunk_list *list = &pool->free_lists[i];

		if (list->first && (!best || list->n_pending < best->n_pending))
			best = list;
	}
	return best;
}

/* Take a chunk. The caller has popped a token, so there is one. */
static struct chunk *pop_free_chunk(struct chunk_pool *pool)
{
	struct chunk_list *list;
	struct chunk *chunk;

	SCOPED_LOCK(&pool->lock);
	list = find_free_list(pool);
	chunk = list->first;
	list->first = chunk->next;
	if (!list->first)
		list->last = &list->first;
	list->n_pending++;
	chunk->is_pending = true;
	return chunk;
}

static int chunk_open(struct chunk_pool *pool, struct chunk *chunk, uint32_t device_index)
{
	const struct job *job = pool->job;
	struct device *device = job->devices[device_index].device;
	int r;

	chunk->pool = pool;
	chunk->device_index = device_index;
	r = device_event_open(device, &chunk->sorted_event);
	if (r < 0 || !job->plan.copies_to_device)
		return r;
	r = device_event_open(device, &chunk->filled_event);
	return r < 0 ? r : chunk_alloc(chunk);
}

/* Give each device the same number of chunks, or one more. */
static int open_chunks(struct chunk_pool *pool)
{
	const uint32_t n_devices = pool->job->n_devices;
	int r = 0;

	for (uint32_t i = 0; i < n_devices; i++)
		pool->free_lists[i].last = &pool->free_lists[i].first;
	for (uint64_t i = 0; i < pool->job->plan.n_chunks && r == 0; i++) {
		r = chunk_open(pool, &pool->chunks[i], (uint32_t)(i % n_devices));
		if (r == 0)
			r = push_free_chunk(&pool->chunks[i]);
	}
	return r;
}

int chunk_pool_open(const struct job *job, struct chunk_pool **ret_pool)
{
	const struct plan *plan = &job->plan;
	struct chunk_pool *pool = calloc(1, sizeof *pool);
	int r;

	if (!pool)
		return -ENOMEM;
	pool->job = job;
	pthread_mutex_init(&pool->lock, NULL);
	pool->chunks = calloc(plan->n_chunks, sizeof *pool->chunks);
	pool->sort_queues = calloc(count_sort_queues(job), sizeof *pool->sort_queues);
	pool->free_lists = calloc(job->n_devices, sizeof *pool->free_lists);
	r = pool->chunks && pool->sort_queues && pool->free_lists ? 0 : -ENOMEM;
	if (r == 0)
		r = bounded_queue_open(plan->n_chunks, &pool->free_tokens);
	if (r == 0)
		r = bounded_queue_open(plan->n_chunks, &pool->sorting_chunks);
	if (r == 0)
		r = open_sort_queues(pool);
	if (r == 0)
		r = open_chunks(pool);
	if (r < 0) {
		chunk_pool_close(pool);
		return r;
	}
	*ret_pool = pool;
	return 0;
}

void chunk_pool_close_queues(struct chunk_pool *pool)
{
	const struct job *job = pool->job;

	for (uint32_t i = 0; pool->sort_queues && i < count_sort_queues(job); i++) {
		struct device *device = sort_queue_device(job, i);

		device_queue_close(pool->sort_queues[i].queue);
		device_free(device, MEMORY_DEVICE, pool->sort_queues[i].scratch,
			    job->plan.sort_scratch_nbytes);
		device_free(device, MEMORY_DEVICE, pool->sort_queues[i].output,
			    job->plan.sort_output_nbytes);
		pthread_mutex_destroy(&pool->sort_queues[i].lock);
	}
	free(pool->sort_queues);
	pool->sort_queues = NULL;
}

void chunk_pool_close(struct chunk_pool *pool)
{
	if (!pool)
		return;
	chunk_pool_close_queues(pool);
	for (uint64_t i = 0; pool->chunks && i < pool->job->plan.n_chunks; i++)
		if (pool->chunks[i].pool) {
			chunk_free(&pool->chunks[i]);
			free(pool->chunks[i].bucket_starts);
			device_event_close(pool->chunks[i].sorted_event);
			device_event_close(pool->chunks[i].filled_event);
		}
	free(pool->chunks);
	free(pool->free_lists);
	free(pool->splitters);
	bounded_queue_close(pool->free_tokens);
	bounded_queue_close(pool->sorting_chunks);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int chunk_pool_acquire(struct chunk_pool *pool, struct chunk **ret_chunk)
{
	void *token;
	struct chunk *chunk;
	int r = bounded_queue_pop(pool->free_tokens, &token);

	if (r < 0)
		return r;
	chunk = pop_free_chunk(pool);
	if (!chunk->buffer)
		r = chunk_alloc(chunk);
	if (r < 0)
		return fail(r, "no memory for a chunk of %" PRIu64 " bytes: %m; try a smaller -S",
			    pool->job->plan.chunk_nbytes);
	chunk->n = 0;
	chunk->totals = (struct record_totals){ 0 };
	*ret_chunk = chunk;
	return 0;
}

void chunk_pool_release(struct chunk *chunk)
{
	push_free_chunk(chunk);
}

/* Move records that begin too early to where they can expand in place, or to the scratch. */
static int move_records(struct chunk *chunk, const struct sort_queue *sort_queue, uint64_t capacity,
			const void **ret_records)
{
	const struct job *job = chunk->pool->job;
	const size_t nbytes = chunk->n * job->layout->record_nbytes;
	void *records = chunk_records(chunk, capacity),
	     *destination = chunk_records(chunk, chunk->n);

	*ret_records = destination;
	if (records == destination)
		return 0;
	if (!job->plan.copies_to_device) {
		memmove(destination, records, nbytes);
		return 0;
	}
	*ret_records = sort_queue->scratch;
	return device_queue_copy(sort_queue->queue, sort_queue->scratch, records, nbytes);
}

static int queue_encode(struct chunk *chunk, const struct sort_queue *sort_queue, uint64_t capacity)
{
	const struct job *job = chunk->pool->job;
	const void *records;
	int r = move_records(chunk, sort_queue, capacity, &records);

	return r < 0 ? r :
		       device_queue_encode(sort_queue->queue,
					   &(struct encode_op){
						   .layout = job->layout,
						   .records = records,
						   .elements = chunk->buffer,
						   .n = chunk->n,
						   .ret_digest = &chunk->totals.read,
					   });
}

/* For each mapped source, encode the part that belongs to the chunk. */
static int queue_encode_indirect(struct chunk *chunk, const struct sort_queue *sort_queue)
{
	const struct job *job = chunk->pool->job;
	const struct layout *layout = job->layout;
	const uint64_t first = chunk->number * job->plan.chunk_records;
	uint64_t start = 0; /* number of the source's first record */
	int r = 0;

	for (uint32_t i = 0; i < job->n_sources && r == 0; i++) {
		const struct slice source = job->sources[i];
		const uint64_t begin = start > first ? start : first;
		const uint64_t source_end = start + source.n, chunk_end = first + chunk->n;
		const uint64_t end = source_end < chunk_end ? source_end : chunk_end;

		if (begin < end)
			r = device_queue_encode(
				sort_queue->queue,
				&(struct encode_op){
					.layout = layout,
					.first_number = begin,
					.records = (const char *)source.elements +
						   (begin - start) * layout->record_nbytes,
					.elements = (char *)chunk->buffer +
						    (begin - first) * layout->element_nbytes,
					.n = end - begin,
					.ret_digest = &chunk->totals.read,
				});
		start = source_end;
	}
	return r;
}

/* Queue the encoding of records, if the layout has elements. */
static int queue_elements(struct chunk *chunk, const struct sort_queue *sort_queue,
			  uint64_t capacity)
{
	const struct layout *layout = chunk->pool->job->layout;

	if (!layout_has_elements(layout))
		return 0;
	return layout_is_indirect(layout) ? queue_encode_indirect(chunk, sort_queue) :
					    queue_encode(chunk, sort_queue, capacity);
}

/* Give the chunk the output buffer of the queue in exchange for its own. Returns the latter. */
static void *exchange_buffer(struct chunk *chunk, struct sort_queue *sort_queue)
{
	void *buffer = chunk->buffer;

	chunk->buffer = sort_queue->output;
	sort_queue->output = buffer;
	return buffer;
}

/* Queue the distribution of the chunk's elements among buckets. */
static int queue_distribute(struct chunk *chunk, struct sort_queue *sort_queue)
{
	const struct job *job = chunk->pool->job;
	const struct bucket_splitters *splitters = chunk->pool->splitters;
	const void *elements = exchange_buffer(chunk, sort_queue);

	if (!chunk->bucket_starts)
		chunk->bucket_starts = malloc((splitters->n + 1) * sizeof *chunk->bucket_starts);
	if (!chunk->bucket_starts)
		return -ENOMEM;
	chunk->sort_result = (struct sort_op_result){ .n = chunk->n };
	return device_queue_distribute(sort_queue->queue,
				       &(struct distribute_op){
					       .layout = job->layout,
					       .splitters = splitters,
					       .elements = elements,
					       .out = chunk->buffer,
					       .n = chunk->n,
					       .scratch = sort_queue->scratch,
					       .ret_starts = chunk->bucket_starts,
				       });
}

/* Queue the sort, into the queue's output buffer unless elements are sorted in place. */
static int queue_sort_items(struct chunk *chunk, struct sort_queue *sort_queue)
{
	const struct job *job = chunk->pool->job;
	const void *records = layout_has_elements(job->layout) ? chunk->buffer :
								 exchange_buffer(chunk, sort_queue);

	return device_queue_sort(
		sort_queue->queue,
		&(struct sort_op){
			.layout = job->layout,
			.records = records,
			.items = chunk->buffer,
			.n = chunk->n,
			.position = job->first_record + chunk->number * job->plan.chunk_records,
			.unique = job->unique,
			.limit = job->limit,
			.scratch = sort_queue->scratch,
			.ret_input_digest = &chunk->totals.read,
			.ret = &chunk->sort_result,
		});
}

static int queue_sort(struct chunk *chunk, struct sort_queue *sort_queue, uint64_t capacity)
{
	int r = 0;

	if (chunk->filled_event)
		r = device_queue_wait_event(sort_queue->queue, chunk->filled_event);
	if (r == 0)
		r = queue_elements(chunk, sort_queue, capacity);
	if (r == 0)
		r = chunk->pool->splitters ? queue_distribute(chunk, sort_queue) :
					     queue_sort_items(chunk, sort_queue);
	return r == 0 ? device_queue_record(sort_queue->queue, chunk->sorted_event) : r;
}

/* Chunks of a device use its queues in turn. */
static struct sort_queue *choose_sort_queue(const struct chunk *chunk)
{
	const struct job *job = chunk->pool->job;
	const uint64_t turn = chunk->number / job->n_devices;

	return &chunk->pool->sort_queues[chunk->device_index * job->plan.n_queues +
					 turn % job->plan.n_queues];
}

int chunk_pool_sort(struct chunk *chunk, uint64_t capacity)
{
	struct chunk_pool *pool = chunk->pool;
	struct sort_queue *sort_queue = choose_sort_queue(chunk);
	int r;

	pthread_mutex_lock(&sort_queue->lock);
	r = queue_sort(chunk, sort_queue, capacity);
	pthread_mutex_unlock(&sort_queue->lock);
	if (r < 0)
		return job_fail_device(pool->job, chunk->device_index, r, "cannot sort a chunk");
	return bounded_queue_push(pool->sorting_chunks, chunk);
}

int chunk_pool_sort_sample(struct chunk_pool *pool, void *elements, uint64_t n)
{
	const struct layout *layout = pool->job->layout;
	struct device *device = sort_queue_device(pool->job, 0);
	struct device_queue *queue = pool->sort_queues[0].queue;
	const size_t scratch_nbytes = device_sort_scratch_nbytes(device, layout, n);
	struct sort_op_result result;
	void *scratch = NULL;
	int r = alloc_queue_memory(device, scratch_nbytes, &scratch);

	if (r == 0)
		r = device_queue_sort(queue, &(struct sort_op){ .layout = layout,
								.items = elements,
								.n = n,
								.limit = UINT64_MAX,
								.scratch = scratch,
								.ret = &result });
	if (r == 0)
		r = device_queue_synchronize(queue, pool->chunks[0].sorted_event);
	device_free(device, MEMORY_DEVICE, scratch, scratch_nbytes);
	return r < 0 ? job_fail_device(pool->job, 0, r, "cannot sort a sample") : 0;
}

int chunk_pool_sort_buckets(struct chunk_pool *pool)
{
	const uint64_t n_chunks = pool->job->plan.n_chunks;
	int r = 0;

	for (uint64_t i = 0; i < n_chunks && r == 0; i++) {
		struct chunk *chunk = &pool->chunks[i];
		struct sort_queue *sort_queue = choose_sort_queue(chunk);

		if (chunk->bucket_starts)
			r = queue_sort_items(chunk, sort_queue);
		if (r == 0)
			r = device_queue_record(sort_queue->queue, chunk->sorted_event);
	}
	for (uint64_t i = 0; i < n_chunks && r == 0; i++)
		r = device_event_wait(pool->chunks[i].sorted_event);
	return r < 0 ? job_fail_device(pool->job, 0, r, "cannot sort a chunk") : 0;
}

/* Count one chunk less that the device has to sort (find_free_list()). */
static void clear_pending(struct chunk *chunk)
{
	struct chunk_pool *pool = chunk->pool;

	SCOPED_LOCK(&pool->lock);
	pool->free_lists[chunk->device_index].n_pending -= chunk->is_pending;
	chunk->is_pending = false;
}

int chunk_pool_collect(struct chunk *chunk)
{
	const struct job *job = chunk->pool->job;
	const struct sort_op_result *result = &chunk->sort_result;
	int r = device_event_wait(chunk->sorted_event);

	clear_pending(chunk);
	if (r < 0)
		return r;
	if (result->n_disorders)
		return fail(-EIO,
			    "internal error: %" PRIu64 " records of a chunk are out of order; "
			    "the output was not written",
			    result->n_disorders);
	stats_add_device(job->stats, job->devices[chunk->device_index].stats_index,
			 &(struct device_totals){
				 .n_chunks = 1,
				 .sorted_nbytes =
					 chunk->totals.read.n_records * job->layout->record_nbytes,
			 });
	chunk->n = result->n;
	chunk->totals.dropped = result->dropped;
	return 0;
}

void chunk_pool_fail(struct chunk_pool *pool, int r)
{
	bounded_queue_fail(pool->free_tokens, r);
	bounded_queue_fail(pool->sorting_chunks, r);
}

uint64_t chunk_pool_trim(struct chunk_pool *pool)
{
	const struct job *job = pool->job;
	uint64_t max_nbytes = 0;

	bounded_queue_finish(pool->free_tokens);
	for (uint32_t device_index = 0; device_index < job->n_devices; device_index++) {
		uint64_t nbytes = 0;

		for (struct chunk *chunk = pool->free_lists[device_index].first; chunk;
		     chunk = chunk->next)
			chunk_free(chunk);
		for (uint64_t i = device_index; i < job->plan.n_chunks; i += job->n_devices)
			nbytes += pool->chunks[i].buffer ? job->plan.chunk_nbytes : 0;
		max_nbytes = nbytes > max_nbytes ? nbytes : max_nbytes;
	}
	return max_nbytes;
}
