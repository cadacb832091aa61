/*
 * run_generation - the input as sorted runs (see run_generation.h)
 *
 * Readers (chunk_reader.h) that claim chunks in order may finish them out of order; here they are
 * put back in order, so that neighbours among the runs are neighbours in the input.
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

struct run_generation {
	const struct job *job;
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
 * With -u and --limit a run can be much shorter than its chunk. The rest of the memory is not used
 * again where everything fits.
 */
static void discard_unused_tail(const struct job *job, const struct chunk *chunk)
{
	const uint64_t used_nbytes = chunk->n * job->layout->resident_nbytes;

	if (job->plan.fits_in_memory)
		device_discard(job->devices[chunk->device_index].device,
			       (char *)chunk->buffer + used_nbytes,
			       job->plan.chunk_nbytes - used_nbytes);
}

/* A sorted chunk whose turn has come becomes a run. */
static int add_resident(struct run_generation *generation, struct chunk *chunk)
{
	struct run *run;
	int r;

	record_totals_add(generation->totals, chunk->totals);
	generation->n_collected++;
	generation->n_resident++;
	discard_unused_tail(generation->job, chunk);
	r = run_open_resident(generation->job,
			      (struct resident_buffer){ chunk->device_index, chunk->buffer,
							chunk->n },
			      release_chunk, chunk, &run);
	if (r < 0)
		return r;
	run_set_origin(run, chunk->totals);
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
	const struct job *job = generation->job;
	const uint64_t n = job->plan.chunks_per_run;
	const size_t first = generation->list->n - generation->n_resident;
	int r = merge_to_run(job, generation->list, first, n, job->plan.merge_nbytes,
			     generation->totals);

	generation->n_resident -= n;
	if (r == 0)
		r = run_list_check_index_space(generation->list, &job->plan);
	return r < 0 ? r : temp_space_recheck(job);
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

int generate_runs(const struct job *job, struct chunk_pool *pool, struct run_list *list,
		  struct record_totals *totals)
{
	struct run_generation generation = {
		.job = job,
		.pool = pool,
		.list = list,
		.n_chunks_in_input = count_chunks(job),
		.totals = totals,
	};
	struct chunk_reader *reader;
	int r = chunk_reader_start(job, pool, &reader), read_result;

	if (r < 0)
		return r;
	r = collect_all(&generation);
	if (r < 0) {
		chunk_pool_fail(pool, r);
		input_cancel(job->input);
	}
	read_result = chunk_reader_finish(reader);
	chunk_pool_close_queues(pool);
	return r < 0 ? r : read_result;
}
