/*
 * stats_report - the statistics of a sort as text and as JSON (see stats_report.h)
 */
#include "src/report/stats_report.h"

#include <inttypes.h>
#include <string.h>

#include "config.h"
#include "src/base/size.h"
#include "src/report/format_numbers.h"

/* --- ranks --- */

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
		sum.wire_sent_nbytes += volumes->wire_sent_nbytes;
		sum.wire_received_nbytes += volumes->wire_received_nbytes;
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

static uint64_t wire_sent(const struct rank_summary *entry)
{
	return sum_volumes(entry).wire_sent_nbytes;
}

static uint64_t wire_received(const struct rank_summary *entry)
{
	return sum_volumes(entry).wire_received_nbytes;
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
	{ "sent_bytes", NULL, true, sent },
	{ "received_bytes", NULL, true, received },
	{ "wire_sent_bytes", "sent", true, wire_sent },
	{ "wire_received_bytes", "received", true, wire_received },
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
	char read[32], written[32], data[32], wire[32];

	size_format(disk_read(&rank_stats->total), read);
	size_format(disk_written(&rank_stats->total), written);
	size_format(sent(&rank_stats->total), data);
	size_format(wire_sent(&rank_stats->total), wire);
	fprintf(stream,
		"%u ranks; read from disks: %s; written to disks: %s; sent between ranks: %s, with "
		"message headers %s; imbalance of the output: %.2f %%\n",
		rank_stats->n_ranks, read, written, data, wire,
		100 * rank_stats_imbalance(rank_stats));
}

static void rank_table_print(const struct rank_stats *rank_stats, FILE *stream)
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

static void rank_table_write_json(const struct rank_stats *rank_stats, FILE *stream)
{
	fprintf(stream,
		"  \"disk_read_bytes\": %" PRIu64 ",\n  \"disk_written_bytes\": %" PRIu64
		",\n  \"sent_bytes\": %" PRIu64 ",\n  \"wire_sent_bytes\": %" PRIu64
		",\n  \"imbalance_percent\": %.4f,\n  \"ranks\": [",
		disk_read(&rank_stats->total), disk_written(&rank_stats->total),
		sent(&rank_stats->total), wire_sent(&rank_stats->total),
		100 * rank_stats_imbalance(rank_stats));
	for (unsigned i = 0; i < rank_stats->n_ranks; i++)
		write_rank(rank_stats, i, stream);
	fprintf(stream, "],\n");
}

/* --- the whole, phases and stages --- */

/* What the two reports share, computed once. */
struct stats_report_data {
	const char *type;
	const struct sort_summary *summary;
	struct stats_totals totals;
	double elapsed_s, user_s, system_s;
	uint64_t input_nbytes, peak_rss_nbytes;
};

const struct sort_summary *stats_report_summary(const struct stats_report *report)
{
	return report->rank_stats ? &report->rank_stats->total.summary : report->summary;
}

void stats_report_totals(const struct stats_report *report, struct stats_totals *ret_totals)
{
	if (report->rank_stats)
		*ret_totals = report->rank_stats->total.totals;
	else
		stats_get_totals(report->stats, ret_totals);
}

static struct stats_report_data collect_report_data(const struct stats_report *report)
{
	const struct sort_summary *summary = stats_report_summary(report);
	struct stats_report_data data = { .type = summary->type, .summary = summary };

	stats_report_totals(report, &data.totals);
	data.input_nbytes = summary->n_records_in * summary->record_nbytes;
	data.elapsed_s = ns_to_seconds(data.totals.elapsed_ns);
	data.user_s = ns_to_seconds(data.totals.usage.user_ns);
	data.system_s = ns_to_seconds(data.totals.usage.system_ns);
	data.peak_rss_nbytes = data.totals.usage.peak_rss_nbytes;
	return data;
}

/* ", 97 % of 5.9 GiB/s peak": the rate compared with the peak rate of the stage. */
static void print_peak_rate(const struct stage_totals *totals, double peak_rate, FILE *stream)
{
	const double rate = (double)totals->nbytes / ns_to_seconds(totals->active_ns);
	char text[32];

	if (peak_rate <= 0 || totals->nbytes == 0)
		return;
	size_format((uint64_t)peak_rate, text);
	fprintf(stream, ", %.0f %% of %s/s peak", 100 * rate / peak_rate, text);
}

