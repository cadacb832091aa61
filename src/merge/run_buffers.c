/*
 * run_buffers - what the runs of a merge offer to a window, before it is cut (see run_buffers.h)
 */
#include "src/merge/run_buffers.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/merge/run_buffers_internal.h"

/* First keys of runs in device memory. */
static int sample(struct supply *supply, uint64_t stride)
{
	int r = 0;

	for (uint32_t i = 0; i < supply->n_shares && r == 0; i++)
		r = homes_sample(&supply->homes, supply->shares[i].run, stride);
	return r < 0 ? r : homes_wait(&supply->homes);
}

/* If something is to be read: by whom. */
static int open_crew(struct supply *supply)
{
	uint32_t n_read = 0, n_fetchers = supply->job->plan.n_fetchers;
	int r;

	for (uint32_t i = 0; i < supply->n_shares; i++)
		n_read += share_is_read(&supply->shares[i]);
	if (n_read == 0)
		return 0;
	r = crew_open(n_fetchers < n_read ? n_fetchers : n_read, &supply->crew);
	return r < 0 ? fail(r, "no memory for %u readers", n_fetchers) : 0;
}

/* Of a record that is on its way to the device, in host memory; 0: none is. */
static size_t staged_nbytes(const struct supply *supply)
{
	const struct layout *layout = supply->job->layout;
	size_t most = 0;

	for (uint32_t i = 0; supply->job->plan.copies && i < supply->n_shares; i++) {
		const struct share *share = &supply->shares[i];
		size_t nbytes = 0;

		if (share_is_read(share))
			nbytes = layout->item_nbytes;
		else if (share->away)
			nbytes = layout->resident_nbytes;
		most = nbytes > most ? nbytes : most;
	}
	return most;
}

/* Where to what comes from elsewhere, if that cannot be device memory. */
static int open_staging(struct supply *supply)
{
	const struct job *job = supply->job;
	void *staging;
	int r;

	supply->staging_nbytes = supply->capacity_records * staged_nbytes(supply);
	if (supply->staging_nbytes == 0)
		return 0;
	r = device_alloc(job_device(job), MEMORY_HOST, supply->staging_nbytes, &staging);
	if (r < 0)
		return fail_hint(r, HINT_LESS_MEMORY, 0, "no pinned memory to read runs into: %m");
	supply->staging = staging;
	return 0;
}

static int start(struct supply *supply, struct run *const *runs, uint64_t resident_stride)
{
	const struct job *job = supply->job;
	int r;

	supply->available = calloc(supply->n_shares, sizeof *supply->available);
	if (!supply->available)
		return fail(-ENOMEM, "no memory for a merge of %u runs", supply->n_shares);
	r = homes_open(job, runs, supply->n_shares, &supply->homes);
	if (r < 0)
		return r;
	supply->lane = supply->homes.of[job->worker].lane;
	supply->mark = supply->homes.of[job->worker].mark;
	r = open_crew(supply);
	if (r == 0)
		r = open_staging(supply);
	return r < 0 ? r : sample(supply, resident_stride);
}

/* A run is merged from where it is if this device can read it there. */
static struct share share_of(const struct job *job, struct run *run)
{
	const char *memory = run_memory(run);
	const bool is_here = run_is_reached(job, run);

	return (struct share){
		.run = run,
		.memory = is_here ? memory : NULL,
		.away = is_here ? NULL : memory,
	};
}

int supply_open(const struct job *job, struct run *const *runs, uint32_t n_runs,
		const struct window_plan *windows, struct supply **ret_supply)
{
	struct supply *supply = calloc(1, sizeof *supply + n_runs * sizeof supply->shares[0]);
	int r;

	if (!supply)
		return fail(-ENOMEM, "no memory for a merge of %u runs", n_runs);
	supply->job = job;
	supply->capacity_records = windows->capacity_records;
	supply->n_shares = n_runs;
	for (uint32_t i = 0; i < n_runs; i++)
		supply->shares[i] = share_of(job, runs[i]);
	r = start(supply, runs, windows->resident_stride);
	if (r < 0) {
		supply_close(supply);
		return r;
	}
	*ret_supply = supply;
	return 0;
}

void supply_close(struct supply *supply)
{
	if (!supply)
		return;
	homes_close(&supply->homes);
	crew_close(supply->crew);
	device_release(job_device(supply->job), MEMORY_HOST, supply->staging,
		       supply->staging_nbytes);
	free(supply->available);
	unpacking_free(&supply->unpacking);
	free(supply);
}

int supply_load_item(void *context, struct run *run, uint64_t block, void *item)
{
	struct supply *supply = context;
	const struct job *job = supply->job;
	const size_t item_nbytes = job->layout->item_nbytes;
	const char *memory = run_memory(run);
	int r;

	if (!memory)
		return run_read_first_item(run, block, item);
	r = lane_copy(homes_lane(&supply->homes, run), item,
		      memory + run_block_start(run, block) * item_nbytes, item_nbytes);
	return r < 0 ? r : homes_wait(&supply->homes);
}

int supply_cut(struct supply *supply, const struct splitter *splitter, uint32_t slice,
	       uint64_t *ret_cuts)
{
	int r = lane_cut(supply->lane, &(struct cut_op){
					       .layout = supply->job->layout,
					       .slices = supply->available,
					       .k = supply->n_shares,
					       .key = splitter->key,
					       .slice = slice,
					       .ret_cuts = ret_cuts,
				       });

	return r < 0 ? r : lane_wait(supply->lane, supply->mark);
}

uint64_t supply_n_available(const struct supply *supply, uint32_t i)
{
	return supply->available[i].n;
}

/* What of the slices is, or was, with other devices: read there, or by way of the host. */
static void count_foreign(const struct supply *supply, const struct slice *slices)
{
	const struct job *job = supply->job;
	struct device_totals foreign = { 0 };

	for (uint32_t i = 0; i < supply->n_shares; i++) {
		const struct share *share = &supply->shares[i];
		const uint64_t nbytes = slices[i].n * job->layout->resident_nbytes;

		if (share->away)
			foreign.away_nbytes += nbytes;
		else if (share->memory && run_worker(share->run) != job->worker)
			foreign.peer_nbytes += nbytes;
	}
	stats_add_device(job->stats, job->workers[job->worker].place, &foreign);
}

uint64_t supply_take(struct supply *supply, const uint64_t *cuts, struct slice *slices)
{
	const uint64_t resident_nbytes = supply->job->layout->resident_nbytes;
	uint64_t n = 0;

	for (uint32_t i = 0; i < supply->n_shares; i++) {
		struct share *share = &supply->shares[i];
		const struct slice *available = &supply->available[i];
		const uint64_t taken = cuts ? cuts[i] : available->n;

		slices[i] = (struct slice){ .elements = available->elements, .n = taken };
		share->rest = (const char *)available->elements + taken * resident_nbytes;
		share->n_rest = available->n - taken;
		share->position += taken;
		n += taken;
	}
	count_foreign(supply, slices);
	return n;
}

struct ledger supply_ledger(const struct supply *supply)
{
	struct ledger sum = { 0 };

	for (uint32_t i = 0; i < supply->n_shares; i++)
		ledger_add(&sum, supply->shares[i].ledger);
	return sum;
}
