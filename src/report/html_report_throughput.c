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
static bool is_link(enum stage stage)
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

static bool has_moved(const struct writer *writer, enum stage stage)
{
	return is_link(stage) && picture_sum(writer->history->nbytes[stage]) > 0;
}

static void fill_rates(struct picture *picture, enum stage stage)
{
	struct chart_series *series = &picture->series[0];

	series->class = picture->classes[stage];
	series->name = stage_name(stage);
	for (uint32_t bin = 0; bin < picture->n_bins; bin++)
		series->values[bin] = (double)picture->writer->history->nbytes[stage][bin] /
				      picture_bin_s(picture, bin);
}

static void put_throughput_row(struct picture *picture, enum stage stage)
{
	char note[40];
	double peak;

	fill_rates(picture, stage);
	peak = picture_peak(picture, 1);
	figures_rate((uint64_t)peak, 1, note);
	chart_row(&picture->chart, &(struct chart_row){ .name = stage_name(stage),
							.note = note,
							.series = picture->series,
							.n = 1,
							.most = peak > 0 ? peak : 1 });
}

static void put_throughput_numbers(struct picture *picture, enum stage stage)
{
	struct writer *writer = picture->writer;
	const uint64_t nbytes = picture_sum(writer->history->nbytes[stage]);
	const double all_s = figures_s(writer->history->end_ns - writer->history->begin_ns);
	struct html *html = &writer->html;
	char size[32], rate[40];

	fill_rates(picture, stage);
	html_open(html, "tr");
	page_head_cell(html, "%s", stage_name(stage));
	size_format(nbytes, size);
	page_number(html, "%s", size);
	figures_rate(nbytes, all_s, rate);
	page_number(html, "%s", rate);
	figures_rate((uint64_t)picture_peak(picture, 1), 1, rate);
	page_number(html, "%s", rate);
	html_close(html);
}

void page_write_throughput(struct writer *writer)
{
	static const struct page_column columns[] = {
		{ "Link", false }, { "Bytes", true }, { "Average", true }, { "Peak", true }
	};
	struct chart_frame frame = {
		.id = "throughput-picture",
		.title = "Bytes over each link, for each second",
		.description = "A row for each link, scaled to its peak rate. The table below has "
			       "the sums.",
		.row_height = 40,
	};
	const bool none[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct picture picture;

	for (enum stage stage = 0; stage < N_STAGES; stage++)
		frame.n_rows += has_moved(writer, stage);
	page_open_section_over_time(writer, "throughput", "Throughput");
	if (frame.n_rows == 0) {
		html_element(html, "p", "No bytes were moved.");
		html_close(html);
		return;
	}
	picture_init(&picture, writer);
	picture_open(&picture, frame);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_moved(writer, stage))
			put_throughput_row(&picture, stage);
	picture_close(&picture, none);
	page_open_table(html, "Bytes over each link", columns, 4);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		if (has_moved(writer, stage))
			put_throughput_numbers(&picture, stage);
	html_close_to(html, depth);
}

/* --- Memory and space --- */

/* What was looked at, of one kind; where nobody looked it was as before. */
struct gauge {
	const char *name, *class;
	size_t offset;        /* in struct history_gauges */
	uint64_t most_nbytes; /* that it came to between two looks; 0: nobody knows */
	uint64_t limit_nbytes;
	const char *limit; /* what that is */
};

static void fill_gauge(struct picture *picture, const struct gauge *gauge)
{
	const struct history *history = picture->writer->history;
	struct chart_series *series = &picture->series[0];
	uint64_t nbytes = 0;

	series->class = gauge->class;
	series->name = gauge->name;
	for (uint32_t bin = 0; bin < picture->n_bins; bin++) {
		const struct history_gauges *seen = &history->gauges[bin];

		if (seen->memory_nbytes)
			memcpy(&nbytes, (const char *)seen + gauge->offset, sizeof nbytes);
		series->values[bin] = (double)nbytes;
	}
}