static void print_stage(const struct stage_totals *totals, const char *name, uint64_t phase_ns,
			FILE *stream)
{
	char size[32], rate[40];

	size_format(totals->nbytes, size);
	format_rate(totals->nbytes, ns_to_seconds(totals->active_ns), rate);
	fprintf(stream, "  %-10s %12s %9.3f s %9.3f s %6.0f %% %14s", name, size,
		ns_to_seconds(totals->busy_ns), ns_to_seconds(totals->blocked_ns),
		100 * ns_to_seconds(totals->active_ns) / ns_to_seconds(phase_ns ? phase_ns : 1),
		rate);
}

static void print_phase(const struct phase_totals *phase, const struct sort_summary *summary,
			const char *name, FILE *stream)
{
	const enum stage bottleneck = phase_bottleneck(phase);

	fprintf(stream, "%s: %.3f s\n", name, ns_to_seconds(phase->elapsed_ns));
	if (phase_longest_stage(phase) == N_STAGES)
		return;
	fprintf(stream, "  %-10s %12s %11s %11s %8s %14s\n", "stage", "bytes", "busy", "blocked",
		"active", "rate");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const struct stage_totals *totals = &phase->stages[stage];

		if (stage_is_idle(totals))
			continue;
		print_stage(totals, stage_name(stage), phase->elapsed_ns, stream);
		if (stage == bottleneck) {
			fputs("  <- bottleneck", stream);
			print_peak_rate(totals, summary->peak_rates[stage], stream);
		}
		fputc('\n', stream);
	}
}

static void print_spilled(const struct compression_totals *spilled, FILE *stream)
{
	char items[32], stored[32];

	size_format(spilled->items_nbytes, items);
	size_format(spilled->stored_nbytes, stored);
	fprintf(stream, "\nspilled: %s, compressed to %s (%.1f %%) with %s", items, stored,
		spill_ratio_percent(spilled), spilled->codec);
}

static void print_io_modes(const struct file_writer_stats *written, FILE *stream)
{
	char cached[32], direct[32], mapped[32];

	size_format(written->cached_nbytes, cached);
	size_format(written->direct_nbytes, direct);
	size_format(written->mmap_nbytes, mapped);
	fprintf(stream, "\nwritten: %s cached, %s direct, %s mmap", cached, direct, mapped);
}

/* What only a sort has. */
static void print_sort_details(const struct sort_summary *summary, FILE *stream)
{
	char buffer[32], chunk[32], temp[32];

	size_format(summary->buffer_nbytes, buffer);
	size_format(summary->chunk_nbytes, chunk);
	size_format(summary->peak_temp_nbytes, temp);
	fprintf(stream,
		"; %s\nruns: %" PRIu64 ", spilled runs: %" PRIu64 "; chunks: %s%s; passes: %" PRIu64
		"; partitions: %" PRIu64 "; windows: %" PRIu64
		"; memory limit: %s; peak temporary space: %s",
		summary->backend, summary->n_runs, summary->n_runs_spilled, chunk,
		summary->input_is_mapped ? " of the mapped input" : "", summary->n_passes,
		summary->n_partitions, summary->n_windows, buffer, temp);
	if (summary->spilled.items_nbytes)
		print_spilled(&summary->spilled, stream);
	if (summary->written.direct_nbytes + summary->written.mmap_nbytes)
		print_io_modes(&summary->written, stream);
}

static void print_sort_summary(const struct stats_report_data *data, FILE *stream)
{
	const struct sort_summary *summary = data->summary;
	const bool is_sort = summary->backend[0];
	char input[32], rate[40];

	size_format(data->input_nbytes, input);
	format_rate(data->input_nbytes, data->elapsed_s, rate);
	fprintf(stream, "%" PRIu64 " records of %s (%s) read", summary->n_records_in, data->type,
		input);
	if (is_sort)
		fprintf(stream, ", %" PRIu64 " written", summary->n_records_out);
	fprintf(stream, ", %s", rate);
	if (is_sort)
		print_sort_details(summary, stream);
	fputc('\n', stream);
}

static void print_device(const struct stats_report_data *data, uint32_t i, FILE *stream)
{
	const struct sort_summary *summary = data->summary;
	const struct device_totals *totals = &data->totals.devices[summary->devices[i].ordinal - 1];
	char name[32], sorted[32], merged[32], peer[32], staged[32];

	snprintf(name, sizeof name, "%" PRIu32 " (GPU %u)", summary->devices[i].ordinal,
		 summary->devices[i].number);
	size_format(totals->sorted_nbytes, sorted);
	size_format(totals->merged_nbytes, merged);
	size_format(totals->peer_read_nbytes, peer);
	size_format(totals->staged_read_nbytes, staged);
	fprintf(stream, "  %-10s %8" PRIu64 " %12s %10" PRIu64 " %12s %12s %12s %9.3f s %6.0f %%\n",
		name, totals->n_chunks, sorted, totals->n_partitions, merged, peer, staged,
		ns_to_seconds(totals->busy_ns),
		100 * ns_to_seconds(totals->active_ns) / (data->elapsed_s + 1e-9));
}

