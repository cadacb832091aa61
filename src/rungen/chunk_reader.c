/*
 * chunk_reader - the input into chunks, by several reader threads (see chunk_reader.h)
 *
 * Who reads what. input_read() decides, when it is called, which part of the input the caller gets.
 * A reader that takes whole chunks numbers its chunk afterwards. Parts need their chunk to be there
 * before they are read: so each reader first claims a part, by counting, and the one that claims a
 * chunk's first part gets the chunk from the pool. The part that it then reads may be another one,
 * but it is one that was claimed: as many have been claimed as read.
 *
 * When the size of the input is known, no reader waits for a chunk to read an end that it knows of:
 * there may be no free chunk any more. When it is unknown, the end shows as a short part, and the
 * chunk that it falls in is full with what it has.
 */
#include "src/rungen/chunk_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "io/input/input_mapped.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

struct slot {
	struct device *device; /* that it is near, though it is for all */
	void *host;            /* pinned, plan.slot_nbytes */
	struct mark **copied;  /* its last copy to each worker's device */
	struct mark *last;     /* of these, that of its last copy to any */
};

struct fill {
	const struct job *job;
	struct chunk_pool *pool;
	uint64_t start;        /* in the input: where chunk 0 begins */
	uint64_t chunk_nbytes; /* of input */
	uint64_t part_nbytes;  /* what a reader reads at a time: a chunk, or a slot */

	/* If it copies to the device: */
	struct slot *slots; /* plan.n_slots */
	struct ring *free_slots;
	struct lane **uploads; /* to each worker's device */

	/* Held while a chunk is waited for: whoever claims next needs it too. */
	pthread_mutex_t claiming;
	uint64_t n_claimed; /* parts; under `claiming` */

	pthread_mutex_t lock;  /* guards all below */
	uint64_t end;          /* of the input; UINT64_MAX: unknown */
	struct chunk *filling; /* have been claimed and are not full */
	uint32_t n_reading;    /* readers that have not ended */
	int error;             /* the first */

	uint32_t n_readers;
	pthread_t readers[];
};

/* Is there a part left to claim? Under `claiming`. */
static bool more_to_claim(struct fill *fill)
{
	bool more;

	pthread_mutex_lock(&fill->lock);
	more = fill->start + fill->n_claimed * fill->part_nbytes < fill->end;
	pthread_mutex_unlock(&fill->lock);
	return more;
}

/* The input ends at `end`. */
static void note_end(struct fill *fill, uint64_t end)
{
	pthread_mutex_lock(&fill->lock);
	if (end < fill->end)
		fill->end = end;
	pthread_mutex_unlock(&fill->lock);
}

/* --- In memory of the host: straight into chunks --- */

static int claim_chunk(struct fill *fill, struct chunk **ret_chunk)
{
	bool more;
	int r;

	pthread_mutex_lock(&fill->claiming);
	more = more_to_claim(fill);
	fill->n_claimed += more;
	pthread_mutex_unlock(&fill->claiming);
	if (!more)
		return 0;
	r = chunk_pool_take(fill->pool, ret_chunk);
	return r < 0 ? r : 1;
}

/* The next part of the input: into the chunk, or, if the chunk only refers to it, where it is. */
static int read_part_of(struct fill *fill, struct chunk *chunk, uint64_t *ret_position,
			size_t *ret_nbytes)
{
	const struct job *job = fill->job;

	if (layout_refers(job->layout))
		return input_claim_mapped(job->input, fill->chunk_nbytes, ret_position, ret_nbytes);
	return input_read(job->input, chunk_records(chunk, job->plan.chunk_records),
			  fill->chunk_nbytes, ret_position, ret_nbytes);
}

