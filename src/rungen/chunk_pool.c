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
#include "src/rungen/chunk_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"

void *chunk_records(const struct chunk *chunk, uint64_t n)
{
	const struct layout *layout = chunk->pool->job->layout;

	if (!layout_has_elements(layout))
		return chunk->buffer;
	return (char *)chunk->buffer + n * (layout->element_nbytes - layout->record_nbytes);
}

static struct device *chunk_device(const struct chunk *chunk)
{
	return chunk->pool->job->workers[chunk->worker].device;
}

static int chunk_alloc(struct chunk *chunk)
{
	return device_alloc(chunk_device(chunk), MEMORY_DEVICE, chunk->pool->job->plan.chunk_nbytes,
			    &chunk->buffer);
}

static void chunk_free(struct chunk *chunk)
{
	device_release(chunk_device(chunk), MEMORY_DEVICE, chunk->buffer,
		       chunk->pool->job->plan.chunk_nbytes);
	chunk->buffer = NULL;
}

static int lane_alloc(struct device *device, uint64_t nbytes, void **ret_memory)
{
	return nbytes ? device_alloc(device, MEMORY_DEVICE, nbytes, ret_memory) : 0;
}

/* Of all workers. */
static uint32_t count_lanes(const struct job *job)
{
	return job->n_workers * job->plan.n_lanes;
}

static struct device *lane_device(const struct job *job, uint32_t i)
{
	return job->workers[i / job->plan.n_lanes].device;
}

static int open_lanes(struct chunk_pool *pool)
{
	const struct job *job = pool->job;
	const struct plan *plan = &job->plan;
	const uint32_t n = count_lanes(job);
	int r = 0;

	for (uint32_t i = 0; i < n; i++)
		pthread_mutex_init(&pool->lanes[i].queueing, NULL);
	for (uint32_t i = 0; i < n && r == 0; i++) {
		struct device *device = lane_device(job, i);
		struct sort_lane *lane = &pool->lanes[i];

		r = lane_open(device, LANE_PATIENT, &lane->lane);
		if (r == 0)
			r = lane_alloc(device, plan->sort_scratch_nbytes, &lane->scratch);
		if (r == 0)
			r = lane_alloc(device, plan->spare_nbytes, &lane->spare);
	}
	return r;
}

/* Behind those that are on its worker's shelf already; and a token for it. */
static int shelve(struct chunk *chunk)
{
	struct chunk_pool *pool = chunk->pool;
	struct shelf *shelf = &pool->shelves[chunk->worker];

	pthread_mutex_lock(&pool->lock);
	shelf->n_pending -= chunk->is_pending;
	chunk->is_pending = false;
	chunk->next = NULL;
	*shelf->last = chunk;
	shelf->last = &chunk->next;
	pthread_mutex_unlock(&pool->lock);
	return ring_push(pool->free, pool);
}

/* Under the lock: of those with a free chunk, the one that has the fewest to sort. */
static struct shelf *find_shelf(const struct chunk_pool *pool)
{
	struct shelf *found = NULL;

	for (uint32_t i = 0; i < pool->job->n_workers; i++) {
		struct shelf *shelf = &pool->shelves[i];

		if (shelf->first && (!found || shelf->n_pending < found->n_pending))
			found = shelf;
	}
	return found;
}

/* There is one on some shelf: its token was had. */
static struct chunk *take_off_shelf(struct chunk_pool *pool)
{
	struct shelf *shelf;
	struct chunk *chunk;

	pthread_mutex_lock(&pool->lock);
	shelf = find_shelf(pool);
	chunk = shelf->first;
	shelf->first = chunk->next;
	if (!shelf->first)
		shelf->last = &shelf->first;
	shelf->n_pending++;
	chunk->is_pending = true;
	pthread_mutex_unlock(&pool->lock);
	return chunk;
}

static int chunk_open(struct chunk_pool *pool, struct chunk *chunk, uint32_t worker)
{
	const struct job *job = pool->job;
	struct device *device = job->workers[worker].device;
	int r;

	chunk->pool = pool;
	chunk->worker = worker;
	r = mark_open(device, &chunk->sorted);
	if (r < 0 || !job->plan.copies)
		return r;
	r = mark_open(device, &chunk->filled);
	return r < 0 ? r : chunk_alloc(chunk);
}

