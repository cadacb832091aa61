/*
 * run_generation.c - turn the input into sorted runs
 *
 *	read -> encode, sort -> collect -> (spill)
 *
 * Several reader threads fill chunks, device queues sort them (chunk_pool.h), and the caller's
 * thread collects them as resident runs. When they do not all fit, it merges the oldest ones into a
 * spilled run, whose chunks go back to the readers. All of that overlaps.
 *
 * Reading. If the device works in host memory, a reader takes a free chunk and reads directly into
 * it. Otherwise the input goes piece by piece through slots, pinned buffers of plan.slot_nbytes,
 * from which it is copied to the device; all readers read pieces of the same chunk at the same
 * time:
 *
 *	input --read--> slot --copy (upload queue)--> chunk --sort when its last piece is there-->
 *
 * Which piece a reader gets is decided by input_read() when it is called. A reader that fills whole
 * chunks gives its chunk a number afterwards. Pieces need their chunk before they are read. So each
 * reader first claims a piece, by counting, and the one that claims the first piece of a chunk gets
 * the chunk from the pool. The piece that it then reads may be another one; but that one has been
 * claimed too, because as many have been claimed as are read.
 *
 * If the size of the input is known, no reader waits for a chunk when all of the input is claimed:
 * there may never be a free chunk again. If the size is unknown, a short piece shows the end, and
 * completes its chunk.
 *
 * Collecting. Chunks that are claimed in order may be finished out of order. They are put back in
 * order here, so that neighbours in the list of runs are neighbours in the input.
 *
 * Spilling. With a known size, spill as soon as there are enough chunks for a run, but only while
 * the rest of the input would not fit: what fits at the end is never written to disk. With an
 * unknown size, spill when three quarters of the chunks are used; the last quarter keeps the
 * readers going meanwhile.
 *
 * Buckets. If much data fits in memory, chunks are not sorted, but distributed among buckets, whose
 * splitters are chosen from a sample of the input. The windows of the merge sort the buckets. If
 * the sample was misleading and a bucket does not fit in a window, all chunks are sorted after all.
 */
#include "src/rungen/chunk_pool.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "io/input/input.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/merge/merge.h"

struct upload_slot {
	struct device *device;             /* the one it is near; all can copy from it */
	void *host;                        /* pinned, plan.slot_nbytes */
	struct device_event **copy_events; /* for each device: its last copy from here */
	struct device_event *last_copy;    /* the last of these, or NULL */
};

struct chunk_reader {
	const struct job *job;
	struct chunk_pool *pool;
	uint64_t start;        /* position in the input at which chunk 0 begins */
	uint64_t chunk_nbytes; /* of input in a chunk */
	uint64_t read_nbytes;  /* that a reader reads at a time: a chunk or a slot */

	/* Only if input is copied to the device */
	struct upload_slot *slots; /* plan.n_slots */
	struct bounded_queue *free_slots;
	struct device_queue **upload_queues; /* one for each device */

	/* Also held while waiting for a chunk: the next reader that claims needs it too. */
	pthread_mutex_t claim_lock;
	uint64_t n_claimed_reads; /* under claim_lock */

	pthread_mutex_t lock;         /* guards all below */
	uint64_t end;                 /* of the input; UINT64_MAX: unknown */
	struct chunk *filling_chunks; /* claimed and not full */
	uint32_t n_running;           /* readers that have not ended */
	int error;                    /* the first, or 0 */

	struct thread_group threads;
};

/* Return whether there is a read left to claim. Requires claim_lock. */
static bool has_unclaimed_read(struct chunk_reader *reader)
{
	SCOPED_LOCK(&reader->lock);
	return reader->start + reader->n_claimed_reads * reader->read_nbytes < reader->end;
}

/* --- Reading in host memory: directly into chunks --- */