/* Read and sort the chunk. Returns 1, 0 if there was nothing left to read, or a negative errno. */
static int read_chunk(struct fill *fill, struct chunk *chunk)
{
	const struct job *job = fill->job;
	struct span span = stats_begin(STAGE_READ, 0);
	uint64_t position;
	size_t nbytes;
	int r = read_part_of(fill, chunk, &position, &nbytes);

	if (r < 0)
		return r;
	if (nbytes == 0) {
		chunk_pool_put(chunk);
		return 0;
	}
	chunk->number = span.item = (position - fill->start) / fill->chunk_nbytes;
	chunk->n = nbytes / job->layout->record_nbytes;
	stats_end(job->stats, span, nbytes);
	r = chunk_pool_sort(chunk, job->plan.chunk_records);
	return r < 0 ? r : 1;
}

static int read_chunks(struct fill *fill)
{
	struct chunk *chunk;
	int r;

	do {
		struct span span = stats_begin(STAGE_READ, 0);

		r = claim_chunk(fill, &chunk);
		stats_waited(fill->job->stats, span);
		if (r > 0)
			r = read_chunk(fill, chunk);
	} while (r > 0);
	return r;
}

/* --- Any other device: through slots --- */

static uint64_t chunk_start(const struct fill *fill, const struct chunk *chunk)
{
	return fill->start + chunk->number * fill->chunk_nbytes;
}

/* Under the lock: all of the chunk's input has been read. */
static bool is_full(const struct fill *fill, const struct chunk *chunk)
{
	const uint64_t end = chunk_start(fill, chunk) + chunk->n * fill->job->layout->record_nbytes;

	return chunk->n == fill->job->plan.chunk_records || end == fill->end;
}

/* Under the lock. */
static struct chunk *find_chunk(struct fill *fill, uint64_t number)
{
	struct chunk *chunk = fill->filling;

	while (chunk->number != number)
		chunk = chunk->next;
	return chunk;
}

/* Under the lock: take the chunk off the list. */
static void take_off(struct fill *fill, struct chunk *chunk)
{
	struct chunk **at = &fill->filling;

	while (*at != chunk)
		at = &(*at)->next;
	*at = chunk->next;
}

/* Get the chunk of that number, to be filled. */
static int add_chunk(struct fill *fill, uint64_t number)
{
	struct chunk *chunk;
	int r = chunk_pool_take(fill->pool, &chunk);

	if (r < 0)
		return r;
	chunk->number = number;
	pthread_mutex_lock(&fill->lock);
	chunk->next = fill->filling;
	fill->filling = chunk;
	pthread_mutex_unlock(&fill->lock);
	return 0;
}

/* Claim a part. Returns 1, 0 if there is none left, or a negative errno. */
static int claim_part(struct fill *fill)
{
	int r = 0;

	pthread_mutex_lock(&fill->claiming);
	if (more_to_claim(fill)) {
		const uint64_t offset = fill->n_claimed * fill->part_nbytes;

		if (offset % fill->chunk_nbytes == 0)
			r = add_chunk(fill, offset / fill->chunk_nbytes);
		if (r == 0) {
			fill->n_claimed++;
			r = 1;
		}
	}
	pthread_mutex_unlock(&fill->claiming);
	return r;
}

/* The part is in the slot: queue its way into the chunk. */
static int upload(struct fill *fill, struct slot *slot, struct chunk *chunk, uint64_t position,
		  size_t nbytes)
{
	const struct job *job = fill->job;
	char *records = chunk_records(chunk, job->plan.chunk_records);
	struct lane *lane = fill->uploads[chunk->worker];
	int r = lane_copy(lane, records + (position - chunk_start(fill, chunk)), slot->host,
			  nbytes);

	slot->last = slot->copied[chunk->worker];
	if (r == 0)
		r = lane_mark(lane, slot->last);
	return r < 0 ? job_fail_device(job, chunk->worker, r, "cannot be given input") : 0;
}

/* Sort a chunk whose last part is on its way to the device. */
static int sort_full(struct fill *fill, struct chunk *chunk)
{
	const struct job *job = fill->job;
	int r = lane_mark(fill->uploads[chunk->worker], chunk->filled);

	return r < 0 ? job_fail_device(job, chunk->worker, r, "cannot be given a chunk") :
		       chunk_pool_sort(chunk, job->plan.chunk_records);
}