static void print_devices(const struct stats_report_data *data, FILE *stream)
{
	if (data->summary->n_devices)
		fprintf(stream, "  %-10s %8s %12s %10s %12s %12s %12s %11s %8s\n", "device",
			"chunks", "sorted", "partitions", "merged", "peer", "staged", "busy",
			"active");
	for (uint32_t i = 0; i < data->summary->n_devices; i++)
		print_device(data, i, stream);
}

static void print_summary(const struct stats_report_data *data, FILE *stream)
{
	char rss[32];

	if (data->summary->record_nbytes)
		print_sort_summary(data, stream);
	size_format(data->peak_rss_nbytes, rss);
	fprintf(stream, "%.3f s, %.3f s user, %.3f s system, %s peak RSS\n", data->elapsed_s,
		data->user_s, data->system_s, rss);
	print_devices(data, stream);
}

void stats_report_print(const struct stats_report *report, FILE *stream)
{
	struct stats_report_data data;

	if (!report->stats)
		return;
	data = collect_report_data(report);
	print_summary(&data, stream);
	if (report->rank_stats)
		rank_table_print(report->rank_stats, stream);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (data.totals.phases[phase].has_begun)
			print_phase(&data.totals.phases[phase], data.summary, phase_name(phase),
				    stream);
}

static void write_stage(const struct stage_totals *totals, const char *name, double peak_rate,
			bool is_first, FILE *stream)
{
	fprintf(stream,
		"%s\n        {\"name\": \"%s\", \"tasks\": %" PRIu64 ", \"bytes\": %" PRIu64
		", \"busy_s\": %.6f, \"blocked_s\": %.6f, \"active_s\": %.6f",
		is_first ? "" : ",", name, totals->n_spans, totals->nbytes,
		ns_to_seconds(totals->busy_ns), ns_to_seconds(totals->blocked_ns),
		ns_to_seconds(totals->active_ns));
	if (peak_rate > 0)
		fprintf(stream, ", \"peak_bytes_per_s\": %.0f", peak_rate);
	fputc('}', stream);
}

/* What there is of them: a sort with no temporary files, and no other ranks, has none. */
static void write_volumes(const struct stats_volumes *volumes, FILE *stream)
{
	if (volumes->temporary_written_nbytes + volumes->temporary_read_nbytes)
		fprintf(stream,
			"\"temporary_written_bytes\": %" PRIu64
			", \"temporary_read_bytes\": %" PRIu64 ", ",
			volumes->temporary_written_nbytes, volumes->temporary_read_nbytes);
	if (volumes->wire_sent_nbytes + volumes->wire_received_nbytes)
		fprintf(stream,
			"\"sent_bytes\": %" PRIu64 ", \"received_bytes\": %" PRIu64
			", \"wire_sent_bytes\": %" PRIu64 ", \"wire_received_bytes\": %" PRIu64
			", ",
			volumes->sent_nbytes, volumes->received_nbytes, volumes->wire_sent_nbytes,
			volumes->wire_received_nbytes);
}

static void write_phase(const struct phase_totals *phase, const struct sort_summary *summary,
			const char *name, bool is_first, FILE *stream)
{
	const enum stage bottleneck = phase_bottleneck(phase);
	bool is_first_stage = true;

	fprintf(stream, "%s\n    {\"name\": \"%s\", \"elapsed_s\": %.6f, ", is_first ? "" : ",",
		name, ns_to_seconds(phase->elapsed_ns));
	write_volumes(&phase->volumes, stream);
	if (bottleneck == N_STAGES)
		fprintf(stream, "\"bottleneck\": null, \"stages\": [");
	else
		fprintf(stream, "\"bottleneck\": \"%s\", \"stages\": [", stage_name(bottleneck));
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (stage_is_idle(&phase->stages[stage]))
			continue;
		write_stage(&phase->stages[stage], stage_name(stage), summary->peak_rates[stage],
			    is_first_stage, stream);
		is_first_stage = false;
	}
	fprintf(stream, "]}");
}

