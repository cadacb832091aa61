/*
 * form_runs - the input as sorted runs (see form_runs.h)
 *
 * A chunk goes round:	free -> being read -> being sorted -> resident (-> spilled) -> free
 *
 * A chunk's place in the input says its number, and readers that claim chunks in order may finish
 * out of order; the collector puts them back in order, so that neighbours among the runs are
 * neighbours in the input.
 *
 * When to spill. With a known size, as soon as a spilled run's worth of chunks is there, but only
 * while the rest of the input would not fit: what fits at the end is never written to disk. With an
 * unknown size, when three quarters of the buffers are taken: the last quarter keeps the readers
 * going meanwhile.
 */
#include "src/form_runs.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "src/passes.h"
#include "src/ring.h"
#include "src/status.h"

struct chunk {
	struct form_runs *forming;
	void *elements; /* device memory for plan.chunk_records; NULL until first used */
	uint64_t n;
	uint64_t number;   /* in input order */
	struct mark *mark; /* sorted */
	struct digest read, dropped;
	struct chunk *next; /* collected ahead of its turn */
};

struct sort_lane {
	struct lane *lane;
	void *scratch;
};

struct form_runs {
	const struct engine *engine;
	uint64_t chunk_nbytes;      /* of elements */
	uint64_t n_chunks_in_input; /* UINT64_MAX: unknown */
	struct chunk *chunks;       /* plan.n_chunks */
	struct sort_lane *lanes;    /* plan.n_lanes */
	struct ring *free, *sorting;

	pthread_t *readers;
	uint32_t n_readers; /* started */
	pthread_mutex_t lock;
	uint32_t n_reading; /* not yet at the end; under the lock */
	uint64_t n_claimed; /* chunks that a reader has set out to read; under the lock */
	int error;          /* the first; under the lock */

	/* The collector's */
	struct run_store *store;
	struct chunk *ahead;  /* sorted by number */
	uint64_t n_collected; /* chunks, spilled ones included */
	uint64_t n_resident;
	struct digest read, dropped;
};

static void forming_fail(struct form_runs *forming, int r)
{
	pthread_mutex_lock(&forming->lock);
	if (!forming->error)
		forming->error = r;
	pthread_mutex_unlock(&forming->lock);
	ring_fail(forming->free, r);
	ring_fail(forming->sorting, r);
	input_cancel(forming->engine->input);
}

/* Queue what makes a sorted run of the chunk's records. */
static int chunk_sort(struct chunk *chunk, const void *records)
{
	const struct engine *engine = chunk->forming->engine;
	const struct backend *backend = engine->backend;
	const struct layout *layout = engine->layout;
	const struct sort_lane *lane = &chunk->forming->lanes[chunk->number % engine->plan.n_lanes];
	int r;

	chunk->read = chunk->dropped = (struct digest){ 0 };
	r = backend->encode(lane->lane, &(struct encode_op){
						.layout = layout,
						.records = records,
						.elements = chunk->elements,
						.n = chunk->n,
						.ret_digest = &chunk->read,
					});
	if (r == 0)
		r = backend->sort(lane->lane, &(struct sort_op){
						      .elements = chunk->elements,
						      .n = chunk->n,
						      .scratch = lane->scratch,
						      .element_nbytes = layout->element_nbytes,
					      });
	if (r == 0 && engine->unique)
		r = backend->unique(lane->lane, &(struct unique_op){
							.elements = chunk->elements,
							.n = chunk->n,
							.element_nbytes = layout->element_nbytes,
							.layout = layout,
							.ret_n = &chunk->n,
							.ret_dropped = &chunk->dropped,
						});
	return r == 0 ? backend->mark(lane->lane, chunk->mark) : r;
}

/*
 * Read the next part of the input into the chunk. Records that are narrower than their elements are
 * put at the end of the elements' room, where they can expand in place.
 */
