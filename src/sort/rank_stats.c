/*
 * rank_stats.c - the table of statistics and the statistics of several ranks (see rank_stats.h)
 */
#include "src/sort/rank_stats.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/comm/comm.h"

/* The offset of a member, which must be a uint64_t. */
#define MEMBER(type, member)                                                                       \
	_Generic(((struct type *)0)->member, uint64_t : offsetof(struct type, member))
#define RUN(member) STAT_OF_RUN, MEMBER(rank_summary, member)
#define PHASE(member) STAT_OF_PHASE, MEMBER(phase_totals, member)
#define STAGE(member) STAT_OF_STAGE, MEMBER(stage_totals, member)
#define DEVICE(member) STAT_OF_DEVICE, MEMBER(device_totals, member)

static const struct stat_field stat_fields[] = {
	{ RUN(summary.record_nbytes), "record_bytes", NULL, STAT_BYTES, STAT_MAX, STAT_INPUT },
	{ RUN(summary.n_records_in), "records_in", "read", STAT_COUNT, STAT_SUM,
	  STAT_INPUT | STAT_RANK },
	{ RUN(summary.n_records_out), "records_out", "written", STAT_COUNT, STAT_SUM,
	  STAT_SORT | STAT_RANK },
	{ RUN(summary.buffer_nbytes), "memory_limit_bytes", NULL, STAT_BYTES, STAT_SUM, STAT_SORT },
	{ RUN(summary.peak_temp_nbytes), "peak_temporary_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_SORT | STAT_RANK },
	{ RUN(summary.chunk_nbytes), "chunk_bytes", NULL, STAT_BYTES, STAT_MAX, STAT_SORT },
	{ RUN(summary.n_runs), "runs", "runs", STAT_COUNT, STAT_SUM, STAT_SORT | STAT_RANK },
	{ RUN(summary.n_runs_spilled), "runs_spilled", NULL, STAT_COUNT, STAT_SUM, STAT_SORT },
	{ RUN(summary.n_passes), "passes", NULL, STAT_COUNT, STAT_MAX, STAT_SORT },
	{ RUN(summary.n_partitions), "partitions", NULL, STAT_COUNT, STAT_SUM, STAT_SORT },
	{ RUN(summary.n_windows), "windows", NULL, STAT_COUNT, STAT_SUM, STAT_SORT },
	{ RUN(summary.written.cached_nbytes), "written_cached_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_SORT },
	{ RUN(summary.written.direct_nbytes), "written_direct_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_SORT },
	{ RUN(summary.written.mmap_nbytes), "written_mmap_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_SORT },
	{ RUN(summary.spilled.items_nbytes), "spilled_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_SPILL | STAT_RANK },
	{ RUN(summary.spilled.stored_nbytes), "spilled_compressed_bytes", NULL, STAT_BYTES,
	  STAT_SUM, STAT_SPILL | STAT_RANK },
	{ RUN(volumes.temporary_written_nbytes), "temporary_written_bytes", "temp written",
	  STAT_BYTES, STAT_SUM, STAT_RANK },
	{ RUN(volumes.temporary_read_nbytes), "temporary_read_bytes", "temp read", STAT_BYTES,
	  STAT_SUM, STAT_RANK },
	{ RUN(disk_read_nbytes), "disk_read_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_RANKS | STAT_RANK },
	{ RUN(disk_written_nbytes), "disk_written_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_RANKS | STAT_RANK },
	{ RUN(volumes.sent_nbytes), "sent_bytes", "sent", STAT_BYTES, STAT_SUM,
	  STAT_RANKS | STAT_RANK },
	{ RUN(volumes.received_nbytes), "received_bytes", "received", STAT_BYTES, STAT_SUM,
	  STAT_RANK },
	{ RUN(totals.elapsed_ns), "elapsed_s", NULL, STAT_SECONDS, STAT_MAX,
	  STAT_PROCESS | STAT_TIME },
	{ RUN(totals.usage.user_ns), "user_s", NULL, STAT_SECONDS, STAT_SUM,
	  STAT_PROCESS | STAT_TIME },
	{ RUN(totals.usage.system_ns), "system_s", NULL, STAT_SECONDS, STAT_SUM,
	  STAT_PROCESS | STAT_TIME },
	{ RUN(totals.usage.peak_rss_nbytes), "peak_rss_bytes", "peak RSS", STAT_BYTES, STAT_SUM,
	  STAT_PROCESS | STAT_RANK },
	{ PHASE(elapsed_ns), "elapsed_s", NULL, STAT_SECONDS, STAT_MAX, STAT_TIME },
	{ PHASE(volumes.temporary_written_nbytes), "temporary_written_bytes", NULL, STAT_BYTES,
	  STAT_SUM, STAT_DISK },
	{ PHASE(volumes.temporary_read_nbytes), "temporary_read_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_DISK },
	{ PHASE(volumes.sent_nbytes), "sent_bytes", NULL, STAT_BYTES, STAT_SUM, STAT_NETWORK },
	{ PHASE(volumes.received_nbytes), "received_bytes", NULL, STAT_BYTES, STAT_SUM,
	  STAT_NETWORK },
	{ STAGE(n_spans), "tasks", NULL, STAT_COUNT, STAT_SUM, STAT_WORK },
	{ STAGE(nbytes), "bytes", NULL, STAT_BYTES, STAT_SUM, STAT_WORK },
	{ STAGE(busy_ns), "busy_s", NULL, STAT_SECONDS, STAT_SUM, STAT_WORK },
	{ STAGE(blocked_ns), "blocked_s", NULL, STAT_SECONDS, STAT_SUM, STAT_WORK },
	{ STAGE(active_ns), "active_s", NULL, STAT_SECONDS, STAT_MAX, STAT_WORK },
	{ DEVICE(n_chunks), "chunks", NULL, STAT_COUNT, STAT_SUM, STAT_WORK },
	{ DEVICE(sorted_nbytes), "sorted_bytes", NULL, STAT_BYTES, STAT_SUM, STAT_WORK },
	{ DEVICE(n_partitions), "partitions", NULL, STAT_COUNT, STAT_SUM, STAT_WORK },
	{ DEVICE(merged_nbytes), "merged_bytes", NULL, STAT_BYTES, STAT_SUM, STAT_WORK },
	{ DEVICE(peer_read_nbytes), "peer_read_bytes", NULL, STAT_BYTES, STAT_SUM, STAT_WORK },
	{ DEVICE(staged_read_nbytes), "staged_read_bytes", NULL, STAT_BYTES, STAT_SUM, STAT_WORK },
	{ DEVICE(busy_ns), "busy_s", NULL, STAT_SECONDS, STAT_SUM, STAT_WORK },
	{ DEVICE(active_ns), "active_s", NULL, STAT_SECONDS, STAT_MAX, STAT_WORK },
};

const struct stat_field *stat_field_next(const struct stat_field *field, enum stat_scope scope,
					 unsigned groups)
{
	const struct stat_field *end = stat_fields + sizeof stat_fields / sizeof stat_fields[0];

	for (field = field ? field + 1 : stat_fields; field < end; field++)
		if (field->scope == scope && field->groups & groups)
			return field;
	return NULL;
}

uint64_t stat_field_value(const struct stat_field *field, const void *object)
{
	return *(const uint64_t *)(const void *)((const char *)object + field->offset);
}

static void add_fields(enum stat_scope scope, void *sum, const void *object)
{
	const struct stat_field *field = NULL;

	while ((field = stat_field_next(field, scope, STAT_ALL))) {
		uint64_t *number = (uint64_t *)(void *)((char *)sum + field->offset);
		const uint64_t value = stat_field_value(field, object);

		if (field->combine == STAT_SUM)
			*number += value;
		else if (*number < value)
			*number = value;
	}
}

/* Add the statistics of one rank to the total. A phase has begun if it has taken time. */
static void add_summary(struct rank_summary *sum, const struct rank_summary *entry)
{
	add_fields(STAT_OF_RUN, sum, entry);
	sum->summary.input_nbytes += entry->summary.input_nbytes; /* in no table */
	for (enum phase i = 0; i < N_PHASES; i++) {
		struct phase_totals *phase = &sum->totals.phases[i];

		add_fields(STAT_OF_PHASE, phase, &entry->totals.phases[i]);
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			add_fields(STAT_OF_STAGE, &phase->stages[stage],
				   &entry->totals.phases[i].stages[stage]);
		phase->has_begun = phase->elapsed_ns > 0;
	}
}

/* Add up the volumes of the phases. */
static void sum_phases(struct rank_summary *entry)
{
	entry->volumes = (struct stats_volumes){ 0 };
	entry->disk_read_nbytes = entry->disk_written_nbytes = 0;
	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct phase_totals *phase = &entry->totals.phases[i];
		const struct stats_volumes *volumes = &phase->volumes;

		entry->volumes.temporary_written_nbytes += volumes->temporary_written_nbytes;
		entry->volumes.temporary_read_nbytes += volumes->temporary_read_nbytes;
		entry->volumes.sent_nbytes += volumes->sent_nbytes;
		entry->volumes.received_nbytes += volumes->received_nbytes;
		/* A check of records reads in the stage verify, one of lines in the stage read. */
		entry->disk_read_nbytes += u64_max(phase->stages[STAGE_READ].nbytes,
						   phase->stages[STAGE_VERIFY].nbytes) +
					   volumes->temporary_read_nbytes;
		entry->disk_written_nbytes +=
			phase->stages[STAGE_WRITE].nbytes + volumes->temporary_written_nbytes;
	}
}

static struct rank_stats *create_rank_stats(struct comm *comm, const struct rank_summary *own)
{
	struct rank_stats *stats = calloc(1, sizeof *stats);

	if (!stats)
		return NULL;
	stats->n_ranks = comm_size(comm);
	stats->ranks = calloc(stats->n_ranks, sizeof *stats->ranks);
	stats->hosts = calloc(stats->n_ranks, sizeof *stats->hosts);
	if (!stats->ranks || !stats->hosts) {
		rank_stats_close(stats);
		return NULL;
	}
	stats->total = stats->ranks[0] = *own;
	stats->total.summary.n_devices = 0;
	for (unsigned i = 0; i < stats->n_ranks; i++)
		strcpy(stats->hosts[i], comm_host(comm, i));
	return stats;
}

int rank_stats_gather(struct comm *comm, struct rank_summary *own, struct rank_stats **ret_stats)
{
	struct rank_stats *stats;
	int r = 0;

	*ret_stats = NULL;
	sum_phases(own);
	if (comm_rank(comm) != 0)
		return comm_send_wait(comm, 0, COMM_TAG_RANK_STATS, own, sizeof *own);
	stats = create_rank_stats(comm, own);
	if (!stats)
		return fail(-ENOMEM, "no memory for the statistics of %u ranks", comm_size(comm));
	/* All ranks have the same version and byte order, so the struct is sent as it is. */
	for (unsigned i = 1; i < stats->n_ranks && r == 0; i++) {
		struct rank_summary *entry = &stats->ranks[i];

		r = comm_receive_wait(comm, i, COMM_TAG_RANK_STATS, entry, sizeof *entry);
		entry->summary.spilled.codec = own->summary.spilled.codec; /* the only pointer */
		if (r == 0)
			add_summary(&stats->total, entry);
	}
	if (r < 0)
		rank_stats_close(stats);
	else
		*ret_stats = stats;
	return r;
}

void rank_stats_close(struct rank_stats *stats)
{
	if (!stats)
		return;
	free(stats->ranks);
	free(stats->hosts);
	free(stats);
}

double rank_stats_imbalance(const struct rank_stats *stats)
{
	const double mean = (double)stats->total.summary.n_records_out / stats->n_ranks;
	uint64_t max = 0;

	for (unsigned i = 0; i < stats->n_ranks; i++)
		if (max < stats->ranks[i].summary.n_records_out)
			max = stats->ranks[i].summary.n_records_out;
	return mean > 0 ? (double)max / mean - 1 : 0;
}
