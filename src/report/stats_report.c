/*
 * stats_report.c - statistics of a sort as text and as JSON (see stats_report.h)
 */
#include "src/report/stats_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "config.h"
#include "src/base/size.h"
#include "src/report/format.h"

/* --- ranks --- */

enum { PHASE_COLUMN = 16 };

const struct stat_field *rank_column_next(const struct rank_stats *rank_stats,
					  const struct stat_field *column)
{
	do
		column = stat_field_next(column, STAT_OF_RUN, STAT_RANK);
	while (column && (!column->heading || stat_field_value(column, &rank_stats->total) == 0));
	return column;
}

struct number_text rank_column_format(const struct stat_field *column,
				      const struct rank_summary *entry)
{
	const uint64_t value = stat_field_value(column, entry);

	return column->unit == STAT_BYTES ? size_format(value) : format_count(value);
}

/* Return the width of a column: a size such as "1023.9 KiB", or a count. */
static int column_width(const struct rank_stats *rank_stats, const struct stat_field *column)
{
	const int heading = (int)strlen(column->heading);
	const int width = column->unit == STAT_BYTES ?
				  10 :
				  (int)strlen(rank_column_format(column, &rank_stats->total).text);

	return (width > heading ? width : heading) + 1;
}

/* Print the work of each rank: a line for each, at most 100 columns wide. */
static void print_rank_work(const struct rank_stats *rank_stats, FILE *stream)
{
	const struct stat_field *column = NULL;

	fprintf(stream, "  %-5s", "rank");
	while ((column = rank_column_next(rank_stats, column)))
		fprintf(stream, "%*s", column_width(rank_stats, column), column->heading);
	fputc('\n', stream);
	for (unsigned i = 0; i < rank_stats->n_ranks; i++) {
		fprintf(stream, "  %-5u", i);
		while ((column = rank_column_next(rank_stats, column))) {
			fprintf(stream, "%*s", column_width(rank_stats, column),
				rank_column_format(column, &rank_stats->ranks[i]).text);
		}
		fputc('\n', stream);
	}
}

/* Print the time of each rank in each phase, and where it ran. */
static void print_rank_times(const struct rank_stats *rank_stats, FILE *stream)
{
	const struct phase_totals *phases = rank_stats->total.totals.phases;

	fprintf(stream, "  %-5s", "rank");
	for (enum phase i = 0; i < N_PHASES; i++)
		if (phases[i].has_begun)
			fprintf(stream, "%*s", PHASE_COLUMN, phase_name(i));
	fputs("  host, device\n", stream);
	for (unsigned i = 0; i < rank_stats->n_ranks; i++) {
		const struct rank_summary *entry = &rank_stats->ranks[i];

		fprintf(stream, "  %-5u", i);
		for (enum phase j = 0; j < N_PHASES; j++)
			if (phases[j].has_begun)
				fprintf(stream, "%*.3f s", PHASE_COLUMN - 2,
					ns_to_seconds(entry->totals.phases[j].elapsed_ns));
		fprintf(stream, "  %s%s%s\n", rank_stats->hosts[i],
			entry->summary.backend[0] ? ", " : "", entry->summary.backend);
	}
}

/* --- the whole, phases and stages --- */

void stats_report_format_device(const struct stats_report *report, char text[static DEVICE_NBYTES])
{
	const struct rank_stats *ranks = report->rank_stats;
	const char *device = stats_report_summary(report)->backend;
	bool are_alike = true;

	if (!ranks) {
		snprintf(text, DEVICE_NBYTES, "%s", device);
		return;
	}
	for (unsigned i = 0; i < ranks->n_ranks; i++)
		are_alike = are_alike && !strcmp(ranks->ranks[i].summary.backend, device);
	if (are_alike)
		snprintf(text, DEVICE_NBYTES, "%u rank%s on %s", ranks->n_ranks,
			 ranks->n_ranks == 1 ? "," : "s, each", device);
	else
		snprintf(text, DEVICE_NBYTES, "%u ranks", ranks->n_ranks);
}

/* The numbers of the whole sort, and some derived from them. */
struct stats_report_data {
	struct rank_summary run;
	double elapsed_s;
	bool has_ranks;
	char device[DEVICE_NBYTES];
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
	struct stats_report_data data = { .run = { .summary = *stats_report_summary(report) } };

