/*
 * rank_table - what is told of each of several ranks (see rank_table.h)
 */
#include "src/report/rank_table.h"

#include <inttypes.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format_numbers.h"

/* --- figures --- */

static uint64_t stage_nbytes(const struct rank_summary *entry, enum stage stage)
{
	uint64_t nbytes = 0;

	for (enum phase i = 0; i < N_PHASES; i++)
		nbytes += entry->totals.phases[i].stages[stage].nbytes;
	return nbytes;
}

/* Of all phases. */
static struct stats_volumes sum_volumes(const struct rank_summary *entry)
{
	struct stats_volumes sum = { 0 };

	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct stats_volumes *volumes = &entry->totals.phases[i].volumes;

		sum.temporary_written_nbytes += volumes->temporary_written_nbytes;
		sum.temporary_read_nbytes += volumes->temporary_read_nbytes;
		sum.sent_nbytes += volumes->sent_nbytes;
		sum.received_nbytes += volumes->received_nbytes;
	}
	return sum;
}

static uint64_t records_in(const struct rank_summary *entry)
{
	return entry->summary.n_records_in;
}

static uint64_t records_out(const struct rank_summary *entry)
{
	return entry->summary.n_records_out;
}

static uint64_t runs(const struct rank_summary *entry)
{
	return entry->summary.n_runs;
}

static uint64_t run_nbytes(const struct rank_summary *entry)
{
	return entry->summary.spilled.items_nbytes;
}

static uint64_t stored_nbytes(const struct rank_summary *entry)
{
	return entry->summary.spilled.stored_nbytes;
}

static uint64_t temporary_written(const struct rank_summary *entry)
{
	return sum_volumes(entry).temporary_written_nbytes;
}

static uint64_t temporary_read(const struct rank_summary *entry)
{
	return sum_volumes(entry).temporary_read_nbytes;
}

static uint64_t disk_read(const struct rank_summary *entry)
{
	return stage_nbytes(entry, STAGE_READ) + stage_nbytes(entry, STAGE_VERIFY) +
	       temporary_read(entry);
}

static uint64_t disk_written(const struct rank_summary *entry)
{
	return stage_nbytes(entry, STAGE_WRITE) + temporary_written(entry);
}

static uint64_t sent(const struct rank_summary *entry)
{
	return sum_volumes(entry).sent_nbytes;
}

static uint64_t received(const struct rank_summary *entry)
{
	return sum_volumes(entry).received_nbytes;
}

static uint64_t peak_temporary(const struct rank_summary *entry)
{
	return entry->summary.peak_temp_nbytes;
}

static uint64_t peak_rss(const struct rank_summary *entry)
{
	return entry->totals.usage.peak_rss_nbytes;
}

static const struct rank_column rank_columns[] = {
	{ "records_in", "read", false, records_in },
	{ "records_out", "written", false, records_out },
	{ "runs", "runs", false, runs },
	{ "spilled_bytes", NULL, true, run_nbytes },
	{ "spilled_compressed_bytes", "compressed", true, stored_nbytes },
	{ "temporary_written_bytes", "temp written", true, temporary_written },
	{ "temporary_read_bytes", "temp read", true, temporary_read },
	{ "disk_read_bytes", NULL, true, disk_read },
	{ "disk_written_bytes", NULL, true, disk_written },
	{ "sent_bytes", "sent", true, sent },
	{ "received_bytes", "received", true, received },
	{ "peak_temporary_bytes", NULL, true, peak_temporary },
	{ "peak_rss_bytes", "peak RSS", true, peak_rss },
};

const struct rank_column *rank_table_column(unsigned i)
{
	return i < sizeof rank_columns / sizeof rank_columns[0] ? &rank_columns[i] : NULL;
}

void rank_table_format(const struct rank_column *column, const struct rank_summary *entry,
		       char text[static 32])
{
	if (column->is_nbytes)
		size_format(column->value(entry), text);
	else
		format_count(column->value(entry), text);
}

/* --- text --- */

enum { COLUMN = 14, PHASE_COLUMN = 16 };

static void print_headings(FILE *stream)
{
	const struct rank_column *column;

	fprintf(stream, "  %-6s", "rank");
	for (unsigned i = 0; (column = rank_table_column(i)); i++)
		if (column->heading)
			fprintf(stream, "%*s", COLUMN, column->heading);
	for (enum phase i = 0; i < N_PHASES; i++)
		fprintf(stream, "%*s", PHASE_COLUMN, phase_name(i));
	fputs("  host, device\n", stream);
}

