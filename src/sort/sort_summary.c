/*
 * sort_summary - what is known about a sort when it is done (see sort_summary.h)
 */
#include "src/sort/sort_summary.h"

#include <string.h>

#include "src/rungen/chunk_pool.h"
#include "src/cost/calibrate.h"
#include "src/comm/comm.h"
#include "src/sort/sort_internal.h"

static void ask_volumes(void *context, struct stats_volumes *ret_volumes)
{
	const struct sort *sort = context;
	struct ranks_traffic wire = { 0 };
	struct spill_traffic disk = { 0 };

	if (sort->spec->ranks)
		ranks_get_traffic(sort->spec->ranks, &wire);
	if (sort->job.spill)
		disk = spill_traffic(sort->job.spill);
	*ret_volumes = (struct stats_volumes){
		.temporary_written_nbytes = disk.written_nbytes,
		.temporary_read_nbytes = disk.read_nbytes,
		.sent_nbytes = wire.sent_nbytes,
		.received_nbytes = wire.received_nbytes,
		.wire_sent_nbytes = wire.wire_sent_nbytes,
		.wire_received_nbytes = wire.wire_received_nbytes,
	};
}

void facts_watch(struct sort *sort)
{
	stats_watch_volumes(sort->job.stats, ask_volumes, sort);
}

void facts_look_away(const struct sort *sort)
{
	stats_watch_volumes(sort->job.stats, NULL, NULL);
}

void facts_note_plan(const struct plan *plan, struct sort_facts *facts)
{
	memcpy(facts->backend, plan->device, sizeof facts->backend);
	facts->plan = *plan;
	facts->buffer_nbytes = plan->memory_nbytes + plan->exchange_nbytes;
	facts->chunk_nbytes = plan->n_chunks ? plan->chunk_records * plan->record_nbytes : 0;
	facts->input_is_mapped = plan->mapped_nbytes > 0;
}

static void measure_ceilings(struct sort *sort)
{
	struct job *job = &sort->job;
	struct stats_totals totals;
	struct link_request request;
	struct link_rates rates;

	stats_get_totals(job->stats, &totals);
	if (!rates_request_after(&totals, rates_trial_nbytes(&job->plan), &request))
		return;
	run_store_free(&sort->store);
	chunk_pool_close(job->pool);
	job->pool = NULL;
	rates_measure(job, sort->spec, &request, &rates);
	memcpy(sort->facts.ceilings, rates.rates, sizeof rates.rates);
}

static void note_devices(const struct job *job, struct sort_facts *facts)
{
	facts->n_devices = job->n_workers > 1 ? job->n_workers : 0;
	for (uint32_t i = 0; i < facts->n_devices; i++) {
		facts->devices[i].number = job->workers[i].number;
		facts->devices[i].place = job->workers[i].place;
	}
}

void facts_note(struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct account *account = &sort->account;
	struct sort_facts *facts = &sort->facts;

	facts_note_plan(&job->plan, facts);
	keys_format(sort->spec->keys, sort->spec->n_keys, sort->spec->record_nbytes, facts->type);
	facts->record_nbytes = job->layout->record_nbytes;
	facts->n_records_in = account->ledger.read.n_records;
	facts->n_records_out = account->result.n_items;
	facts->n_windows = account->result.n_windows;
	facts->n_ranges = sort->result.n_ranges;
	facts->written = sort->result.ways;
	note_devices(job, facts);
	if (job->spill) {
		facts->peak_temp_nbytes = spill_peak_nbytes(job->spill);
		facts->spilled = compression_totals(job->compression);
	}
	stats_finish(job->stats);
	if (sort->spec->measures_ceilings)
		measure_ceilings(sort);
}
