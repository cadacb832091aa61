/*
 * rank_table - what is told of each of several ranks (see rank_table.h)
 */
#include "src/report/rank_table.h"

#include <inttypes.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format_numbers.h"

/* --- figures --- */

static uint64_t stage_nbytes(const struct census_entry *entry, enum stage stage)
{
	uint64_t nbytes = 0;

	for (enum phase i = 0; i < N_PHASES; i++)
		nbytes += entry->totals.phases[i].stages[stage].nbytes;
	return nbytes;
}

/* Of all phases. */
static struct stats_volumes volumes_of(const struct census_entry *entry)
{
	struct stats_volumes sum = { 0 };

	for (enum phase i = 0; i < N_PHASES; i++) {
		const struct stats_volumes *volumes = &entry->totals.phases[i].volumes;

		sum.temporary_written_nbytes += volumes->temporary_written_nbytes;
		sum.temporary_read_nbytes += volumes->temporary_read_nbytes;
		sum.sent_nbytes += volumes->sent_nbytes;
		sum.received_nbytes += volumes->received_nbytes;
		sum.wire_sent_nbytes += volumes->wire_sent_nbytes;
		sum.wire_received_nbytes += volumes->wire_received_nbytes;
	}
	return sum;
}

static uint64_t records_in(const struct census_entry *entry)
{
	return entry->facts.n_records_in;
}

static uint64_t records_out(const struct census_entry *entry)
{
	return entry->facts.n_records_out;
}

static uint64_t runs(const struct census_entry *entry)
{
	return entry->facts.n_runs;
}

static uint64_t run_nbytes(const struct census_entry *entry)
{
	return entry->facts.spilled.items_nbytes;
}

static uint64_t stored_nbytes(const struct census_entry *entry)
{
	return entry->facts.spilled.stored_nbytes;
}

static uint64_t temporary_written(const struct census_entry *entry)
{
	return volumes_of(entry).temporary_written_nbytes;
}

static uint64_t temporary_read(const struct census_entry *entry)
{
	return volumes_of(entry).temporary_read_nbytes;
}

static uint64_t disk_read(const struct census_entry *entry)
{
	return stage_nbytes(entry, STAGE_READ) + stage_nbytes(entry, STAGE_VERIFY) +
	       temporary_read(entry);
}

static uint64_t disk_written(const struct census_entry *entry)
{
	return stage_nbytes(entry, STAGE_WRITE) + temporary_written(entry);
}

static uint64_t sent(const struct census_entry *entry)
{
	return volumes_of(entry).sent_nbytes;
}

static uint64_t received(const struct census_entry *entry)
{
	return volumes_of(entry).received_nbytes;
}

static uint64_t wire_sent(const struct census_entry *entry)
{
	return volumes_of(entry).wire_sent_nbytes;
}

static uint64_t wire_received(const struct census_entry *entry)
{
	return volumes_of(entry).wire_received_nbytes;
}

static uint64_t peak_temporary(const struct census_entry *entry)
{
	return entry->facts.peak_temp_nbytes;
}

static uint64_t peak_rss(const struct census_entry *entry)
{
	return entry->totals.usage.peak_rss_nbytes;
}

static const struct by_rank_figure figures[] = {
	{ "records_in", "read", false, records_in },
	{ "records_out", "written", false, records_out },
	{ "runs", "runs", false, runs },
	{ "spilled_bytes", NULL, true, run_nbytes },
	{ "spilled_compressed_bytes", "compressed", true, stored_nbytes },
	{ "temporary_written_bytes", "temp written", true, temporary_written },
	{ "temporary_read_bytes", "temp read", true, temporary_read },
	{ "disk_read_bytes", NULL, true, disk_read },
	{ "disk_written_bytes", NULL, true, disk_written },
	{ "sent_bytes", NULL, true, sent },
	{ "received_bytes", NULL, true, received },
	{ "wire_sent_bytes", "sent", true, wire_sent },
	{ "wire_received_bytes", "received", true, wire_received },
	{ "peak_temporary_bytes", NULL, true, peak_temporary },
	{ "peak_rss_bytes", "peak RSS", true, peak_rss },
};

const struct by_rank_figure *by_rank_figure(unsigned i)
{
	return i < sizeof figures / sizeof figures[0] ? &figures[i] : NULL;
}

void by_rank_format(const struct by_rank_figure *figure, const struct census_entry *entry,
		    char text[static 32])
{
	if (figure->is_nbytes)
		size_format(figure->of(entry), text);
	else
		figures_count(figure->of(entry), text);
}

/* --- text --- */

enum { COLUMN = 14, PHASE_COLUMN = 16 };