static int chunk_read(struct chunk *chunk, void **ret_records)
{
	const struct engine *engine = chunk->forming->engine;
	const struct layout *layout = engine->layout;
	const uint64_t widening = layout->element_nbytes - layout->record_nbytes;
	const uint64_t capacity = engine->plan.chunk_records;
	char *elements = chunk->elements, *records = elements + capacity * widening;
	struct span span = stats_begin(STAGE_READ, 0);
	uint64_t position;
	size_t nbytes;
	int r = input_read(engine->input, records, capacity * layout->record_nbytes, &position,
			   &nbytes);

	if (r < 0)
		return r;
	chunk->number = span.item = position / (capacity * layout->record_nbytes);
	chunk->n = nbytes / layout->record_nbytes;
	stats_end(engine->stats, span, nbytes);
	*ret_records = elements + chunk->n * widening;
	if (chunk->n < capacity)
		memmove(*ret_records, records, nbytes);
	return 0;
}

static int chunk_alloc(struct chunk *chunk)
{
	struct form_runs *forming = chunk->forming;
	const struct engine *engine = forming->engine;
	int r;

	if (chunk->elements)
		return 0;
	r = engine->backend->alloc(engine->device, MEMORY_DEVICE, forming->chunk_nbytes,
				   &chunk->elements);
	return r < 0 ? fail(r, "no memory for a chunk of %" PRIu64 " bytes: %m; try a smaller -S",
			    forming->chunk_nbytes) :
		       0;
}

/*
 * Is there a chunk left to read? When the size is known a reader must not wait for a buffer to find
 * out: there may be none any more, and none that will be free.
 */
static bool claim_chunk(struct form_runs *forming)
{
	bool more;

	pthread_mutex_lock(&forming->lock);
	more = forming->n_claimed < forming->n_chunks_in_input;
	forming->n_claimed += more;
	pthread_mutex_unlock(&forming->lock);
	return more;
}

/* Read chunks until the input ends. */
static int read_chunks(struct form_runs *forming)
{
	while (claim_chunk(forming)) {
		struct span span = stats_begin(STAGE_READ, 0);
		struct chunk *chunk;
		void *item, *records = NULL;
		int r = ring_pop(forming->free, &item);

		stats_waited(forming->engine->stats, span);
		if (r < 0)
			return r;
		chunk = item;
		r = chunk_alloc(chunk);
		if (r == 0)
			r = chunk_read(chunk, &records);
		if (r < 0)
			return r;
		if (chunk->n == 0)
			return ring_push(forming->free, chunk);
		r = chunk_sort(chunk, records);
		if (r == 0)
			r = ring_push(forming->sorting, chunk);
		if (r < 0)
			return r;
	}
	return 0;
}

static void *reader_main(void *argument)
{
	struct form_runs *forming = argument;
	int r = read_chunks(forming);
	bool last;

	pthread_mutex_lock(&forming->lock);
	last = --forming->n_reading == 0;
	pthread_mutex_unlock(&forming->lock);
	if (r < 0)
		forming_fail(forming, r);
	else if (last)
		ring_finish(forming->sorting);
	return NULL;
}

static void release_chunk(void *owner)
{
	struct chunk *chunk = owner;

	ring_push(chunk->forming->free, chunk);
}

/* A sorted chunk whose turn has come becomes a run. */
static int add_resident(struct form_runs *forming, struct chunk *chunk)
{
	struct run *run;
	int r;

	digest_add(&forming->read, chunk->read);
	digest_add(&forming->dropped, chunk->dropped);
	forming->n_collected++;
	forming->n_resident++;
	r = run_open_resident(chunk->elements, chunk->n, release_chunk, chunk, &run);
	return r < 0 ? r : run_store_add(forming->store, run);
}

