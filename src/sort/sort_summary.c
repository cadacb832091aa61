/*
 * sort_summary - what is known about a sort when it is done (see sort_summary.h)
 */
#include "src/sort/sort_summary.h"

#include <string.h>

#include "src/rungen/chunk_pool.h"
#include "src/cost/calibrate.h"
#include "src/comm/comm.h"
#include "src/sort/sort_internal.h"

static void get_sort_volumes(void *context, struct stats_volumes *ret_volumes)
{
	const struct sort *sort = context;
	struct comm_traffic network = { 0 };
	struct spill_traffic disk = { 0 };

	if (sort->spec->comm)
		comm_get_traffic(sort->spec->comm, &network);
	if (sort->job.spill)
		disk = spill_traffic(sort->job.spill);
	*ret_volumes = (struct stats_volumes){
		.temporary_written_nbytes = disk.written_nbytes,
		.temporary_read_nbytes = disk.read_nbytes,
		.sent_nbytes = network.sent_nbytes,
		.received_nbytes = network.received_nbytes,
	};
}

void sort_summary_attach_stats(struct sort *sort)
{
	stats_set_volume_source(sort->job.stats, get_sort_volumes, sort);
}

void sort_summary_detach_stats(const struct sort *sort)
{
	stats_set_volume_source(sort->job.stats, NULL, NULL);
}

void sort_summary_set_plan(const struct plan *plan, struct sort_summary *summary)
{
	memcpy(summary->backend, plan->device, sizeof summary->backend);
	summary->plan = *plan;
	summary->buffer_nbytes = plan->memory_nbytes + plan->exchange_nbytes;
	summary->chunk_nbytes = plan->n_chunks ? plan->chunk_records * plan->record_nbytes : 0;
	summary->input_is_mapped = plan->mapped_nbytes > 0;
}

static void measure_peak_rates(struct sort *sort)
{
	struct job *job = &sort->job;
	struct stats_totals totals;
	struct calibration_request request;
	struct stage_rates rates;

	stats_get_totals(job->stats, &totals);
	if (!calibrate_request_from_stats(&totals, calibrate_max_nbytes(&job->plan), &request))
		return;
	run_list_free(&sort->store);
	chunk_pool_close(job->chunk_pool);
	job->chunk_pool = NULL;
	calibrate_stages(job, sort->spec, &request, &rates);
	memcpy(sort->summary.peak_rates, rates.bytes_per_s, sizeof rates.bytes_per_s);
}

static void record_devices(const struct job *job, struct sort_summary *summary)
{
	summary->n_devices = job->n_devices > 1 ? job->n_devices : 0;
	for (uint32_t i = 0; i < summary->n_devices; i++) {
		summary->devices[i].number = job->devices[i].ordinal;
		summary->devices[i].ordinal = job->devices[i].stats_index;
	}
}

void sort_summary_collect(struct sort *sort)
{
	const struct job *job = &sort->job;
	const struct integrity *integrity = &sort->integrity;
	struct sort_summary *summary = &sort->summary;

	sort_summary_set_plan(&job->plan, summary);
	keys_format(sort->spec->keys, sort->spec->n_keys, sort->spec->record_nbytes, summary->type);
	summary->record_nbytes = job->layout->record_nbytes;
	summary->n_records_in = integrity->totals.read.n_records;
	summary->n_records_out = integrity->result.n_items;
	summary->n_windows = integrity->result.n_windows;
	summary->n_partitions = sort->output.n_partitions;
	summary->written = sort->output.io_stats;
	record_devices(job, summary);
	if (job->spill) {
		summary->peak_temp_nbytes = spill_peak_nbytes(job->spill);
		summary->spilled = compression_totals(job->compression);
	}
	stats_finish(job->stats);
	if (sort->spec->measure_peak_rates)
		measure_peak_rates(sort);
}
