/*
 * stats_report - what a person and a program are told at the end (see stats_report.h)
 */
#include "src/report/stats_report.h"

#include <inttypes.h>

#include "config.h"
#include "src/base/size.h"
#include "src/report/rank_table.h"
#include "src/report/format_numbers.h"

/* What the two reports share, computed once. */
struct summary {
	const char *type;
	const struct sort_facts *facts;
	struct stats_totals totals;
	double elapsed_s, user_s, system_s;
	uint64_t input_nbytes, peak_rss_nbytes;
};

const struct sort_facts *report_facts(const struct report *report)
{
	return report->census ? &report->census->all.facts : report->facts;
}

void report_totals(const struct report *report, struct stats_totals *ret_totals)
{
	if (report->census)
		*ret_totals = report->census->all.totals;
	else
		stats_get_totals(report->stats, ret_totals);
}

static struct summary summarise(const struct report *report)
{
	const struct sort_facts *facts = report_facts(report);
	struct summary summary = { .type = facts->type, .facts = facts };

	report_totals(report, &summary.totals);
	summary.input_nbytes = facts->n_records_in * facts->record_nbytes;
	summary.elapsed_s = figures_s(summary.totals.elapsed_ns);
	summary.user_s = figures_s(summary.totals.usage.user_ns);
	summary.system_s = figures_s(summary.totals.usage.system_ns);
	summary.peak_rss_nbytes = summary.totals.usage.peak_rss_nbytes;
	return summary;
}

/* ", 97 % of 5.9 GiB/s peak": the rate compared with the peak rate of the stage. */
static void print_ceiling(const struct stage_totals *totals, double ceiling, FILE *stream)
{
	const double rate = (double)totals->nbytes / figures_s(totals->covered_ns);
	char text[32];

	if (ceiling <= 0 || totals->nbytes == 0)
		return;
	size_format((uint64_t)ceiling, text);
	fprintf(stream, ", %.0f %% of %s/s peak", 100 * rate / ceiling, text);
}

static void print_stage(const struct stage_totals *totals, const char *name, uint64_t phase_ns,
			FILE *stream)
{
	char size[32], rate[40];

	size_format(totals->nbytes, size);
	figures_rate(totals->nbytes, figures_s(totals->covered_ns), rate);
	fprintf(stream, "  %-10s %12s %9.3f s %9.3f s %6.0f %% %14s", name, size,
		figures_s(totals->busy_ns), figures_s(totals->waited_ns),
		100 * figures_s(totals->covered_ns) / figures_s(phase_ns ? phase_ns : 1), rate);
}

static void print_phase(const struct phase_totals *phase, const struct sort_facts *facts,
			const char *name, FILE *stream)
{
	const enum stage bottleneck = figures_bottleneck(phase);

	fprintf(stream, "%s: %.3f s\n", name, figures_s(phase->elapsed_ns));
	if (figures_longest(phase) == N_STAGES)
		return;
	fprintf(stream, "  %-10s %12s %11s %11s %8s %14s\n", "stage", "bytes", "busy", "blocked",
		"active", "rate");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		const struct stage_totals *totals = &phase->stages[stage];

		if (figures_is_idle(totals))
			continue;
		print_stage(totals, stage_name(stage), phase->elapsed_ns, stream);
		if (stage == bottleneck) {
			fputs("  <- bottleneck", stream);
			print_ceiling(totals, facts->ceilings[stage], stream);
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
		figures_percent_stored(spilled), spilled->codec);
}

static void print_ways(const struct file_writer_ways *ways, FILE *stream)
{
	char cached[32], direct[32], mapped[32];

	size_format(ways->cached_nbytes, cached);
	size_format(ways->direct_nbytes, direct);
	size_format(ways->mapped_nbytes, mapped);
	fprintf(stream, "\nwritten: %s cached, %s direct, %s mmap", cached, direct, mapped);
}

/* What only a sort has. */
static void print_sort(const struct sort_facts *facts, FILE *stream)
{
	char buffer[32], chunk[32], temp[32];

	size_format(facts->buffer_nbytes, buffer);
	size_format(facts->chunk_nbytes, chunk);
	size_format(facts->peak_temp_nbytes, temp);
	fprintf(stream,
		"; %s\nruns: %" PRIu64 ", spilled runs: %" PRIu64 "; chunks: %s%s; passes: %" PRIu64
		"; partitions: %" PRIu64 "; windows: %" PRIu64
		"; memory limit: %s; peak temporary space: %s",
		facts->backend, facts->n_runs, facts->n_runs_spilled, chunk,
		facts->input_is_mapped ? " of the mapped input" : "", facts->n_passes,
		facts->n_ranges, facts->n_windows, buffer, temp);
	if (facts->spilled.items_nbytes)
		print_spilled(&facts->spilled, stream);
	if (facts->written.direct_nbytes + facts->written.mapped_nbytes)
		print_ways(&facts->written, stream);
}