/* Add the chunk, and those that waited for it. */
static int collect(struct form_runs *forming, struct chunk *chunk)
{
	struct chunk **at = &forming->ahead;
	int r = 0;

	while (*at && (*at)->number < chunk->number)
		at = &(*at)->next;
	chunk->next = *at;
	*at = chunk;
	while (r == 0 && forming->ahead && forming->ahead->number == forming->n_collected) {
		chunk = forming->ahead;
		forming->ahead = chunk->next;
		r = add_resident(forming, chunk);
	}
	return r;
}

static bool must_spill(const struct form_runs *forming)
{
	const struct plan *plan = &forming->engine->plan;
	const uint64_t n_spilled = forming->n_collected - forming->n_resident;

	if (plan->fits || forming->n_resident < plan->spill_chunks)
		return false;
	if (forming->n_chunks_in_input != UINT64_MAX)
		return forming->n_chunks_in_input - n_spilled > plan->n_chunks;
	return forming->n_resident >= plan->n_chunks - plan->n_chunks / 4;
}

/* Merge the oldest resident chunks into one spilled run. */
static int spill_chunks(struct form_runs *forming)
{
	const struct engine *engine = forming->engine;
	const uint64_t n = engine->plan.spill_chunks;
	const size_t first = forming->store->n - forming->n_resident;
	struct digest none = { 0 };
	int r = merge_to_run(engine, forming->store, first, n, engine->plan.merge_nbytes, &none,
			     &forming->dropped);

	forming->n_resident -= n;
	return r;
}

static int collect_all(struct form_runs *forming)
{
	void *item;
	int r;

	while ((r = ring_pop(forming->sorting, &item)) == 0) {
		struct chunk *chunk = item;

		r = forming->engine->backend->mark_wait(chunk->mark);
		if (r == 0)
			r = collect(forming, chunk);
		if (r == 0 && must_spill(forming))
			r = spill_chunks(forming);
		if (r < 0)
			break;
	}
	return r == -ENODATA ? 0 : r;
}

static int start_readers(struct form_runs *forming)
{
	const uint32_t n = forming->engine->plan.n_readers;
	int r = 0;

	forming->readers = calloc(n, sizeof *forming->readers);
	if (!forming->readers)
		return fail(-ENOMEM, "no memory for %u readers", n);
	forming->n_reading = n;
	for (; forming->n_readers < n && r == 0; forming->n_readers += r == 0)
		r = -pthread_create(&forming->readers[forming->n_readers], NULL, reader_main,
				    forming);
	return r < 0 ? fail(r, "cannot start a reader thread: %m") : 0;
}

static int open_lanes(struct form_runs *forming)
{
	const struct engine *engine = forming->engine;
	const uint64_t scratch_nbytes = engine->plan.sort_scratch_nbytes;
	int r = 0;

	for (uint32_t i = 0; i < engine->plan.n_lanes && r == 0; i++) {
		r = engine->backend->lane_open(engine->device, LANE_NORMAL,
					       &forming->lanes[i].lane);
		if (r == 0 && scratch_nbytes)
			r = engine->backend->alloc(engine->device, MEMORY_DEVICE, scratch_nbytes,
						   &forming->lanes[i].scratch);
	}
	return r < 0 ? fail(r, "cannot get memory to sort in: %m; try a smaller -S") : 0;
}

static int open_chunks(struct form_runs *forming)
{
	const struct engine *engine = forming->engine;
	int r = 0;

	for (uint64_t i = 0; i < engine->plan.n_chunks && r == 0; i++) {
		forming->chunks[i].forming = forming;
		r = engine->backend->mark_open(engine->device, &forming->chunks[i].mark);
		if (r == 0)
			r = ring_push(forming->free, &forming->chunks[i]);
	}
	return r < 0 ? fail(r, "no memory for %" PRIu64 " chunks", engine->plan.n_chunks) : 0;
}

static int forming_open(const struct engine *engine, struct run_store *store,
			struct form_runs **ret_forming)
{
	const struct plan *plan = &engine->plan;
	const uint64_t chunk_input_nbytes = plan->chunk_records * plan->record_nbytes;
	struct form_runs *forming = calloc(1, sizeof *forming);
	int r;