static int claim_chunk(struct chunk_reader *reader, struct chunk **ret_chunk)
{
	bool has_more;
	int r;

	pthread_mutex_lock(&reader->claim_lock);
	has_more = has_unclaimed_read(reader);
	reader->n_claimed_reads += has_more;
	pthread_mutex_unlock(&reader->claim_lock);
	if (!has_more)
		return 0;
	r = chunk_pool_acquire(reader->pool, ret_chunk);
	return r < 0 ? r : 1;
}

/* Read the next part of the input into the chunk; with an indirect layout, only claim it. */
static int read_into_chunk(struct chunk_reader *reader, struct chunk *chunk, uint64_t *ret_position,
			   size_t *ret_nbytes)
{
	const struct job *job = reader->job;

	if (layout_is_indirect(job->layout))
		return input_claim_mapped(job->input, reader->chunk_nbytes, ret_position,
					  ret_nbytes);
	return input_read(job->input, chunk_records(chunk, job->plan.chunk_records),
			  reader->chunk_nbytes, ret_position, ret_nbytes);
}

/* Read and sort the chunk. Returns 1, 0 if nothing was left to read, or a negative errno. */
static int read_chunk(struct chunk_reader *reader, struct chunk *chunk)
{
	const struct job *job = reader->job;
	struct span span = stats_begin(STAGE_READ, 0);
	uint64_t position;
	size_t nbytes;
	int r = read_into_chunk(reader, chunk, &position, &nbytes);

	if (r < 0)
		return r;
	if (nbytes == 0) {
		chunk_pool_release(chunk);
		return 0;
	}
	chunk->number = span.item = (position - reader->start) / reader->chunk_nbytes;
	chunk->n = nbytes / job->layout->record_nbytes;
	stats_end(job->stats, span, nbytes);
	r = chunk_pool_sort(chunk, job->plan.chunk_records);
	return r < 0 ? r : 1;
}

static int read_chunks(struct chunk_reader *reader)
{
	struct chunk *chunk;
	int r;

	do {
		struct span span = stats_begin(STAGE_READ, 0);

		r = claim_chunk(reader, &chunk);
		stats_end_wait(reader->job->stats, span);
		if (r > 0)
			r = read_chunk(reader, chunk);
	} while (r > 0);
	return r;
}

/* --- Reading for other devices: through slots --- */

static uint64_t chunk_start(const struct chunk_reader *reader, const struct chunk *chunk)
{
	return reader->start + chunk->number * reader->chunk_nbytes;
}

/* Requires the lock. */
static struct chunk *find_chunk(struct chunk_reader *reader, uint64_t number)
{
	struct chunk *chunk = reader->filling_chunks;

	while (chunk->number != number)
		chunk = chunk->next;
	return chunk;
}

/* Requires the lock. */
static void remove_filling_chunk(struct chunk_reader *reader, struct chunk *chunk)
{
	struct chunk **link = &reader->filling_chunks;

	while (*link != chunk)
		link = &(*link)->next;
	*link = chunk->next;
}

/* Get the chunk of that number from the pool. */
static int add_chunk(struct chunk_reader *reader, uint64_t number)
{
	struct chunk *chunk;
	int r = chunk_pool_acquire(reader->pool, &chunk);

	if (r < 0)
		return r;
	chunk->number = number;
	SCOPED_LOCK(&reader->lock);
	chunk->next = reader->filling_chunks;
	reader->filling_chunks = chunk;
	return 0;
}

/* Claim a read. Returns 1, 0 if there is none left, or a negative errno. */
static int claim_read(struct chunk_reader *reader)
{
	uint64_t offset;
	int r = 0;

	SCOPED_LOCK(&reader->claim_lock);
	if (!has_unclaimed_read(reader))
		return 0;
	offset = reader->n_claimed_reads * reader->read_nbytes;
	if (offset % reader->chunk_nbytes == 0)
		r = add_chunk(reader, offset / reader->chunk_nbytes);
	if (r < 0)
		return r;
	reader->n_claimed_reads++;
	return 1;
}

