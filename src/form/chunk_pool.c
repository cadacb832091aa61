/*
 * chunk_pool - the buffers that chunks live in, and the lanes that sort them (see chunk_pool.h)
 *
 * Records narrower than elements lie at the end of the elements' room and expand in place, the
 * first record first:
 *
 *	chunk full	[          | r0 r1 r2 r3 ... ]	->  [ e0   e1   e2   e3   ... ]
 *
 * A chunk that was not filled has its records too far back for its elements to end where they end,
 * and they are moved first: on the host as they are, on a device by way of the sort's scratch.
 *
 * Elements that refer to records (layout_refers()) are made of them where they are.
 *
 * Records that are no elements (layout_has_elements()) are gathered into another buffer, the lane's
 * spare, which becomes the chunk's; what was the chunk's is the spare of the next sort, which the
 * lane does afterwards.
 */
#include "src/form/chunk_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/messages.h"

void *chunk_records(const struct chunk *chunk, uint64_t n)
{
	const struct layout *layout = chunk->pool->job->layout;

	if (!layout_has_elements(layout))
		return chunk->buffer;
	return (char *)chunk->buffer + n * (layout->element_nbytes - layout->record_nbytes);
}

static int chunk_alloc(struct chunk *chunk)
{
	const struct job *job = chunk->pool->job;

	return device_alloc(job->device, MEMORY_DEVICE, job->plan.chunk_nbytes, &chunk->buffer);
}

static void chunk_free(struct chunk *chunk)
{
	const struct job *job = chunk->pool->job;

	device_release(job->device, MEMORY_DEVICE, chunk->buffer, job->plan.chunk_nbytes);
	chunk->buffer = NULL;
}

static int lane_alloc(const struct job *job, uint64_t nbytes, void **ret_memory)
{
	return nbytes ? device_alloc(job->device, MEMORY_DEVICE, nbytes, ret_memory) : 0;
}

static int open_lanes(struct chunk_pool *pool)
{
	const struct job *job = pool->job;
	const struct plan *plan = &job->plan;
	int r = 0;

	for (uint32_t i = 0; i < plan->n_lanes; i++)
		pthread_mutex_init(&pool->lanes[i].queueing, NULL);
	for (uint32_t i = 0; i < plan->n_lanes && r == 0; i++) {
		struct sort_lane *lane = &pool->lanes[i];

		r = lane_open(job->device, LANE_PATIENT, &lane->lane);
		if (r == 0)
			r = lane_alloc(job, plan->sort_scratch_nbytes, &lane->scratch);
		if (r == 0)
			r = lane_alloc(job, plan->spare_nbytes, &lane->spare);
	}
	return r;
}

static int chunk_open(struct chunk_pool *pool, struct chunk *chunk)
{
	const struct job *job = pool->job;
	int r = mark_open(job->device, &chunk->sorted);

	chunk->pool = pool;
	if (r < 0 || !job->plan.copies)
		return r;
	r = mark_open(job->device, &chunk->filled);
	return r < 0 ? r : chunk_alloc(chunk);
}

static int open_chunks(struct chunk_pool *pool)
{
	int r = 0;

	for (uint64_t i = 0; i < pool->job->plan.n_chunks && r == 0; i++) {
		r = chunk_open(pool, &pool->chunks[i]);
		if (r == 0)
			r = ring_push(pool->free, &pool->chunks[i]);
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
	pool->chunks = calloc(plan->n_chunks, sizeof *pool->chunks);
	pool->lanes = calloc(plan->n_lanes, sizeof *pool->lanes);
	r = pool->chunks && pool->lanes ? ring_open(plan->n_chunks, &pool->free) : -ENOMEM;
	if (r == 0)
		r = ring_open(plan->n_chunks, &pool->sorting);
	if (r == 0)
		r = open_lanes(pool);
	if (r == 0)
		r = open_chunks(pool);
	if (r < 0) {
		chunk_pool_close(pool);
		return r;
	}
	*ret_pool = pool;
	return 0;
}

void chunk_pool_close_lanes(struct chunk_pool *pool)
{
	const struct job *job = pool->job;

	for (uint32_t i = 0; pool->lanes && i < job->plan.n_lanes; i++) {
		lane_close(pool->lanes[i].lane);
		device_release(job->device, MEMORY_DEVICE, pool->lanes[i].scratch,
			       job->plan.sort_scratch_nbytes);
		device_release(job->device, MEMORY_DEVICE, pool->lanes[i].spare,
			       job->plan.spare_nbytes);
		pthread_mutex_destroy(&pool->lanes[i].queueing);
	}
	free(pool->lanes);
	pool->lanes = NULL;
}

static void chunk_close(struct chunk *chunk)
{
	chunk_free(chunk);
	mark_close(chunk->sorted);
	mark_close(chunk->filled);
}

void chunk_pool_close(struct chunk_pool *pool)
{
	if (!pool)
		return;
	chunk_pool_close_lanes(pool);
	for (uint64_t i = 0; pool->chunks && i < pool->job->plan.n_chunks; i++)
		if (pool->chunks[i].pool)
			chunk_close(&pool->chunks[i]);
	free(pool->chunks);
	ring_close(pool->free);
	ring_close(pool->sorting);
	free(pool);
}

int chunk_pool_take(struct chunk_pool *pool, struct chunk **ret_chunk)
{
	void *item;
	struct chunk *chunk;
	int r = ring_pop(pool->free, &item);

	if (r < 0)
		return r;
	chunk = item;
	if (!chunk->buffer)
		r = chunk_alloc(chunk);
	if (r < 0)
		return fail_hint(r, HINT_LESS_MEMORY, 0,
				 "no memory for a chunk of %" PRIu64 " bytes: %m",
				 pool->job->plan.chunk_nbytes);
	chunk->n = 0;
	chunk->ledger = (struct ledger){ 0 };
	*ret_chunk = chunk;
	return 0;
}

void chunk_pool_put(struct chunk *chunk)
{
	ring_push(chunk->pool->free, chunk);
}

/* Records that lie too far back come to where they can expand in place, or to the scratch. */
static int move_records(struct chunk *chunk, const struct sort_lane *lane, uint64_t room,
			const void **ret_records)
{
	const struct job *job = chunk->pool->job;
	const size_t nbytes = chunk->n * job->layout->record_nbytes;
	void *records = chunk_records(chunk, room), *place = chunk_records(chunk, chunk->n);

	*ret_records = place;
	if (records == place)
		return 0;
	if (!job->plan.copies) {
		memmove(place, records, nbytes);
		return 0;
	}
	*ret_records = lane->scratch;
	return lane_copy(lane->lane, lane->scratch, records, nbytes);
}

static int queue_encode(struct chunk *chunk, const struct sort_lane *lane, uint64_t room)
{
	const struct job *job = chunk->pool->job;
	const void *records;
	int r = move_records(chunk, lane, room, &records);

	return r < 0 ? r :
		       lane_encode(lane->lane, &(struct encode_op){
						       .layout = job->layout,
						       .records = records,
						       .elements = chunk->buffer,
						       .n = chunk->n,
						       .ret_digest = &chunk->ledger.read,
					       });
}

/* Of each source, what of it is in the chunk. */
static int queue_refer(struct chunk *chunk, const struct sort_lane *lane)
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
			r = lane_encode(lane->lane,
					&(struct encode_op){
						.layout = layout,
						.first_number = begin,
						.records = (const char *)source.elements +
							   (begin - start) * layout->record_nbytes,
						.elements =
							(char *)chunk->buffer +
							(begin - first) * layout->element_nbytes,
						.n = end - begin,
						.ret_digest = &chunk->ledger.read,
					});
		start = source_end;
	}
	return r;
}