static void write_sort_summary(const struct stats_report_data *data, FILE *stream)
{
	const struct sort_summary *summary = data->summary;

	fprintf(stream,
		"  \"type\": \"%s\",\n  \"record_bytes\": %" PRIu64 ",\n  \"records_in\": %" PRIu64
		",\n",
		data->type, summary->record_nbytes, summary->n_records_in);
	if (!summary->backend[0])
		return;
	fprintf(stream,
		"  \"backend\": \"%s\",\n  \"records_out\": %" PRIu64 ",\n"
		"  \"memory_limit_bytes\": %" PRIu64 ",\n  \"peak_temporary_bytes\": %" PRIu64
		",\n  \"chunk_bytes\": %" PRIu64 ",\n"
		"  \"runs\": %" PRIu64 ",\n  \"runs_spilled\": %" PRIu64 ",\n  \"passes\": %" PRIu64
		",\n  \"partitions\": %" PRIu64 ",\n  \"windows\": %" PRIu64 ",\n"
		"  \"written_cached_bytes\": %" PRIu64 ",\n  \"written_direct_bytes\": %" PRIu64
		",\n  \"written_mmap_bytes\": %" PRIu64 ",\n",
		summary->backend, summary->n_records_out, summary->buffer_nbytes,
		summary->peak_temp_nbytes, summary->chunk_nbytes, summary->n_runs,
		summary->n_runs_spilled, summary->n_passes, summary->n_partitions,
		summary->n_windows, summary->written.cached_nbytes, summary->written.direct_nbytes,
		summary->written.mmap_nbytes);
	if (summary->spilled.codec)
		fprintf(stream,
			"  \"spilled_bytes\": %" PRIu64
			",\n  \"spilled_compressed_bytes\": %" PRIu64
			",\n  \"spill_ratio_percent\": %.2f,\n  \"codec\": \"%s\",\n",
			summary->spilled.items_nbytes, summary->spilled.stored_nbytes,
			spill_ratio_percent(&summary->spilled), summary->spilled.codec);
}

static void write_device(const struct stats_report_data *data, uint32_t i, FILE *stream)
{
	const struct sort_summary *summary = data->summary;
	const struct device_totals *totals = &data->totals.devices[summary->devices[i].ordinal - 1];

	fprintf(stream,
		"%s\n    {\"device\": %" PRIu32 ", \"gpu\": %u, \"chunks\": %" PRIu64
		", \"sorted_bytes\": %" PRIu64 ", \"partitions\": %" PRIu64
		", \"merged_bytes\": %" PRIu64 ", \"peer_read_bytes\": %" PRIu64
		", \"staged_read_bytes\": %" PRIu64 ", \"busy_s\": %.6f, \"active_s\": %.6f}",
		i ? "," : "", summary->devices[i].ordinal, summary->devices[i].number,
		totals->n_chunks, totals->sorted_nbytes, totals->n_partitions,
		totals->merged_nbytes, totals->peer_read_nbytes, totals->staged_read_nbytes,
		ns_to_seconds(totals->busy_ns), ns_to_seconds(totals->active_ns));
}

static void write_devices(const struct stats_report_data *data, FILE *stream)
{
	if (data->summary->n_devices == 0)
		return;
	fprintf(stream, "  \"devices\": [");
	for (uint32_t i = 0; i < data->summary->n_devices; i++)
		write_device(data, i, stream);
	fprintf(stream, "],\n");
}

static void write_summary(const struct stats_report_data *data, FILE *stream)
{
	fprintf(stream,
		"  \"version\": \"%s\",\n"
		"  \"elapsed_s\": %.6f,\n  \"user_s\": %.6f,\n  \"system_s\": %.6f,\n"
		"  \"peak_rss_bytes\": %" PRIu64 ",\n",
		GSORT_VERSION, data->elapsed_s, data->user_s, data->system_s,
		data->peak_rss_nbytes);
	if (data->summary->record_nbytes)
		write_sort_summary(data, stream);
	write_devices(data, stream);
}

static void write_phases(const struct stats_report_data *data, FILE *stream)
{
	bool is_first = true;

	fprintf(stream, "  \"phases\": [");
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		if (!data->totals.phases[phase].has_begun)
			continue;
		write_phase(&data->totals.phases[phase], data->summary, phase_key(phase), is_first,
			    stream);
		is_first = false;
	}
	fprintf(stream, "]\n");
}

void stats_report_write_json(const struct stats_report *report, FILE *stream)
{
	struct stats_report_data data;

	if (!report->stats)
		return;
	data = collect_report_data(report);
	fprintf(stream, "{\n");
	write_summary(&data, stream);
	if (report->rank_stats)
		rank_table_write_json(report->rank_stats, stream);
	write_phases(&data, stream);
	fprintf(stream, "}\n");
}