	*ret_forming = forming;
	if (!forming)
		return fail(-ENOMEM, "no memory to form runs");
	pthread_mutex_init(&forming->lock, NULL);
	forming->engine = engine;
	forming->store = store;
	forming->chunk_nbytes = plan->chunk_records * plan->element_nbytes;
	forming->n_chunks_in_input =
		plan->input_nbytes == PLAN_SIZE_UNKNOWN ?
			UINT64_MAX :
			(plan->input_nbytes + chunk_input_nbytes - 1) / chunk_input_nbytes;
	forming->chunks = calloc(plan->n_chunks, sizeof *forming->chunks);
	forming->lanes = calloc(plan->n_lanes, sizeof *forming->lanes);
	if (!forming->chunks || !forming->lanes || ring_open(plan->n_chunks, &forming->free) < 0 ||
	    ring_open(plan->n_chunks, &forming->sorting) < 0)
		return fail(-ENOMEM, "no memory for %" PRIu64 " chunks", plan->n_chunks);
	r = open_lanes(forming);
	return r < 0 ? r : open_chunks(forming);
}

static void join_readers(struct form_runs *forming)
{
	for (uint32_t i = 0; i < forming->n_readers; i++)
		pthread_join(forming->readers[i], NULL);
	forming->n_readers = 0;
}

/* What was only needed while chunks were sorted. */
static void close_lanes(struct form_runs *forming)
{
	const struct engine *engine = forming->engine;

	for (uint32_t i = 0; forming->lanes && i < engine->plan.n_lanes; i++) {
		if (forming->lanes[i].lane)
			engine->backend->lane_close(forming->lanes[i].lane);
		engine->backend->release(engine->device, MEMORY_DEVICE, forming->lanes[i].scratch,
					 engine->plan.sort_scratch_nbytes);
	}
	free(forming->lanes);
	forming->lanes = NULL;
}

int form_runs(const struct engine *engine, struct run_store *store, struct digest *ret_read,
	      struct digest *ret_dropped, struct form_runs **ret_forming)
{
	struct form_runs *forming;
	int r = forming_open(engine, store, ret_forming);

	forming = *ret_forming;
	if (r == 0)
		r = start_readers(forming);
	if (r == 0)
		r = collect_all(forming);
	if (!forming)
		return r;
	if (r < 0 && forming->n_readers)
		forming_fail(forming, r);
	join_readers(forming);
	close_lanes(forming);
	if (r == 0)
		r = forming->error;
	*ret_read = forming->read;
	*ret_dropped = forming->dropped;
	return r;
}

static void chunk_free(struct chunk *chunk)
{
	const struct engine *engine = chunk->forming->engine;

	engine->backend->release(engine->device, MEMORY_DEVICE, chunk->elements,
				 chunk->forming->chunk_nbytes);
	chunk->elements = NULL;
}

uint64_t form_runs_trim(struct form_runs *forming)
{
	void *chunk;
	uint64_t nbytes = 0;

	ring_finish(forming->free);
	while (ring_pop(forming->free, &chunk) == 0)
		chunk_free(chunk);
	for (uint64_t i = 0; i < forming->engine->plan.n_chunks; i++)
		nbytes += forming->chunks[i].elements ? forming->chunk_nbytes : 0;
	return nbytes;
}

void form_runs_close(struct form_runs *forming)
{
	if (!forming)
		return;
	for (uint64_t i = 0; forming->chunks && i < forming->engine->plan.n_chunks; i++) {
		if (!forming->chunks[i].forming)
			break;
		chunk_free(&forming->chunks[i]);
		if (forming->chunks[i].mark)
			forming->engine->backend->mark_close(forming->chunks[i].mark);
	}
	close_lanes(forming);
	free(forming->chunks);
	free(forming->readers);
	ring_close(forming->free);
	ring_close(forming->sorting);
	pthread_mutex_destroy(&forming->lock);
	free(forming);
}