/* Queue the copy of what is in the slot into the chunk. */
static int upload_to_chunk(struct chunk_reader *reader, struct upload_slot *slot,
			   struct chunk *chunk, uint64_t position, size_t nbytes)
{
	const struct job *job = reader->job;
	char *records = chunk_records(chunk, job->plan.chunk_records);
	struct device_queue *queue = reader->upload_queues[chunk->device_index];
	int r = device_queue_copy(queue, records + (position - chunk_start(reader, chunk)),
				  slot->host, nbytes);

	slot->last_copy = slot->copy_events[chunk->device_index];
	if (r == 0)
		r = device_queue_record(queue, slot->last_copy);
	return r < 0 ? job_fail_device(job, chunk->device_index, r,
				       "cannot copy input to the device") :
		       0;
}

/* Sort a chunk whose last piece is on its way to the device. */
static int sort_filled_chunk(struct chunk_reader *reader, struct chunk *chunk)
{
	const struct job *job = reader->job;
	int r = device_queue_record(reader->upload_queues[chunk->device_index],
				    chunk->filled_event);

	return r < 0 ? job_fail_device(job, chunk->device_index, r,
				       "cannot copy a chunk to the device") :
		       chunk_pool_sort(chunk, job->plan.chunk_records);
}

/* Count a piece of the chunk; when it is full, sort it. */
static int count_read(struct chunk_reader *reader, struct chunk *chunk, uint64_t n_records)
{
	const struct job *job = reader->job;
	bool is_full;

	pthread_mutex_lock(&reader->lock);
	chunk->n += n_records;
	is_full = chunk->n == job->plan.chunk_records ||
		  chunk_start(reader, chunk) + chunk->n * job->layout->record_nbytes == reader->end;
	if (is_full)
		remove_filling_chunk(reader, chunk);
	pthread_mutex_unlock(&reader->lock);
	return is_full ? sort_filled_chunk(reader, chunk) : 0;
}

/*
 * Read into the slot and copy to the chunk. Returns 1, 0 at the end of the input, or a negative
 * errno.
 */
static int read_into_slot(struct chunk_reader *reader, struct upload_slot *slot)
{
	const struct job *job = reader->job;
	struct span span = stats_begin(STAGE_READ, 0);
	struct chunk *chunk;
	uint64_t position;
	size_t nbytes;
	int r = input_read(job->input, slot->host, reader->read_nbytes, &position, &nbytes);

	if (r < 0)
		return r;
	span.item = position / reader->read_nbytes;
	stats_end(job->stats, span, nbytes);
	pthread_mutex_lock(&reader->lock);
	if (nbytes < reader->read_nbytes) /* the input ends here */
		reader->end = u64_min(reader->end, position + nbytes);
	chunk = nbytes ? find_chunk(reader, (position - reader->start) / reader->chunk_nbytes) :
			 NULL;
	pthread_mutex_unlock(&reader->lock);
	if (!chunk)
		return 0;
	r = upload_to_chunk(reader, slot, chunk, position, nbytes);
	if (r == 0)
		r = count_read(reader, chunk, nbytes / job->layout->record_nbytes);
	return r < 0 ? r : 1;
}

/* Take a slot whose last copy is done, and read into it. */
static int read_with_slot(struct chunk_reader *reader)
{
	struct span span = stats_begin(STAGE_READ, 0);
	void *item;
	struct upload_slot *slot;
	int r;

	(void)bounded_queue_pop(reader->free_slots, &item); /* there are more slots than readers */
	slot = item;
	r = slot->last_copy ? device_event_wait(slot->last_copy) : 0;
	stats_end_wait(reader->job->stats, span);
	if (r == 0)
		r = read_into_slot(reader, slot);
	bounded_queue_push(reader->free_slots, slot);
	return r;
}