static void print_rank(const struct rank_stats *rank_stats, unsigned rank, FILE *stream)
{
	const struct rank_summary *entry = &rank_stats->ranks[rank];
	const struct rank_column *column;
	char text[32];

	fprintf(stream, "  %-6u", rank);
	for (unsigned i = 0; (column = rank_table_column(i)); i++) {
		if (!column->heading)
			continue;
		rank_table_format(column, entry, text);
		fprintf(stream, "%*s", COLUMN, text);
	}
	for (enum phase i = 0; i < N_PHASES; i++)
		fprintf(stream, "%*.3f s", PHASE_COLUMN - 2,
			ns_to_seconds(entry->totals.phases[i].elapsed_ns));
	fprintf(stream, "  %s%s%s\n", rank_stats->hosts[rank],
		entry->summary.backend[0] ? ", " : "", entry->summary.backend);
}

static void print_rank_stats_totals(const struct rank_stats *rank_stats, FILE *stream)
{
	char read[32], written[32], messages[32];

	size_format(disk_read(&rank_stats->total), read);
	size_format(disk_written(&rank_stats->total), written);
	size_format(sent(&rank_stats->total), messages);
	fprintf(stream,
		"%u ranks; read from disks: %s; written to disks: %s; sent between ranks: %s; "
		"imbalance of the output: %.2f %%\n",
		rank_stats->n_ranks, read, written, messages,
		100 * rank_stats_imbalance(rank_stats));
}

void rank_table_print(const struct rank_stats *rank_stats, FILE *stream)
{
	print_rank_stats_totals(rank_stats, stream);
	print_headings(stream);
	for (unsigned i = 0; i < rank_stats->n_ranks; i++)
		print_rank(rank_stats, i, stream);
}

/* --- JSON --- */

static void write_rank_values(const struct rank_summary *entry, FILE *stream)
{
	const struct rank_column *column;

	for (unsigned i = 0; (column = rank_table_column(i)); i++)
		fprintf(stream, "\"%s\": %" PRIu64 ", ", column->key, column->value(entry));
}

static void write_times(const struct stats_totals *totals, FILE *stream)
{
	const char *comma = "";

	fprintf(stream, "\"elapsed_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"phases\": [",
		ns_to_seconds(totals->elapsed_ns), ns_to_seconds(totals->usage.user_ns),
		ns_to_seconds(totals->usage.system_ns));
	for (enum phase i = 0; i < N_PHASES; i++) {
		if (!totals->phases[i].has_begun)
			continue;
		fprintf(stream, "%s{\"name\": \"%s\", \"elapsed_s\": %.6f}", comma, phase_key(i),
			ns_to_seconds(totals->phases[i].elapsed_ns));
		comma = ", ";
	}
	fputs("]", stream);
}

/*
 * Names of machines are what somebody has set, and those of devices a driver: nothing that JSON
 * would have to escape is left.
 */
static void write_name(const char *key, const char *text, FILE *stream)
{
	fprintf(stream, "\"%s\": \"", key);
	for (; *text; text++)
		fputc(*text < ' ' || strchr("\"\\\177", *text) ? '?' : *text, stream);
	fputs("\", ", stream);
}

static void write_rank(const struct rank_stats *rank_stats, unsigned rank, FILE *stream)
{
	const char *backend = rank_stats->ranks[rank].summary.backend;

	fprintf(stream, "%s\n    {\"rank\": %u, ", rank ? "," : "", rank);
	write_name("host", rank_stats->hosts[rank], stream);
	if (backend[0]) /* a check has none */
		write_name("device", backend, stream);
	write_rank_values(&rank_stats->ranks[rank], stream);
	write_times(&rank_stats->ranks[rank].totals, stream);
	fputs("}", stream);
}

void rank_table_write_json(const struct rank_stats *rank_stats, FILE *stream)
{
	fprintf(stream,
		"  \"disk_read_bytes\": %" PRIu64 ",\n  \"disk_written_bytes\": %" PRIu64
		",\n  \"sent_bytes\": %" PRIu64 ",\n  \"imbalance_percent\": %.4f,\n  \"ranks\": [",
		disk_read(&rank_stats->total), disk_written(&rank_stats->total),
		sent(&rank_stats->total), 100 * rank_stats_imbalance(rank_stats));
	for (unsigned i = 0; i < rank_stats->n_ranks; i++)
		write_rank(rank_stats, i, stream);
	fprintf(stream, "],\n");
}