/* Count the part in; when the chunk is full, sort it. */
static int count_part(struct fill *fill, struct chunk *chunk, uint64_t n_records)
{
	bool full;

	pthread_mutex_lock(&fill->lock);
	chunk->n += n_records;
	full = is_full(fill, chunk);
	if (full)
		take_off(fill, chunk);
	pthread_mutex_unlock(&fill->lock);
	return full ? sort_full(fill, chunk) : 0;
}

/*
 * Read a part into the slot and send it on. Returns 1, 0 at the end of the input, or a negative
 * errno.
 */
static int read_part(struct fill *fill, struct slot *slot)
{
	const struct job *job = fill->job;
	struct span span = stats_begin(STAGE_READ, 0);
	struct chunk *chunk;
	uint64_t position;
	size_t nbytes;
	int r = input_read(job->input, slot->host, fill->part_nbytes, &position, &nbytes);

	if (r < 0)
		return r;
	span.item = position / fill->part_nbytes;
	stats_end(job->stats, span, nbytes);
	if (nbytes < fill->part_nbytes)
		note_end(fill, position + nbytes);
	if (nbytes == 0)
		return 0;
	pthread_mutex_lock(&fill->lock);
	chunk = find_chunk(fill, (position - fill->start) / fill->chunk_nbytes);
	pthread_mutex_unlock(&fill->lock);
	r = upload(fill, slot, chunk, position, nbytes);
	if (r == 0)
		r = count_part(fill, chunk, nbytes / job->layout->record_nbytes);
	return r < 0 ? r : 1;
}

/* Take a slot whose last part has left it, and read the next part into it. */
static int use_slot(struct fill *fill)
{
	struct span span = stats_begin(STAGE_READ, 0);
	void *item;
	struct slot *slot;
	int r = ring_pop(fill->free_slots, &item);

	if (r < 0)
		return r;
	slot = item;
	r = slot->last ? mark_wait(slot->last) : 0;
	stats_waited(fill->job->stats, span);
	if (r == 0)
		r = read_part(fill, slot);
	ring_push(fill->free_slots, slot);
	return r;
}

static int read_parts(struct fill *fill)
{
	int r;

	do {
		r = claim_part(fill);
		if (r > 0)
			r = use_slot(fill);
	} while (r > 0);
	return r;
}

/*
 * All readers have ended: chunks are left that were claimed, but the input ended in or before them,
 * as turned out when it was read.
 */
static int sort_rest(struct fill *fill)
{
	int r = 0;

	while (fill->filling && r == 0) {
		struct chunk *chunk = fill->filling;

		fill->filling = chunk->next;
		if (chunk->n)
			r = sort_full(fill, chunk);
		else
			chunk_pool_put(chunk);
	}
	return r;
}

/* --- Threads --- */

static void fill_fail(struct fill *fill, int r)
{
	pthread_mutex_lock(&fill->lock);
	if (!fill->error)
		fill->error = r;
	pthread_mutex_unlock(&fill->lock);
	chunk_pool_fail(fill->pool, r);
	if (fill->free_slots)
		ring_fail(fill->free_slots, r);
	input_cancel(fill->job->input);
}

static void *reader_main(void *argument)
{
	struct fill *fill = argument;
	int r = fill->job->plan.copies ? read_parts(fill) : read_chunks(fill);
	bool last;

	pthread_mutex_lock(&fill->lock);
	last = --fill->n_reading == 0;
	pthread_mutex_unlock(&fill->lock);
	if (r == 0 && last)
		r = sort_rest(fill);
	if (r < 0)
		fill_fail(fill, r);
	else if (last)
		ring_finish(fill->pool->sorting);
	return NULL;
}

static int open_uploads(struct fill *fill)
{
	const struct job *job = fill->job;
	int r = 0;

	for (uint32_t i = 0; i < job->n_workers && r == 0; i++)
		r = lane_open(job->workers[i].device, LANE_NORMAL, &fill->uploads[i]);
	return r;
}