static int read_through_slots(struct chunk_reader *reader)
{
	int r;

	do {
		r = claim_read(reader);
		if (r > 0)
			r = read_with_slot(reader);
	} while (r > 0);
	return r;
}

/*
 * When all readers have ended: sort the chunks that were claimed before the input turned out to end
 * in them. Release those that got nothing.
 */
static int sort_partial_chunks(struct chunk_reader *reader)
{
	int r = 0;

	while (reader->filling_chunks && r == 0) {
		struct chunk *chunk = reader->filling_chunks;

		reader->filling_chunks = chunk->next;
		if (chunk->n)
			r = sort_filled_chunk(reader, chunk);
		else
			chunk_pool_release(chunk);
	}
	return r;
}

/* --- Reader threads --- */

static void chunk_reader_fail(struct chunk_reader *reader, int r)
{
	pthread_mutex_lock(&reader->lock);
	if (!reader->error)
		reader->error = r;
	pthread_mutex_unlock(&reader->lock);
	chunk_pool_fail(reader->pool, r);
	input_cancel(reader->job->input);
}

static void *reader_main(void *argument)
{
	struct chunk_reader *reader = argument;
	int r = reader->job->plan.copies_to_device ? read_through_slots(reader) :
						     read_chunks(reader);
	bool is_last;

	pthread_mutex_lock(&reader->lock);
	is_last = --reader->n_running == 0;
	pthread_mutex_unlock(&reader->lock);
	if (r == 0 && is_last)
		r = sort_partial_chunks(reader);
	if (r < 0)
		chunk_reader_fail(reader, r);
	else if (is_last)
		bounded_queue_finish(reader->pool->sorting_chunks);
	return NULL;
}

static int open_uploads(struct chunk_reader *reader)
{
	const struct job *job = reader->job;
	int r = 0;

	for (uint32_t i = 0; i < job->n_devices && r == 0; i++)
		r = device_queue_open(job->devices[i].device, QUEUE_PRIORITY_NORMAL,
				      &reader->upload_queues[i]);
	return r;
}

/* Any device can copy from a slot. */
static int open_slot(const struct job *job, struct upload_slot *slot)
{
	int r = 0;

	slot->copy_events = calloc(job->n_devices, sizeof *slot->copy_events);
	if (!slot->copy_events)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->n_devices && r == 0; i++)
		r = device_event_open(job->devices[i].device, &slot->copy_events[i]);
	return r < 0 ? r :
		       device_alloc(slot->device, MEMORY_HOST, job->plan.slot_nbytes, &slot->host);
}

static void close_slot(const struct job *job, struct upload_slot *slot)
{
	for (uint32_t i = 0; slot->copy_events && i < job->n_devices; i++)
		device_event_close(slot->copy_events[i]);
	free(slot->copy_events);
	if (slot->device)
		device_free(slot->device, MEMORY_HOST, slot->host, job->plan.slot_nbytes);
}

static int open_slots(struct chunk_reader *reader)
{
	const struct job *job = reader->job;
	int r;

	reader->slots = calloc(job->plan.n_slots, sizeof *reader->slots);
	reader->upload_queues = calloc(job->n_devices, sizeof *reader->upload_queues);
	if (!reader->slots || !reader->upload_queues ||
	    bounded_queue_open(job->plan.n_slots, &reader->free_slots) < 0)
		return -ENOMEM;
	r = open_uploads(reader);
	for (uint32_t i = 0; i < job->plan.n_slots && r == 0; i++) {
		reader->slots[i].device = job->devices[i % job->n_devices].device;
		r = open_slot(job, &reader->slots[i]);
		if (r == 0)
			r = bounded_queue_push(reader->free_slots, &reader->slots[i]);
	}
	return r;
}

static void close_slots(struct chunk_reader *reader)
{
	const struct job *job = reader->job;

	for (uint32_t i = 0; reader->upload_queues && i < job->n_devices; i++)
		device_queue_close(reader->upload_queues[i]);
	for (uint32_t i = 0; reader->slots && i < job->plan.n_slots; i++)
		close_slot(job, &reader->slots[i]);
	free(reader->upload_queues);
	free(reader->slots);
	bounded_queue_close(reader->free_slots);
}

