/*
 * rank_stats - what each of several ranks has done, and what that comes to (see rank_stats.h)
 */
#include "src/sort/rank_stats.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/diagnostics.h"
#include "src/comm/tags.h"

/* A number of an entry, or one for each phase, or for each stage of each phase. */
struct stat_field {
	size_t offset; /* of the first */
	enum { COMBINE_SUM, COMBINE_MAX } combine;
	enum { SCOPE_ONCE, SCOPE_PHASE, SCOPE_STAGE } scope;
};

/* Whatever else is no number of the list: it does not compile. */
#define STAT_FIELD(member)                                                                         \
	_Generic(((struct rank_summary *)0)->member, uint64_t                                      \
		 : offsetof(struct rank_summary, member))

static const struct stat_field stat_fields[] = {
	{ STAT_FIELD(summary.n_records_in), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.n_records_out), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.buffer_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.chunk_nbytes), COMBINE_MAX, SCOPE_ONCE },
	{ STAT_FIELD(summary.n_runs), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.n_runs_spilled), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.n_partitions), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.n_passes), COMBINE_MAX, SCOPE_ONCE },
	{ STAT_FIELD(summary.n_windows), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.written.cached_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.written.direct_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.written.mmap_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.peak_temp_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.spilled.items_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(summary.spilled.stored_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(totals.elapsed_ns), COMBINE_MAX, SCOPE_ONCE },
	{ STAT_FIELD(totals.usage.user_ns), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(totals.usage.system_ns), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(totals.usage.peak_rss_nbytes), COMBINE_SUM, SCOPE_ONCE },
	{ STAT_FIELD(totals.phases[0].elapsed_ns), COMBINE_MAX, SCOPE_PHASE },
	{ STAT_FIELD(totals.phases[0].volumes.temporary_written_nbytes), COMBINE_SUM, SCOPE_PHASE },
	{ STAT_FIELD(totals.phases[0].volumes.temporary_read_nbytes), COMBINE_SUM, SCOPE_PHASE },
	{ STAT_FIELD(totals.phases[0].volumes.sent_nbytes), COMBINE_SUM, SCOPE_PHASE },
	{ STAT_FIELD(totals.phases[0].volumes.received_nbytes), COMBINE_SUM, SCOPE_PHASE },
	{ STAT_FIELD(totals.phases[0].stages[0].n_spans), COMBINE_SUM, SCOPE_STAGE },
	{ STAT_FIELD(totals.phases[0].stages[0].nbytes), COMBINE_SUM, SCOPE_STAGE },
	{ STAT_FIELD(totals.phases[0].stages[0].busy_ns), COMBINE_SUM, SCOPE_STAGE },
	{ STAT_FIELD(totals.phases[0].stages[0].blocked_ns), COMBINE_SUM, SCOPE_STAGE },
	{ STAT_FIELD(totals.phases[0].stages[0].active_ns), COMBINE_MAX, SCOPE_STAGE },
};

enum { N_STAT_FIELDS = sizeof stat_fields / sizeof stat_fields[0] };

static unsigned stat_field_n_numbers(const struct stat_field *field)
{
	static const unsigned n[] = {
		[SCOPE_ONCE] = 1, [SCOPE_PHASE] = N_PHASES, [SCOPE_STAGE] = N_PHASES * N_STAGES
	};

	return n[field->scope];
}

static size_t stat_offset(const struct stat_field *field, unsigned i)
{
	const unsigned phase = field->scope == SCOPE_STAGE ? i / N_STAGES : i;
	const unsigned stage = field->scope == SCOPE_STAGE ? i % N_STAGES : 0;

	return field->offset + phase * sizeof(struct phase_totals) +
	       stage * sizeof(struct stage_totals);
}

static uint64_t *number_at(struct rank_summary *entry, const struct stat_field *field, unsigned i)
{
	return (uint64_t *)(void *)((char *)entry + stat_offset(field, i));
}

static uint64_t read_number(const struct rank_summary *entry, const struct stat_field *field,
			    unsigned i)
{
	return *(const uint64_t *)(const void *)((const char *)entry + stat_offset(field, i));
}

/* A number that the table describes: the i-th of its row. */
struct stat_position {
	const struct stat_field *field;
	unsigned index;
};

static const struct stat_position first_position = { stat_fields, 0 };

static bool is_valid_position(struct stat_position position)
{
	return position.field < stat_fields + N_STAT_FIELDS;
}

static struct stat_position next_position(struct stat_position position)
{
	if (++position.index < stat_field_n_numbers(position.field))
		return position;
	return (struct stat_position){ position.field + 1, 0 };
}

