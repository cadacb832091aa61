/*
 * run_generation - the input as sorted runs (see run_generation.h)
 *
 * Readers (chunk_reader.h) that claim chunks in order may finish them out of order; here they are put back
 * in order, so that neighbours among the runs are neighbours in the input.
 *
 * When to spill. With a known size, as soon as a spilled run's worth of chunks is there, but only
 * while the rest of the input would not fit: what fits at the end is never written to disk. With an
 * unknown size, when three quarters of the buffers are taken: the last quarter keeps the readers
 * going meanwhile.
 */
#include "src/rungen/run_generation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/rungen/chunk_reader.h"
#include "src/merge/passes.h"

struct forming {
	const struct job *job;
	struct chunk_pool *pool;
	struct run_store *store;
	uint64_t n_chunks_in_input; /* UINT64_MAX: unknown */
	struct chunk *ahead;        /* sorted before their turn, by number */
	uint64_t n_collected;       /* chunks, spilled ones included */
	uint64_t n_resident;
	struct ledger *ledger;
};

static void release_chunk(void *owner)
{
	chunk_pool_put(owner);
}

/*
 * With -u and --limit a run can be much shorter than its chunk. The rest of the memory is not used
 * again where everything fits.
 */
static void discard_rest(const struct job *job, const struct chunk *chunk)
{
	const uint64_t used_nbytes = chunk->n * job->layout->resident_nbytes;

	if (job->plan.fits)
		device_discard(job->workers[chunk->worker].device,
			       (char *)chunk->buffer + used_nbytes,
			       job->plan.chunk_nbytes - used_nbytes);
}

/* A sorted chunk whose turn has come becomes a run. */
static int add_resident(struct forming *forming, struct chunk *chunk)
{
	struct run *run;
	int r;

	ledger_add(forming->ledger, chunk->ledger);
	forming->n_collected++;
	forming->n_resident++;
	discard_rest(forming->job, chunk);
	r = run_open_resident(forming->job,
			      (struct residence){ chunk->worker, chunk->buffer, chunk->n },
			      release_chunk, chunk, &run);
	if (r < 0)
		return r;
	run_set_origin(run, chunk->ledger);
	return run_store_add(forming->store, run);
}

/* Add the chunk, and those that waited for it. */
static int collect(struct forming *forming, struct chunk *chunk)
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

static bool must_spill(const struct forming *forming)
{
	const struct plan *plan = &forming->job->plan;
	const uint64_t n_spilled = forming->n_collected - forming->n_resident;

	if (plan->fits || forming->n_resident < plan->spill_chunks)
		return false;
	if (forming->n_chunks_in_input != UINT64_MAX)
		return forming->n_chunks_in_input - n_spilled > plan->n_chunks;
	return forming->n_resident >= plan->n_chunks - plan->n_chunks / 4;
}

/* Merge the oldest resident chunks into one spilled run. */
static int spill_chunks(struct forming *forming)
{
	const struct job *job = forming->job;
	const uint64_t n = job->plan.spill_chunks;
	const size_t first = forming->store->n - forming->n_resident;
	int r = merge_to_run(job, forming->store, first, n, job->plan.merge_nbytes,
			     forming->ledger);

	forming->n_resident -= n;
	if (r == 0)
		r = run_store_check_room(forming->store, &job->plan);
	return r < 0 ? r : temporary_space_check_again(job);
}

static int collect_all(struct forming *forming)
{
	void *item;
	int r;

	while ((r = ring_pop(forming->pool->sorting, &item)) == 0) {
		struct chunk *chunk = item;

		r = chunk_pool_collect(chunk);
		if (r == 0)
			r = collect(forming, chunk);
		if (r == 0 && must_spill(forming))
			r = spill_chunks(forming);
		if (r < 0)
			break;
	}
	return r == -ENODATA ? 0 : r;
}

/* That are to be read. */
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

int form_runs(const struct job *job, struct chunk_pool *pool, struct run_store *store,
	      struct ledger *ledger)
{
	struct forming forming = {
		.job = job,
		.pool = pool,
		.store = store,
		.n_chunks_in_input = count_chunks(job),
		.ledger = ledger,
	};
	struct fill *fill;
	int r = fill_start(job, pool, &fill), read;

	if (r < 0)
		return r;
	r = collect_all(&forming);
	if (r < 0) {
		chunk_pool_fail(pool, r);
		input_cancel(job->input);
	}
	read = fill_finish(fill);
	chunk_pool_close_lanes(pool);
	return r < 0 ? r : read;
}