static int chunk_reader_finish(struct chunk_reader *reader)
{
	int r;

	if (!reader)
		return 0;
	thread_group_join(&reader->threads);
	r = reader->error;
	close_slots(reader);
	pthread_mutex_destroy(&reader->lock);
	pthread_mutex_destroy(&reader->claim_lock);
	free(reader);
	return r;
}

static int chunk_reader_start(const struct job *job, struct chunk_pool *pool,
			      struct chunk_reader **ret_reader)
{
	const struct plan *plan = &job->plan;
	struct chunk_reader *reader = calloc(1, sizeof *reader);
	int r = 0;

	if (!reader)
		return fail(-ENOMEM, "no memory for %u readers", plan->n_readers);
	pthread_mutex_init(&reader->claim_lock, NULL);
	pthread_mutex_init(&reader->lock, NULL);
	reader->job = job;
	reader->pool = pool;
	reader->start = job->first_record * plan->record_nbytes;
	reader->chunk_nbytes = plan->chunk_records * plan->record_nbytes;
	reader->read_nbytes = plan->copies_to_device ? plan->slot_nbytes : reader->chunk_nbytes;
	reader->end = job_input_end(job);
	reader->n_running = plan->n_readers;
	if (plan->copies_to_device)
		r = open_slots(reader);
	if (r < 0)
		fail(r, "no pinned memory to read into: %m; try a smaller -S");
	else
		r = thread_group_start(&reader->threads, plan->n_readers, reader_main, reader,
				       "a reader thread");
	if (r < 0) {
		chunk_reader_fail(reader, r);
		chunk_reader_finish(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

/* --- Buckets --- */

enum { SAMPLE_N_PLACES = 256, SAMPLE_PLACE_NBYTES = 4 << 10 };

/* Read records at places that are distributed evenly over the input, and encode them. */
static int read_sample(const struct job *job, uint64_t place_n, unsigned char *elements)
{
	const struct layout *layout = job->layout;
	const uint64_t n_records = job->plan.input_nbytes / layout->record_nbytes;
	unsigned char *records = malloc(place_n * layout->record_nbytes);
	int r = records ? 0 : fail(-ENOMEM, "no memory for a sample of the input");

	for (uint32_t i = 0; i < SAMPLE_N_PLACES && r == 0; i++) {
		const uint64_t first =
			equal_share_begin(n_records - place_n, i, SAMPLE_N_PLACES - 1);

		r = input_read_at(job->input, first * layout->record_nbytes, records,
				  place_n * layout->record_nbytes);
		if (r == 0)
			key_batch_encode(layout, records, place_n,
					 elements + i * place_n * layout->element_nbytes, NULL);
	}
	free(records);
	return r;
}

/* Return whether a sample is in order, ascending or descending. Then sorting takes little time. */
static bool is_ordered(const struct layout *layout, const void *sample, uint64_t n)
{
	uint64_t n_ascents = 0, n_descents = 0;

	for (uint64_t i = 1; i < n; i++) {
		const encoded_key_t a = element_get(sample, layout->element_nbytes, i - 1);
		const encoded_key_t b = element_get(sample, layout->element_nbytes, i);

		n_ascents += a < b;
		n_descents += a > b;
	}
	return n_ascents == 0 || n_descents == 0;
}

/* Set the splitters. Returns false if some would be equal, because a key is too frequent. */
static bool set_splitters(const struct layout *layout, const void *sample, uint64_t n,
			  struct bucket_splitters *splitters)
{
	for (uint32_t i = 1; i < splitters->n; i++) {
		splitters->first_keys[i] = element_get(sample, layout->element_nbytes,
						       equal_share_begin(n, i, splitters->n));
		if (splitters->first_keys[i] <= splitters->first_keys[i - 1])
			return false;
	}
	return true;
}

/* Choose the splitters of the buckets; none if the chunks are to be sorted. */
static int choose_splitters(const struct job *job, struct chunk_pool *pool)
{
	const struct layout *layout = job->layout;
	const uint64_t place_n = SAMPLE_PLACE_NBYTES / layout->record_nbytes;
	const uint64_t n = SAMPLE_N_PLACES * place_n;
	unsigned char *sample = aligned_alloc(
		sizeof(encoded_key_t), round_up(n * layout->element_nbytes, sizeof(encoded_key_t)));
	struct bucket_splitters *splitters = calloc(1, sizeof *splitters);
	int r = sample && splitters ? read_sample(job, place_n, sample) :
				      fail(-ENOMEM, "no memory for a sample of the input");

	if (r == 0 && !is_ordered(layout, sample, n)) {
		splitters->n = job->plan.n_buckets;
		r = chunk_pool_sort_sample(pool, sample, n);
		if (r == 0 && set_splitters(layout, sample, n, splitters)) {
			pool->splitters = splitters;
			splitters = NULL;
		}
	}
	free(splitters);
	free(sample);
	return r;
}

static bool buckets_fit(const struct job *job, const struct run_list *list)
{
	for (uint32_t bucket = 0; bucket < job->plan.n_buckets; bucket++) {
		uint64_t n = 0;

		for (size_t i = 0; i < list->n; i++)
			n += run_bucket_start(list->runs[i], bucket + 1) -
			     run_bucket_start(list->runs[i], bucket);
		if (n > job->plan.max_bucket_records)
			return false;
	}
	return true;
}

/* Sort the chunks after all if a bucket is too large for a window. */
static int check_buckets(const struct job *job, struct chunk_pool *pool,
			 const struct run_list *list)
{
	int r;

	if (!pool->splitters || buckets_fit(job, list))
		return 0;
	r = chunk_pool_sort_buckets(pool);
	for (size_t i = 0; i < list->n; i++)
		list->runs[i]->bucket_starts = NULL;
	return r;
}

/* --- From chunks to runs --- */

struct run_generation {
	struct job *job;
	struct chunk_pool *pool;
	struct run_list *list;
	uint64_t n_chunks_in_input; /* UINT64_MAX: unknown */
	struct chunk *early_chunks; /* sorted before their turn, by number */
	uint64_t n_collected;       /* chunks, spilled ones included */
	uint64_t n_resident;
	struct record_totals *totals;
};

static void release_chunk(void *owner)
{
	chunk_pool_release(owner);
}

/*
 * With -u or a limit a run can be much shorter than its chunk. If everything fits, the rest of the
 * buffer is not used again.
 */
static void discard_unused_tail(const struct job *job, const struct chunk *chunk)
{
	const uint64_t used_nbytes = chunk->n * job->layout->resident_nbytes;

	if (job->plan.fits_in_memory)
		device_discard(job->devices[chunk->device_index].device,
			       (char *)chunk->buffer + used_nbytes,
			       job->plan.chunk_nbytes - used_nbytes);
}

/* Make a run of a sorted chunk whose turn has come. */
static int add_resident(struct run_generation *generation, struct chunk *chunk)
{
	const uint64_t record_nbytes = generation->job->layout->record_nbytes;
	struct run *run;
	int r;

	record_totals_add(generation->totals, chunk->totals);
	generation->n_collected++;
	generation->n_resident++;
	discard_unused_tail(generation->job, chunk);
	r = run_open_resident(generation->job,
			      (struct resident_buffer){
				      .device_index = chunk->device_index,
				      .memory = chunk->buffer,
				      .n = chunk->n,
				      .bucket_starts = chunk->bucket_starts,
				      .n_buckets = generation->job->plan.n_buckets,
			      },
			      release_chunk, chunk, &run);
	if (r < 0)
		return r;
	run->origin = (struct run_origin){ chunk->totals,
					   chunk->totals.read.n_records * record_nbytes,
					   record_nbytes };
	return run_list_add(generation->list, run);
}

/* Add the chunk, and those that waited for it. */
static int add_in_order(struct run_generation *generation, struct chunk *chunk)
{
	struct chunk **link = &generation->early_chunks;
	int r = 0;

	while (*link && (*link)->number < chunk->number)
		link = &(*link)->next;
	chunk->next = *link;
	*link = chunk;
	while (r == 0 && generation->early_chunks &&
	       generation->early_chunks->number == generation->n_collected) {
		chunk = generation->early_chunks;
		generation->early_chunks = chunk->next;
		r = add_resident(generation, chunk);
	}
	return r;
}

static bool must_spill(const struct run_generation *generation)
{
	const struct plan *plan = &generation->job->plan;
	const uint64_t n_spilled = generation->n_collected - generation->n_resident;

	if (plan->fits_in_memory || generation->n_resident < plan->chunks_per_run)
		return false;
	if (generation->n_chunks_in_input != UINT64_MAX)
		return generation->n_chunks_in_input - n_spilled > plan->n_chunks;
	return generation->n_resident >= plan->n_chunks - plan->n_chunks / 4;
}

/* Merge the oldest resident chunks into one spilled run. */
static int spill_chunks(struct run_generation *generation)
{
	struct job *job = generation->job;
	const uint64_t n = job->plan.chunks_per_run;
	const size_t first = generation->list->n - generation->n_resident;
	int r = merge_to_run(job, generation->list, first, n, job->plan.merge_nbytes,
			     generation->totals);

	generation->n_resident -= n;
	if (r == 0)
		r = merge_shrink_index(job, generation->list, job->plan.merge_nbytes,
				       generation->totals);
	return r < 0 ? r : job_recheck_temp_space(job);
}

static int collect_all(struct run_generation *generation)
{
	void *item;
	int r;

	while ((r = bounded_queue_pop(generation->pool->sorting_chunks, &item)) == 0) {
		struct chunk *chunk = item;

		r = chunk_pool_collect(chunk);
		if (r == 0)
			r = add_in_order(generation, chunk);
		if (r == 0 && must_spill(generation))
			r = spill_chunks(generation);
		if (r < 0)
			break;
	}
	return r == -ENODATA ? 0 : r;
}

/* Return how many chunks are read in all; UINT64_MAX: unknown. */
static uint64_t count_chunks(const struct job *job)
{
	const struct plan *plan = &job->plan;
	const uint64_t chunk_nbytes = plan->chunk_records * plan->record_nbytes;
	uint64_t nbytes;

	if (plan->input_nbytes == PLAN_SIZE_UNKNOWN)
		return UINT64_MAX;
	nbytes = job_input_end(job) - job->first_record * plan->record_nbytes;
	return nbytes / chunk_nbytes + (nbytes % chunk_nbytes != 0);
}

int generate_runs(struct job *job, struct chunk_pool *pool, struct run_list *list,
		  struct record_totals *totals)
{
	struct run_generation generation = {
		.job = job,
		.pool = pool,
		.list = list,
		.n_chunks_in_input = count_chunks(job),
		.totals = totals,
	};
	struct chunk_reader *reader = NULL;
	int r = job->plan.n_buckets ? choose_splitters(job, pool) : 0, read_result;

	if (r == 0)
		r = chunk_reader_start(job, pool, &reader);
	if (r < 0)
		return r;
	r = collect_all(&generation);
	if (r < 0) {
		chunk_pool_fail(pool, r);
		input_cancel(job->input);
	}
	read_result = chunk_reader_finish(reader);
	if (r == 0 && read_result == 0)
		r = check_buckets(job, pool, list);
	chunk_pool_close_queues(pool);
	return r < 0 ? r : read_result;
}