/* Queue what makes elements, where these are sorted. */
static int queue_elements(struct chunk *chunk, const struct sort_lane *lane, uint64_t room)
{
	const struct layout *layout = chunk->pool->job->layout;

	if (!layout_has_elements(layout))
		return 0;
	return layout_refers(layout) ? queue_refer(chunk, lane) : queue_encode(chunk, lane, room);
}

/* Where a lane has a spare buffer, the chunk is sorted from its own into that one. */
static int queue_sort_items(struct chunk *chunk, struct sort_lane *lane)
{
	const struct job *job = chunk->pool->job;
	void *records = chunk->buffer;

	if (lane->spare) {
		chunk->buffer = lane->spare;
		lane->spare = records;
	}
	return lane_sort(lane->lane, &(struct sort_op){
					     .layout = job->layout,
					     .records = records,
					     .items = chunk->buffer,
					     .n = chunk->n,
					     .position = job->first_record +
							 chunk->number * job->plan.chunk_records,
					     .unique = job->unique,
					     .limit = job->limit,
					     .scratch = lane->scratch,
					     .ret_read = &chunk->ledger.read,
					     .ret = &chunk->arranged,
				     });
}

static int queue_sort(struct chunk *chunk, struct sort_lane *lane, uint64_t room)
{
	int r = 0;

	if (chunk->filled)
		r = lane_follow(lane->lane, chunk->filled);
	if (r == 0)
		r = queue_elements(chunk, lane, room);
	if (r == 0)
		r = queue_sort_items(chunk, lane);
	return r == 0 ? lane_mark(lane->lane, chunk->sorted) : r;
}

int chunk_pool_sort(struct chunk *chunk, uint64_t room)
{
	struct chunk_pool *pool = chunk->pool;
	const struct job *job = pool->job;
	struct sort_lane *lane = &pool->lanes[chunk->number % job->plan.n_lanes];
	int r;

	pthread_mutex_lock(&lane->queueing);
	r = queue_sort(chunk, lane, room);
	pthread_mutex_unlock(&lane->queueing);
	if (r < 0)
		return fail(r, "cannot sort a chunk: %m");
	return ring_push(pool->sorting, chunk);
}

int chunk_pool_collect(struct chunk *chunk)
{
	const struct arranged *found = &chunk->arranged;
	int r = mark_wait(chunk->sorted);

	if (r < 0)
		return r;
	if (found->n_disorders)
		return fail(-EIO,
			    "internal error: %" PRIu64 " records of a chunk are out of order; "
			    "the output was not written",
			    found->n_disorders);
	chunk->n = found->n;
	chunk->ledger.dropped = found->dropped;
	return 0;
}

void chunk_pool_fail(struct chunk_pool *pool, int r)
{
	ring_fail(pool->free, r);
	ring_fail(pool->sorting, r);
}

uint64_t chunk_pool_trim(struct chunk_pool *pool)
{
	uint64_t nbytes = 0;
	void *chunk;

	ring_finish(pool->free);
	while (ring_pop(pool->free, &chunk) == 0)
		chunk_free(chunk);
	for (uint64_t i = 0; i < pool->job->plan.n_chunks; i++)
		nbytes += pool->chunks[i].buffer ? pool->job->plan.chunk_nbytes : 0;
	return nbytes;
}