/* Whoever looks now and then may miss the most, which others have kept: it is one number. */
static double most_of(const struct picture *picture, const struct gauge *gauge)
{
	return fmax(picture_peak(picture, 1), (double)gauge->most_nbytes);
}

static void put_gauge(struct picture *picture, const struct gauge *gauge)
{
	char peak_text[32], note[NOTE_NBYTES];
	double peak;

	fill_gauge(picture, gauge);
	peak = most_of(picture, gauge);
	size_format((uint64_t)peak, peak_text);
	snprintf(note, sizeof note, "peak %s", peak_text);
	chart_row(&picture->chart,
		  &(struct chart_row){
			  .name = gauge->name,
			  .note = note,
			  .series = picture->series,
			  .n = 1,
			  .most = 1.05 * fmax(fmax(peak, (double)gauge->limit_nbytes), 1),
			  .limit = (double)gauge->limit_nbytes,
		  });
}

static void put_gauge_numbers(struct picture *picture, const struct gauge *gauge)
{
	struct html *html = &picture->writer->html;
	char size[32], limit[32];
	double sum = 0;

	fill_gauge(picture, gauge);
	for (uint32_t bin = 0; bin < picture->n_bins; bin++)
		sum += picture->series[0].values[bin];
	html_open(html, "tr");
	page_head_cell(html, "%s", gauge->name);
	size_format((uint64_t)(sum / picture->n_bins), size);
	page_number(html, "%s", size);
	size_format((uint64_t)most_of(picture, gauge), size);
	page_number(html, "%s", size);
	size_format(gauge->limit_nbytes, limit);
	page_cell(html, "%s%s", gauge->limit_nbytes ? limit : "-",
		  gauge->limit_nbytes ? gauge->limit : "");
	html_close(html);
}

void page_write_space(struct writer *writer)
{
	static const struct page_column columns[] = {
		{ "Item", false }, { "Average", true }, { "Peak", true }, { "Limit", false }
	};
	const struct census *census = writer->page->report->census; /* of it the first rank */
	const struct sort_facts *facts = census ? &census->ranks[0].facts : writer->facts;
	const struct stats_totals *totals = census ? &census->ranks[0].totals : &writer->totals;
	const struct gauge gauges[] = {
		{ "memory", "gauge of-memory", offsetof(struct history_gauges, memory_nbytes),
		  totals->usage.peak_rss_nbytes, facts->buffer_nbytes,
		  ", -S; up to 32 MiB more are possible" },
		{ "temporary", "gauge of-temporary",
		  offsetof(struct history_gauges, temporary_nbytes), facts->peak_temp_nbytes,
		  facts->plan.most_temporary_nbytes, ", planned" },
		{ "written", "gauge of-written", offsetof(struct history_gauges, written_nbytes), 0,
		  0, "" },
	};
	const bool is_sort = facts->backend[0]; /* a check takes nothing else */
	const unsigned n = is_sort ? sizeof gauges / sizeof gauges[0] : 1;
	const struct chart_frame frame = {
		.id = "space-picture",
		.title = is_sort ? "Memory, temporary space, and bytes written" : "Memory",
		.description = "The amount in use at each moment; a dashed line is the limit. The "
			       "table below has the numbers.",
		.n_rows = n,
		.row_height = 84,
	};
	const bool none[N_STAGES] = { false };
	struct html *html = &writer->html;
	const unsigned depth = html->depth;
	struct picture picture;

	page_open_section_over_time(writer, "space", "Memory and space");
	picture_init(&picture, writer);
	picture_open(&picture, frame);
	for (unsigned i = 0; i < n; i++)
		put_gauge(&picture, &gauges[i]);
	picture_close(&picture, none);
	page_open_table(html, "Memory and space", columns, 4);
	for (unsigned i = 0; i < n; i++)
		put_gauge_numbers(&picture, &gauges[i]);
	html_close_to(html, depth);
}