static void print_facts(const struct summary *summary, FILE *stream)
{
	const struct sort_facts *facts = summary->facts;
	const bool is_sort = facts->backend[0];
	char input[32], rate[40];

	size_format(summary->input_nbytes, input);
	figures_rate(summary->input_nbytes, summary->elapsed_s, rate);
	fprintf(stream, "%" PRIu64 " records of %s (%s) read", facts->n_records_in, summary->type,
		input);
	if (is_sort)
		fprintf(stream, ", %" PRIu64 " written", facts->n_records_out);
	fprintf(stream, ", %s", rate);
	if (is_sort)
		print_sort(facts, stream);
	fputc('\n', stream);
}

static void print_device(const struct summary *summary, uint32_t i, FILE *stream)
{
	const struct sort_facts *facts = summary->facts;
	const struct device_totals *totals = &summary->totals.devices[facts->devices[i].place - 1];
	char name[32], sorted[32], merged[32], peer[32], away[32];

	snprintf(name, sizeof name, "%" PRIu32 " (GPU %u)", facts->devices[i].place,
		 facts->devices[i].number);
	size_format(totals->sorted_nbytes, sorted);
	size_format(totals->merged_nbytes, merged);
	size_format(totals->peer_nbytes, peer);
	size_format(totals->away_nbytes, away);
	fprintf(stream, "  %-10s %8" PRIu64 " %12s %10" PRIu64 " %12s %12s %12s %9.3f s %6.0f %%\n",
		name, totals->n_chunks, sorted, totals->n_ranges, merged, peer, away,
		figures_s(totals->busy_ns),
		100 * figures_s(totals->covered_ns) / (summary->elapsed_s + 1e-9));
}

static void print_devices(const struct summary *summary, FILE *stream)
{
	if (summary->facts->n_devices)
		fprintf(stream, "  %-10s %8s %12s %10s %12s %12s %12s %11s %8s\n", "device",
			"chunks", "sorted", "partitions", "merged", "peer", "staged", "busy",
			"active");
	for (uint32_t i = 0; i < summary->facts->n_devices; i++)
		print_device(summary, i, stream);
}

static void print_summary(const struct summary *summary, FILE *stream)
{
	char rss[32];

	if (summary->facts->record_nbytes)
		print_facts(summary, stream);
	size_format(summary->peak_rss_nbytes, rss);
	fprintf(stream, "%.3f s, %.3f s user, %.3f s system, %s peak RSS\n", summary->elapsed_s,
		summary->user_s, summary->system_s, rss);
	print_devices(summary, stream);
}

void report_print(const struct report *report, FILE *stream)
{
	struct summary summary;

	if (!report->stats)
		return;
	summary = summarise(report);
	print_summary(&summary, stream);
	if (report->census)
		by_rank_print(report->census, stream);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (summary.totals.phases[phase].has_begun)
			print_phase(&summary.totals.phases[phase], summary.facts, phase_name(phase),
				    stream);
}

static void write_stage(const struct stage_totals *totals, const char *name, double ceiling,
			bool is_first, FILE *stream)
{
	fprintf(stream,
		"%s\n        {\"name\": \"%s\", \"tasks\": %" PRIu64 ", \"bytes\": %" PRIu64
		", \"busy_s\": %.6f, \"blocked_s\": %.6f, \"active_s\": %.6f",
		is_first ? "" : ",", name, totals->n_spans, totals->nbytes,
		figures_s(totals->busy_ns), figures_s(totals->waited_ns),
		figures_s(totals->covered_ns));
	if (ceiling > 0)
		fprintf(stream, ", \"peak_bytes_per_s\": %.0f", ceiling);
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

static void write_phase(const struct phase_totals *phase, const struct sort_facts *facts,
			const char *name, bool is_first, FILE *stream)
{
	const enum stage bottleneck = figures_bottleneck(phase);
	bool is_first_stage = true;

	fprintf(stream, "%s\n    {\"name\": \"%s\", \"elapsed_s\": %.6f, ", is_first ? "" : ",",
		name, figures_s(phase->elapsed_ns));
	write_volumes(&phase->volumes, stream);
	if (bottleneck == N_STAGES)
		fprintf(stream, "\"bottleneck\": null, \"stages\": [");
	else
		fprintf(stream, "\"bottleneck\": \"%s\", \"stages\": [", stage_name(bottleneck));
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (figures_is_idle(&phase->stages[stage]))
			continue;
		write_stage(&phase->stages[stage], stage_name(stage), facts->ceilings[stage],
			    is_first_stage, stream);
		is_first_stage = false;
	}
	fprintf(stream, "]}");
}