static size_t count_numbers(void)
{
	size_t n = 0;

	for (const struct stat_field *field = stat_fields; field < stat_fields + N_STAT_FIELDS;
	     field++)
		n += stat_field_n_numbers(field);
	return n;
}

/* A phase has taken place where it has taken time. */
static void mark_phases_begun(struct rank_summary *entry)
{
	for (enum phase i = 0; i < N_PHASES; i++)
		entry->totals.phases[i].has_begun = entry->totals.phases[i].elapsed_ns > 0;
}

void rank_stats_add(struct rank_summary *sum, const struct rank_summary *entry)
{
	for (struct stat_position position = first_position; is_valid_position(position);
	     position = next_position(position)) {
		uint64_t *number = number_at(sum, position.field, position.index);
		const uint64_t value = read_number(entry, position.field, position.index);

		if (position.field->combine == COMBINE_SUM)
			*number += value;
		else if (*number < value)
			*number = value;
	}
	mark_phases_begun(sum);
}

static int fail_memory(const struct comm *comm)
{
	return fail(-ENOMEM, "no memory for what %u ranks have done", comm_size(comm));
}

/* What a rank sends. */
struct stats_message {
	char backend[sizeof((struct sort_summary *)0)->backend];
	uint64_t numbers[];
};

static size_t stats_message_nbytes(void)
{
	return sizeof(struct stats_message) + count_numbers() * sizeof(uint64_t);
}

static int send_rank_stats(struct comm *comm, const struct rank_summary *own_summary)
{
	struct stats_message *message = calloc(1, stats_message_nbytes());
	struct comm_transfer transfer;
	size_t n = 0;
	int r;

	if (!message)
		return fail_memory(comm);
	memcpy(message->backend, own_summary->summary.backend, sizeof message->backend);
	for (struct stat_position position = first_position; is_valid_position(position);
	     position = next_position(position))
		message->numbers[n++] = read_number(own_summary, position.field, position.index);
	r = comm_send(comm, 0, COMM_TAG_RANK_STATS, message, stats_message_nbytes(), &transfer);
	if (r == 0)
		r = comm_wait(comm, &transfer);
	free(message);
	return r;
}

/* An entry of what was sent, and with all other names of another one. */
static void decode_stats_message(const struct stats_message *message,
				 const struct rank_summary *template_entry,
				 struct rank_summary *ret_entry)
{
	const uint64_t *number = message->numbers;

	*ret_entry = *template_entry;
	memcpy(ret_entry->summary.backend, message->backend, sizeof message->backend - 1);
	for (struct stat_position position = first_position; is_valid_position(position);
	     position = next_position(position))
		*number_at(ret_entry, position.field, position.index) = *number++;
	mark_phases_begun(ret_entry);
}

static int receive_rank_stats(struct comm *comm, unsigned rank,
			      const struct rank_summary *own_summary,
			      struct rank_summary *ret_entry)
{
	const size_t nbytes = stats_message_nbytes();
	struct stats_message *message = malloc(nbytes);
	struct comm_transfer transfer;
	int r;

	if (!message)
		return fail_memory(comm);
	r = comm_receive(comm, rank, COMM_TAG_RANK_STATS, message, nbytes, &transfer);
	if (r == 0)
		r = comm_wait(comm, &transfer);
	if (r == 0)
		decode_stats_message(message, own_summary, ret_entry);
	free(message);
	return r;
}

static struct rank_stats *create_rank_stats(struct comm *comm,
					    const struct rank_summary *own_summary)
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
	stats->total = stats->ranks[0] = *own_summary;
	stats->total.summary.n_devices = 0;
	for (unsigned i = 0; i < stats->n_ranks; i++)
		strcpy(stats->hosts[i], comm_host(comm, i));
	return stats;
}

int rank_stats_gather(struct comm *comm, const struct rank_summary *own_summary,
		      struct rank_stats **ret_stats)
{
	struct rank_stats *stats;
	int r = 0;

	*ret_stats = NULL;
	if (comm_rank(comm) != 0)
		return send_rank_stats(comm, own_summary);
	stats = create_rank_stats(comm, own_summary);
	if (!stats)
		return fail_memory(comm);
	for (unsigned i = 1; i < stats->n_ranks && r == 0; i++) {
		r = receive_rank_stats(comm, i, own_summary, &stats->ranks[i]);
		if (r == 0)
			rank_stats_add(&stats->total, &stats->ranks[i]);
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
