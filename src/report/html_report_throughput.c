/*
 * html_report_throughput - what moved, and what was taken, over time (see html_report_internal.h)
 */
#include <math.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format_numbers.h"
#include "src/report/timeline_chart.h"

enum { NOTE_NBYTES = 64 };

/* --- What moved --- */

/* A stage that brings bytes from one place to another, and not only looks at them. */
static bool is_transfer_stage(enum stage stage)
{
	switch (stage) {
	case STAGE_READ:
	case STAGE_UPLOAD:
	case STAGE_FETCH:
	case STAGE_DOWNLOAD:
	case STAGE_SPILL:
	case STAGE_WRITE:
	case STAGE_VERIFY:
		return true;
	default:
		return false;
	}
}

static bool has_transferred(const struct html_report_writer *writer, enum stage stage)
{
	return is_transfer_stage(stage) &&
	       timeline_chart_sum(writer->time_series->nbytes[stage]) > 0;
}

static void fill_rates(struct timeline_chart *timeline, enum stage stage)
{
	struct chart_series *series = &timeline->series[0];

	series->class = timeline->classes[stage];
	series->name = stage_name(stage);
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		series->values[bin] = (double)timeline->writer->time_series->nbytes[stage][bin] /
				      timeline_chart_bin_s(timeline, bin);
}

static void put_throughput_row(struct timeline_chart *timeline, enum stage stage)
{
	char note[40];
	double peak;

	fill_rates(timeline, stage);
	peak = timeline_chart_peak(timeline, 1);
	format_rate((uint64_t)peak, 1, note);
	chart_row(&timeline->chart, &(struct chart_row){ .name = stage_name(stage),
							 .note = note,
							 .series = timeline->series,
							 .n = 1,
							 .max = peak > 0 ? peak : 1 });
}

static void put_throughput_totals(struct timeline_chart *timeline, enum stage stage)
{
	struct html_report_writer *writer = timeline->writer;
	const uint64_t nbytes = timeline_chart_sum(writer->time_series->nbytes[stage]);
	const double total_s =
		ns_to_seconds(writer->time_series->end_ns - writer->time_series->begin_ns);
	struct html *html = &writer->html;
	char size[32], rate[40];

	fill_rates(timeline, stage);
	html_open(html, "tr");
	html_report_header_cell(html, "%s", stage_name(stage));
	size_format(nbytes, size);
	html_report_number_cell(html, "%s", size);
	format_rate(nbytes, total_s, rate);
	html_report_number_cell(html, "%s", rate);
	format_rate((uint64_t)timeline_chart_peak(timeline, 1), 1, rate);
	html_report_number_cell(html, "%s", rate);
	html_close(html);
}

void html_report_write_throughput(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = {
		{ "Link", false }, { "Bytes", true }, { "Average", true }, { "Peak", true }
	};
	struct chart_frame frame = {
		.id = "throughput-picture",
		.title = "Bytes over each link, for each second",
		.description = "A row for each link, scaled to its peak rate. The table below has "
			       "the sums.",
		.row_height = 40,
	};
	const bool no_stages[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct timeline_chart timeline;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		frame.n_rows += has_transferred(writer, stage);
	html_report_open_time_section(writer, "throughput", "Throughput");
	if (frame.n_rows == 0) {
		html_element(html, "p", "No bytes were moved.");
		html_close(html);
		return;
	}
	timeline_chart_init(&timeline, writer);
	timeline_chart_open(&timeline, frame);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_transferred(writer, stage))
			put_throughput_row(&timeline, stage);
	timeline_chart_close(&timeline, no_stages);
	html_report_open_table(html, "Bytes over each link", columns, 4);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_transferred(writer, stage))
			put_throughput_totals(&timeline, stage);
	html_close_to(html, depth);
}

/* --- Memory and space --- */

/* What was looked at, of one kind; where nobody looked it was as before. */
struct gauge_chart {
	const char *name, *class;
	size_t offset;        /* in struct time_series_gauges */
	uint64_t peak_nbytes; /* that it came to between two looks; 0: nobody knows */
	uint64_t limit_nbytes;
	const char *limit_note; /* what that is */
};