	stats_report_totals(report, &data.run.totals);
	data.elapsed_s = ns_to_seconds(data.run.totals.elapsed_ns);
	data.has_ranks = report->rank_stats;
	stats_report_format_device(report, data.device);
	return data;
}

/* Print ", 97 % of 5.9 GiB/s peak": the rate compared with the peak rate of the stage. */
static void print_peak_rate(const struct stage_totals *totals, double peak_rate, FILE *stream)
{
	const double rate = (double)totals->nbytes / ns_to_seconds(totals->active_ns);

	if (peak_rate <= 0 || totals->nbytes == 0)
		return;
	fprintf(stream, ", %.0f %% of %s/s peak", 100 * rate / peak_rate,
		size_format((uint64_t)peak_rate).text);
}

static void print_stage(const struct stage_totals *totals, const char *name, uint64_t phase_ns,
			FILE *stream)
{
	fprintf(stream, "  %-10s %12s %9.3f s %9.3f s %6.0f %% %14s", name,
		size_format(totals->nbytes).text, ns_to_seconds(totals->busy_ns),
		ns_to_seconds(totals->blocked_ns),
		100 * ns_to_seconds(totals->active_ns) / ns_to_seconds(phase_ns ? phase_ns : 1),
		format_rate(totals->nbytes, ns_to_seconds(totals->active_ns)).text);
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

/* Print what a check does not have. */
static void print_sort_details(const struct stats_report_data *data, FILE *stream)
{
	const struct sort_summary *summary = &data->run.summary;
	const struct compression_totals *spilled = &summary->spilled;
	const struct file_writer_stats *written = &summary->written;

	fprintf(stream,
		"%s%s\nruns: %" PRIu64 ", spilled runs: %" PRIu64 "; chunks: %s%s; passes: %" PRIu64
		"; partitions: %" PRIu64 "; windows: %" PRIu64
		"\nmemory limit: %s; peak temporary space: %s",
		data->has_ranks ? "\n" : "; ", data->device, summary->n_runs,
		summary->n_runs_spilled, size_format(summary->chunk_nbytes).text,
		summary->input_is_mapped ? " of the mapped input" : "", summary->n_passes,
		summary->n_partitions, summary->n_windows, size_format(summary->buffer_nbytes).text,
		size_format(summary->peak_temp_nbytes).text);
	if (spilled->items_nbytes)
		fprintf(stream, "\nspilled: %s, compressed to %s (%.1f %%) with %s",
			size_format(spilled->items_nbytes).text,
			size_format(spilled->stored_nbytes).text, spill_ratio_percent(spilled),
			spilled->codec);
	if (written->direct_nbytes + written->mmap_nbytes)
		fprintf(stream, "\nwritten: %s cached, %s direct, %s mmap",
			size_format(written->cached_nbytes).text,
			size_format(written->direct_nbytes).text,
			size_format(written->mmap_nbytes).text);
}

static void print_sort_summary(const struct stats_report_data *data, FILE *stream)
{
	const struct sort_summary *summary = &data->run.summary;
	const bool is_sort = summary->backend[0];

	fprintf(stream, "%" PRIu64 " %s%s (%s) read", summary->n_records_in,
		summary->record_nbytes > 0 ? "records of " : "", summary->type,
		size_format(data->run.summary.input_nbytes).text);
	if (is_sort)
		fprintf(stream, ", %" PRIu64 " written", summary->n_records_out);
	fprintf(stream, ", %s", format_rate(data->run.summary.input_nbytes, data->elapsed_s).text);
	if (is_sort)
		print_sort_details(data, stream);
	fputc('\n', stream);
}

static void print_device(const struct stats_report_data *data, uint32_t i, FILE *stream)
{
	const struct sort_summary *summary = &data->run.summary;
	const struct device_totals *totals =
		&data->run.totals.devices[summary->devices[i].ordinal - 1];
	char name[32];

	snprintf(name, sizeof name, "%" PRIu32 " (GPU %u)", summary->devices[i].ordinal,
		 summary->devices[i].number);
	fprintf(stream, "  %-10s %8" PRIu64 " %12s %10" PRIu64 " %12s %12s %12s %9.3f s %6.0f %%\n",
		name, totals->n_chunks, size_format(totals->sorted_nbytes).text,
		totals->n_partitions, size_format(totals->merged_nbytes).text,
		size_format(totals->peer_read_nbytes).text,
		size_format(totals->staged_read_nbytes).text, ns_to_seconds(totals->busy_ns),
		100 * ns_to_seconds(totals->active_ns) / (data->elapsed_s + 1e-9));
}

void stats_report_print(const struct stats_report *report, FILE *stream)
{
	const struct rank_stats *ranks = report->rank_stats;
	const struct stats_usage *usage;
	struct stats_report_data data;

	if (!report->stats)
		return;
	data = collect_report_data(report);
	usage = &data.run.totals.usage;
	if (sort_summary_is_known(&data.run.summary))
		print_sort_summary(&data, stream);
	fprintf(stream, "%.3f s, %.3f s user, %.3f s system, %s peak RSS\n", data.elapsed_s,
		ns_to_seconds(usage->user_ns), ns_to_seconds(usage->system_ns),
		size_format(usage->peak_rss_nbytes).text);
	if (data.run.summary.n_devices)
		fprintf(stream, "  %-10s %8s %12s %10s %12s %12s %12s %11s %8s\n", "device",
			"chunks", "sorted", "partitions", "merged", "peer", "staged", "busy",
			"active");
	for (uint32_t i = 0; i < data.run.summary.n_devices; i++)
		print_device(&data, i, stream);
	if (ranks) {
		fprintf(stream,
			"%u rank%s; disk: %s read, %s written; sent between ranks: %s; "
			"imbalance: %.2f %%\n",
			ranks->n_ranks, plural_ending(ranks->n_ranks),
			size_format(ranks->total.disk_read_nbytes).text,
			size_format(ranks->total.disk_written_nbytes).text,
			size_format(ranks->total.volumes.sent_nbytes).text,
			100 * rank_stats_imbalance(ranks));
		print_rank_work(ranks, stream);
		print_rank_times(ranks, stream);
	}
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (data.run.totals.phases[phase].has_begun)
			print_phase(&data.run.totals.phases[phase], &data.run.summary,
				    phase_name(phase), stream);
}

/* --- JSON --- */

static json_t *percent_to_json(double percent, double unit)
{
	return json_real(round(percent / unit) * unit);
}

/* Put those numbers of `source`, a struct of the scope, that are in the groups. */
static void put_fields(json_t **object, enum stat_scope scope, unsigned groups, const void *source)
{
	const struct stat_field *field = NULL;

	while ((field = stat_field_next(field, scope, groups))) {
		const uint64_t value = stat_field_value(field, source);

		/* Six decimals: the precision of the clocks. */
		json_put(object, field->key,
			 field->unit == STAT_SECONDS ? json_real(round((double)value / 1e3) / 1e6) :
						       json_number(value));
	}
}

/*
 * Host names are set by administrators and device names by drivers. Control characters, and those
 * that JSON escapes, are replaced by '?'.
 */
static json_t *name_to_json(const char *name)
{
	char text[256];
	size_t i;

	for (i = 0; name[i] && i + 1 < sizeof text; i++)
		text[i] = name[i] < ' ' || strchr("\"\\\177", name[i]) ? '?' : name[i];
	text[i] = '\0';
	return json_string(text);
}

static json_t *stage_to_json(const struct stats_report_data *data, const struct phase_totals *phase,
			     enum stage stage)
{
	const double peak_rate = data->run.summary.peak_rates[stage];
	json_t *object = json_object();

	json_put(&object, "name", json_string(stage_name(stage)));
	put_fields(&object, STAT_OF_STAGE, STAT_WORK, &phase->stages[stage]);
	if (peak_rate > 0)
		json_put(&object, "peak_bytes_per_s", json_number((uint64_t)(peak_rate + 0.5)));
	return object;
}

/* Volumes are omitted without temporary files or without other ranks. */
static json_t *phase_to_json(const struct stats_report_data *data, enum phase id)
{
	const struct phase_totals *phase = &data->run.totals.phases[id];
	const struct stats_volumes *volumes = &phase->volumes;
	const enum stage bottleneck = phase_bottleneck(phase);
	json_t *object = json_object(), *stages = json_array();

	json_put(&object, "name", json_string(phase_key(id)));
	put_fields(&object, STAT_OF_PHASE, STAT_TIME, phase);
	if (volumes->temporary_written_nbytes + volumes->temporary_read_nbytes)
		put_fields(&object, STAT_OF_PHASE, STAT_DISK, phase);
	if (volumes->sent_nbytes + volumes->received_nbytes)
		put_fields(&object, STAT_OF_PHASE, STAT_NETWORK, phase);
	json_put(&object, "bottleneck",
		 bottleneck < N_STAGES ? json_string(stage_name(bottleneck)) : json_null());
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (!stage_is_idle(&phase->stages[stage]))
			json_append(&stages, stage_to_json(data, phase, stage));
	json_put(&object, "stages", stages);
	return object;
}

static void put_sort(json_t **object, const struct stats_report_data *data)
{
	const struct sort_summary *summary = &data->run.summary;

	json_put(object, "type", json_string(summary->type));
	put_fields(object, STAT_OF_RUN, STAT_INPUT, &data->run);
	json_put(object, "input_bytes", json_number(data->run.summary.input_nbytes));
	if (!summary->backend[0])
		return;
	json_put(object, "backend", name_to_json(summary->backend));
	put_fields(object, STAT_OF_RUN, STAT_SORT, &data->run);
	if (!summary->spilled.codec)
		return;
	put_fields(object, STAT_OF_RUN, STAT_SPILL, &data->run);
	json_put(object, "spill_ratio_percent",
		 percent_to_json(spill_ratio_percent(&summary->spilled), 0.01));
	json_put(object, "codec", json_string(summary->spilled.codec));
}

static json_t *devices_to_json(const struct stats_report_data *data)
{
	const struct sort_summary *summary = &data->run.summary;
	json_t *devices = json_array();

	for (uint32_t i = 0; i < summary->n_devices; i++) {
		json_t *object = json_object();

		json_put(&object, "device", json_number(summary->devices[i].ordinal));
		json_put(&object, "gpu", json_number(summary->devices[i].number));
		put_fields(&object, STAT_OF_DEVICE, STAT_WORK,
			   &data->run.totals.devices[summary->devices[i].ordinal - 1]);
		json_append(&devices, object);
	}
	return devices;
}

static json_t *rank_to_json(const struct rank_stats *rank_stats, unsigned rank)
{
	const struct rank_summary *entry = &rank_stats->ranks[rank];
	json_t *object = json_object(), *phases = json_array();

	json_put(&object, "rank", json_number(rank));
	json_put(&object, "host", name_to_json(rank_stats->hosts[rank]));
	if (entry->summary.backend[0]) /* not of a check */
		json_put(&object, "device", name_to_json(entry->summary.backend));
	put_fields(&object, STAT_OF_RUN, STAT_RANK, entry);
	put_fields(&object, STAT_OF_RUN, STAT_TIME, entry);
	for (enum phase i = 0; i < N_PHASES; i++) {
		json_t *phase;

		if (!entry->totals.phases[i].has_begun)
			continue;
		phase = json_object();
		json_put(&phase, "name", json_string(phase_key(i)));
		put_fields(&phase, STAT_OF_PHASE, STAT_TIME, &entry->totals.phases[i]);
		json_append(&phases, phase);
	}
	json_put(&object, "phases", phases);
	return object;
}

static void put_ranks(json_t **object, const struct rank_stats *rank_stats)
{
	json_t *ranks = json_array();

	put_fields(object, STAT_OF_RUN, STAT_RANKS, &rank_stats->total);
	json_put(object, "imbalance_percent",
		 percent_to_json(100 * rank_stats_imbalance(rank_stats), 0.0001));
	for (unsigned i = 0; i < rank_stats->n_ranks; i++)
		json_append(&ranks, rank_to_json(rank_stats, i));
	json_put(object, "ranks", ranks);
}

int stats_report_write_json(const struct stats_report *report, FILE *stream)
{
	struct stats_report_data data;
	json_t *object, *phases;

	if (!report->stats)
		return 0;
	data = collect_report_data(report);
	object = json_object();
	phases = json_array();
	json_put(&object, "version", json_string(GSORT_VERSION));
	put_fields(&object, STAT_OF_RUN, STAT_PROCESS, &data.run);
	if (sort_summary_is_known(&data.run.summary))
		put_sort(&object, &data);
	if (data.run.summary.n_devices)
		json_put(&object, "devices", devices_to_json(&data));
	if (report->rank_stats)
		put_ranks(&object, report->rank_stats);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (data.run.totals.phases[phase].has_begun)
			json_append(&phases, phase_to_json(&data, phase));
	json_put(&object, "phases", phases);
	return json_write(object, 15, stream);
}