/* What is read into it can be for any of the workers. */
static int open_slot(const struct job *job, struct slot *slot)
{
	int r = 0;

	slot->copied = calloc(job->n_workers, sizeof *slot->copied);
	if (!slot->copied)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->n_workers && r == 0; i++)
		r = mark_open(job->workers[i].device, &slot->copied[i]);
	return r < 0 ? r :
		       device_alloc(slot->device, MEMORY_HOST, job->plan.slot_nbytes, &slot->host);
}

static void close_slot(const struct job *job, struct slot *slot)
{
	for (uint32_t i = 0; slot->copied && i < job->n_workers; i++)
		mark_close(slot->copied[i]);
	free(slot->copied);
	if (slot->device)
		device_release(slot->device, MEMORY_HOST, slot->host, job->plan.slot_nbytes);
}

static int open_slots(struct fill *fill)
{
	const struct job *job = fill->job;
	int r;

	fill->slots = calloc(job->plan.n_slots, sizeof *fill->slots);
	fill->uploads = calloc(job->n_workers, sizeof *fill->uploads);
	if (!fill->slots || !fill->uploads || ring_open(job->plan.n_slots, &fill->free_slots) < 0)
		return -ENOMEM;
	r = open_uploads(fill);
	for (uint32_t i = 0; i < job->plan.n_slots && r == 0; i++) {
		fill->slots[i].device = job->workers[i % job->n_workers].device;
		r = open_slot(job, &fill->slots[i]);
		if (r == 0)
			r = ring_push(fill->free_slots, &fill->slots[i]);
	}
	return r;
}

static void close_slots(struct fill *fill)
{
	const struct job *job = fill->job;

	for (uint32_t i = 0; fill->uploads && i < job->n_workers; i++)
		lane_close(fill->uploads[i]);
	for (uint32_t i = 0; fill->slots && i < job->plan.n_slots; i++)
		close_slot(job, &fill->slots[i]);
	free(fill->uploads);
	free(fill->slots);
	ring_close(fill->free_slots);
}

static int start_readers(struct fill *fill)
{
	char limits[THREAD_LIMITS_NBYTES];
	const uint32_t n = fill->job->plan.n_readers;
	int r = 0;

	fill->n_reading = n;
	for (; fill->n_readers < n && r == 0; fill->n_readers += r == 0)
		r = thread_start(reader_main, fill, 0, &fill->readers[fill->n_readers]);
	return r < 0 ? fail_hint(r, HINT_LESS_MEMORY_OR_THREADS, 0,
				 "cannot start a reader thread: %m%s", thread_limits(r, limits)) :
		       0;
}

int fill_start(const struct job *job, struct chunk_pool *pool, struct fill **ret_fill)
{
	const struct plan *plan = &job->plan;
	struct fill *fill = calloc(1, sizeof *fill + plan->n_readers * sizeof fill->readers[0]);
	int r = 0;

	if (!fill)
		return fail(-ENOMEM, "no memory for %u readers", plan->n_readers);
	pthread_mutex_init(&fill->claiming, NULL);
	pthread_mutex_init(&fill->lock, NULL);
	fill->job = job;
	fill->pool = pool;
	fill->start = job->first_record * plan->record_nbytes;
	fill->chunk_nbytes = plan->chunk_records * plan->record_nbytes;
	fill->part_nbytes = plan->copies ? plan->slot_nbytes : fill->chunk_nbytes;
	fill->end = job_input_end(job);
	if (plan->copies)
		r = open_slots(fill);
	if (r < 0)
		fail_hint(r, HINT_LESS_MEMORY, 0, "no pinned memory to read into: %m");
	else
		r = start_readers(fill);
	if (r < 0) {
		fill_fail(fill, r);
		fill_finish(fill);
		return r;
	}
	*ret_fill = fill;
	return 0;
}

int fill_finish(struct fill *fill)
{
	int r;

	if (!fill)
		return 0;
	for (uint32_t i = 0; i < fill->n_readers; i++)
		pthread_join(fill->readers[i], NULL);
	r = fill->error;
	close_slots(fill);
	pthread_mutex_destroy(&fill->lock);
	pthread_mutex_destroy(&fill->claiming);
	free(fill);
	return r;
}