static void print_headings(FILE *stream)
{
	const struct by_rank_figure *figure;

	fprintf(stream, "  %-6s", "rank");
	for (unsigned i = 0; (figure = by_rank_figure(i)); i++)
		if (figure->heading)
			fprintf(stream, "%*s", COLUMN, figure->heading);
	for (enum phase i = 0; i < N_PHASES; i++)
		fprintf(stream, "%*s", PHASE_COLUMN, phase_name(i));
	fputs("  host, device\n", stream);
}

static void print_rank(const struct census *census, unsigned rank, FILE *stream)
{
	const struct census_entry *entry = &census->ranks[rank];
	const struct by_rank_figure *figure;
	char text[32];

	fprintf(stream, "  %-6u", rank);
	for (unsigned i = 0; (figure = by_rank_figure(i)); i++) {
		if (!figure->heading)
			continue;
		by_rank_format(figure, entry, text);
		fprintf(stream, "%*s", COLUMN, text);
	}
	for (enum phase i = 0; i < N_PHASES; i++)
		fprintf(stream, "%*.3f s", PHASE_COLUMN - 2,
			figures_s(entry->totals.phases[i].elapsed_ns));
	fprintf(stream, "  %s%s%s\n", census->hosts[rank], entry->facts.backend[0] ? ", " : "",
		entry->facts.backend);
}

static void print_whole(const struct census *census, FILE *stream)
{
	char read[32], written[32], data[32], wire[32];

	size_format(disk_read(&census->all), read);
	size_format(disk_written(&census->all), written);
	size_format(sent(&census->all), data);
	size_format(wire_sent(&census->all), wire);
	fprintf(stream,
		"%u ranks; read from disks: %s; written to disks: %s; sent between ranks: %s, with "
		"message headers %s; imbalance of the output: %.2f %%\n",
		census->n, read, written, data, wire, 100 * census_imbalance(census));
}

void by_rank_print(const struct census *census, FILE *stream)
{
	print_whole(census, stream);
	print_headings(stream);
	for (unsigned i = 0; i < census->n; i++)
		print_rank(census, i, stream);
}

/* --- JSON --- */

static void write_figures(const struct census_entry *entry, FILE *stream)
{
	const struct by_rank_figure *figure;

	for (unsigned i = 0; (figure = by_rank_figure(i)); i++)
		fprintf(stream, "\"%s\": %" PRIu64 ", ", figure->key, figure->of(entry));
}

static void write_times(const struct stats_totals *totals, FILE *stream)
{
	const char *comma = "";

	fprintf(stream, "\"elapsed_s\": %.6f, \"user_s\": %.6f, \"system_s\": %.6f, \"phases\": [",
		figures_s(totals->elapsed_ns), figures_s(totals->usage.user_ns),
		figures_s(totals->usage.system_ns));
	for (enum phase i = 0; i < N_PHASES; i++) {
		if (!totals->phases[i].has_begun)
			continue;
		fprintf(stream, "%s{\"name\": \"%s\", \"elapsed_s\": %.6f}", comma, phase_key(i),
			figures_s(totals->phases[i].elapsed_ns));
		comma = ", ";
	}
	fputs("]", stream);
}

/*
 * Names of machines are what somebody has set, and those of devices a driver: nothing that JSON
 * would have to escape is left.
 */
static void write_name(const char *key, const char *name, FILE *stream)
{
	fprintf(stream, "\"%s\": \"", key);
	for (; *name; name++)
		fputc(*name < ' ' || strchr("\"\\\177", *name) ? '?' : *name, stream);
	fputs("\", ", stream);
}

static void write_rank(const struct census *census, unsigned rank, FILE *stream)
{
	const char *backend = census->ranks[rank].facts.backend;

	fprintf(stream, "%s\n    {\"rank\": %u, ", rank ? "," : "", rank);
	write_name("host", census->hosts[rank], stream);
	if (backend[0]) /* a check has none */
		write_name("device", backend, stream);
	write_figures(&census->ranks[rank], stream);
	write_times(&census->ranks[rank].totals, stream);
	fputs("}", stream);
}

void by_rank_write_json(const struct census *census, FILE *stream)
{
	fprintf(stream,
		"  \"disk_read_bytes\": %" PRIu64 ",\n  \"disk_written_bytes\": %" PRIu64
		",\n  \"sent_bytes\": %" PRIu64 ",\n  \"wire_sent_bytes\": %" PRIu64
		",\n  \"imbalance_percent\": %.4f,\n  \"ranks\": [",
		disk_read(&census->all), disk_written(&census->all), sent(&census->all),
		wire_sent(&census->all), 100 * census_imbalance(census));
	for (unsigned i = 0; i < census->n; i++)
		write_rank(census, i, stream);
	fprintf(stream, "],\n");
}