static void fill_gauge(struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	const struct time_series *time_series = timeline->writer->time_series;
	struct chart_series *series = &timeline->series[0];
	uint64_t nbytes = 0;

	series->class = gauge->class;
	series->name = gauge->name;
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++) {
		const struct time_series_gauges *sample = &time_series->gauges[bin];

		if (sample->memory_nbytes)
			memcpy(&nbytes, (const char *)sample + gauge->offset, sizeof nbytes);
		series->values[bin] = (double)nbytes;
	}
}

/* Whoever looks now and then may miss the most, which others have kept: it is one number. */
static double gauge_peak(const struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	return fmax(timeline_chart_peak(timeline, 1), (double)gauge->peak_nbytes);
}

static void put_gauge_row(struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	char peak_text[32], note[NOTE_NBYTES];
	double peak;

	fill_gauge(timeline, gauge);
	peak = gauge_peak(timeline, gauge);
	size_format((uint64_t)peak, peak_text);
	snprintf(note, sizeof note, "peak %s", peak_text);
	chart_row(&timeline->chart,
		  &(struct chart_row){
			  .name = gauge->name,
			  .note = note,
			  .series = timeline->series,
			  .n = 1,
			  .max = 1.05 * fmax(fmax(peak, (double)gauge->limit_nbytes), 1),
			  .limit = (double)gauge->limit_nbytes,
		  });
}

static void put_gauge_totals(struct timeline_chart *timeline, const struct gauge_chart *gauge)
{
	struct html *html = &timeline->writer->html;
	char size[32], limit[32];
	double sum = 0;

	fill_gauge(timeline, gauge);
	for (uint32_t bin = 0; bin < timeline->n_bins; bin++)
		sum += timeline->series[0].values[bin];
	html_open(html, "tr");
	html_report_header_cell(html, "%s", gauge->name);
	size_format((uint64_t)(sum / timeline->n_bins), size);
	html_report_number_cell(html, "%s", size);
	size_format((uint64_t)gauge_peak(timeline, gauge), size);
	html_report_number_cell(html, "%s", size);
	size_format(gauge->limit_nbytes, limit);
	html_report_text_cell(html, "%s%s", gauge->limit_nbytes ? limit : "-",
			      gauge->limit_nbytes ? gauge->limit_note : "");
	html_close(html);
}

void html_report_write_space(struct html_report_writer *writer)
{
	static const struct html_report_column columns[] = {
		{ "Item", false }, { "Average", true }, { "Peak", true }, { "Limit", false }
	};
	const struct rank_stats *rank_stats =
		writer->report->stats_report->rank_stats; /* of it the first rank */
	const struct sort_summary *summary = rank_stats ? &rank_stats->ranks[0].summary :
							  writer->summary;
	const struct stats_totals *totals = rank_stats ? &rank_stats->ranks[0].totals :
							 &writer->totals;
	const struct gauge_chart gauges[] = {
		{ "memory", "gauge of-memory", offsetof(struct time_series_gauges, memory_nbytes),
		  totals->usage.peak_rss_nbytes, summary->buffer_nbytes,
		  ", -S; up to 32 MiB more are possible" },
		{ "temporary", "gauge of-temporary",
		  offsetof(struct time_series_gauges, temporary_nbytes), summary->peak_temp_nbytes,
		  summary->plan.max_temp_nbytes, ", planned" },
		{ "written", "gauge of-written",
		  offsetof(struct time_series_gauges, written_nbytes), 0, 0, "" },
	};
	const bool is_sort = summary->backend[0]; /* a check takes nothing else */
	const unsigned n = is_sort ? sizeof gauges / sizeof gauges[0] : 1;
	const struct chart_frame frame = {
		.id = "space-picture",
		.title = is_sort ? "Memory, temporary space, and bytes written" : "Memory",
		.description = "The amount in use at each moment; a dashed line is the limit. The "
			       "table below has the numbers.",
		.n_rows = n,
		.row_height = 84,
	};
	const bool no_stages[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct timeline_chart timeline;

	html_report_open_time_section(writer, "space", "Memory and space");
	timeline_chart_init(&timeline, writer);
	timeline_chart_open(&timeline, frame);
	for (unsigned i = 0; i < n; i++)
		put_gauge_row(&timeline, &gauges[i]);
	timeline_chart_close(&timeline, no_stages);
	html_report_open_table(html, "Memory and space", columns, 4);
	for (unsigned i = 0; i < n; i++)
		put_gauge_totals(&timeline, &gauges[i]);
	html_close_to(html, depth);
}