/* Each worker has as many as any other, or one more. */
static int open_chunks(struct chunk_pool *pool)
{
	const uint32_t n_workers = pool->job->n_workers;
	int r = 0;

	for (uint32_t i = 0; i < n_workers; i++)
		pool->shelves[i].last = &pool->shelves[i].first;
	for (uint64_t i = 0; i < pool->job->plan.n_chunks && r == 0; i++) {
		r = chunk_open(pool, &pool->chunks[i], (uint32_t)(i % n_workers));
		if (r == 0)
			r = shelve(&pool->chunks[i]);
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
	pool->lanes = calloc(count_lanes(job), sizeof *pool->lanes);
	pool->shelves = calloc(job->n_workers, sizeof *pool->shelves);
	r = pool->chunks && pool->lanes && pool->shelves ? 0 : -ENOMEM;
	if (r == 0)
		r = ring_open(plan->n_chunks, &pool->free);
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

	for (uint32_t i = 0; pool->lanes && i < count_lanes(job); i++) {
		struct device *device = lane_device(job, i);

		lane_close(pool->lanes[i].lane);
		device_release(device, MEMORY_DEVICE, pool->lanes[i].scratch,
			       job->plan.sort_scratch_nbytes);
		device_release(device, MEMORY_DEVICE, pool->lanes[i].spare, job->plan.spare_nbytes);
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
	free(pool->shelves);
	ring_close(pool->free);
	ring_close(pool->sorting);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

int chunk_pool_take(struct chunk_pool *pool, struct chunk **ret_chunk)
{
	void *token;
	struct chunk *chunk;
	int r = ring_pop(pool->free, &token);

	if (r < 0)
		return r;
	chunk = take_off_shelf(pool);
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
	shelve(chunk);
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

/* In turn, as the worker's chunks come. */
static struct sort_lane *lane_of(const struct chunk *chunk)
{
	const struct job *job = chunk->pool->job;
	const uint64_t turn = chunk->number / job->n_workers;

	return &chunk->pool->lanes[chunk->worker * job->plan.n_lanes + turn % job->plan.n_lanes];
}

int chunk_pool_sort(struct chunk *chunk, uint64_t room)
{
	struct chunk_pool *pool = chunk->pool;
	struct sort_lane *lane = lane_of(chunk);
	int r;

	pthread_mutex_lock(&lane->queueing);
	r = queue_sort(chunk, lane, room);
	pthread_mutex_unlock(&lane->queueing);
	if (r < 0)
		return job_fail_device(pool->job, chunk->worker, r, "cannot sort a chunk");
	return ring_push(pool->sorting, chunk);
}

/* Its worker has one less to sort. */
static void note_sorted(struct chunk *chunk)
{
	struct chunk_pool *pool = chunk->pool;

	pthread_mutex_lock(&pool->lock);
	pool->shelves[chunk->worker].n_pending -= chunk->is_pending;
	chunk->is_pending = false;
	pthread_mutex_unlock(&pool->lock);
}

int chunk_pool_collect(struct chunk *chunk)
{
	const struct job *job = chunk->pool->job;
	const struct arranged *found = &chunk->arranged;
	int r = mark_wait(chunk->sorted);

	note_sorted(chunk);
	if (r < 0)
		return r;
	if (found->n_disorders)
		return fail(-EIO,
			    "internal error: %" PRIu64 " records of a chunk are out of order; "
			    "the output was not written",
			    found->n_disorders);
	stats_add_device(job->stats, job->workers[chunk->worker].place,
			 &(struct device_totals){
				 .n_chunks = 1,
				 .sorted_nbytes =
					 chunk->ledger.read.n_records * job->layout->record_nbytes,
			 });
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
	const struct job *job = pool->job;
	uint64_t most_nbytes = 0;

	ring_finish(pool->free);
	for (uint32_t worker = 0; worker < job->n_workers; worker++) {
		uint64_t nbytes = 0;

		for (struct chunk *chunk = pool->shelves[worker].first; chunk; chunk = chunk->next)
			chunk_free(chunk);
		for (uint64_t i = worker; i < job->plan.n_chunks; i += job->n_workers)
			nbytes += pool->chunks[i].buffer ? job->plan.chunk_nbytes : 0;
		most_nbytes = nbytes > most_nbytes ? nbytes : most_nbytes;
	}
	return most_nbytes;
}