static void write_facts(const struct summary *summary, FILE *stream)
{
	const struct sort_facts *facts = summary->facts;

	fprintf(stream,
		"  \"type\": \"%s\",\n  \"record_bytes\": %" PRIu64 ",\n  \"records_in\": %" PRIu64
		",\n",
		summary->type, facts->record_nbytes, facts->n_records_in);
	if (!facts->backend[0])
		return;
	fprintf(stream,
		"  \"backend\": \"%s\",\n  \"records_out\": %" PRIu64 ",\n"
		"  \"memory_limit_bytes\": %" PRIu64 ",\n  \"peak_temporary_bytes\": %" PRIu64
		",\n  \"chunk_bytes\": %" PRIu64 ",\n"
		"  \"runs\": %" PRIu64 ",\n  \"runs_spilled\": %" PRIu64 ",\n  \"passes\": %" PRIu64
		",\n  \"partitions\": %" PRIu64 ",\n  \"windows\": %" PRIu64 ",\n"
		"  \"written_cached_bytes\": %" PRIu64 ",\n  \"written_direct_bytes\": %" PRIu64
		",\n  \"written_mmap_bytes\": %" PRIu64 ",\n",
		facts->backend, facts->n_records_out, facts->buffer_nbytes, facts->peak_temp_nbytes,
		facts->chunk_nbytes, facts->n_runs, facts->n_runs_spilled, facts->n_passes,
		facts->n_ranges, facts->n_windows, facts->written.cached_nbytes,
		facts->written.direct_nbytes, facts->written.mapped_nbytes);
	if (facts->spilled.codec)
		fprintf(stream,
			"  \"spilled_bytes\": %" PRIu64
			",\n  \"spilled_compressed_bytes\": %" PRIu64
			",\n  \"spill_ratio_percent\": %.2f,\n  \"codec\": \"%s\",\n",
			facts->spilled.items_nbytes, facts->spilled.stored_nbytes,
			figures_percent_stored(&facts->spilled), facts->spilled.codec);
}

static void write_device(const struct summary *summary, uint32_t i, FILE *stream)
{
	const struct sort_facts *facts = summary->facts;
	const struct device_totals *totals = &summary->totals.devices[facts->devices[i].place - 1];

	fprintf(stream,
		"%s\n    {\"device\": %" PRIu32 ", \"gpu\": %u, \"chunks\": %" PRIu64
		", \"sorted_bytes\": %" PRIu64 ", \"partitions\": %" PRIu64
		", \"merged_bytes\": %" PRIu64 ", \"peer_read_bytes\": %" PRIu64
		", \"staged_read_bytes\": %" PRIu64 ", \"busy_s\": %.6f, \"active_s\": %.6f}",
		i ? "," : "", facts->devices[i].place, facts->devices[i].number, totals->n_chunks,
		totals->sorted_nbytes, totals->n_ranges, totals->merged_nbytes, totals->peer_nbytes,
		totals->away_nbytes, figures_s(totals->busy_ns), figures_s(totals->covered_ns));
}

static void write_devices(const struct summary *summary, FILE *stream)
{
	if (summary->facts->n_devices == 0)
		return;
	fprintf(stream, "  \"devices\": [");
	for (uint32_t i = 0; i < summary->facts->n_devices; i++)
		write_device(summary, i, stream);
	fprintf(stream, "],\n");
}

static void write_summary(const struct summary *summary, FILE *stream)
{
	fprintf(stream,
		"  \"version\": \"%s\",\n"
		"  \"elapsed_s\": %.6f,\n  \"user_s\": %.6f,\n  \"system_s\": %.6f,\n"
		"  \"peak_rss_bytes\": %" PRIu64 ",\n",
		GSORT_VERSION, summary->elapsed_s, summary->user_s, summary->system_s,
		summary->peak_rss_nbytes);
	if (summary->facts->record_nbytes)
		write_facts(summary, stream);
	write_devices(summary, stream);
}

static void write_phases(const struct summary *summary, FILE *stream)
{
	bool is_first = true;

	fprintf(stream, "  \"phases\": [");
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		if (!summary->totals.phases[phase].has_begun)
			continue;
		write_phase(&summary->totals.phases[phase], summary->facts, phase_key(phase),
			    is_first, stream);
		is_first = false;
	}
	fprintf(stream, "]\n");
}

void report_write_json(const struct report *report, FILE *stream)
{
	struct summary summary;

	if (!report->stats)
		return;
	summary = summarise(report);
	fprintf(stream, "{\n");
	write_summary(&summary, stream);
	if (report->census)
		by_rank_write_json(report->census, stream);
	write_phases(&summary, stream);
	fprintf(stream, "}\n");
}
