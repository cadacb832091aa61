/*
 * timeline_chart - rows over time, one above the other (see timeline_chart.h)
 */
#include "src/report/timeline_chart.h"

#include <string.h>

#include "src/report/format_numbers.h"

void timeline_chart_init(struct timeline_chart *timeline, struct html_report_writer *writer)
{
	const struct time_series *time_series = writer->time_series;
	const uint64_t total_ns = time_series->end_ns - time_series->begin_ns;

	memset(timeline, 0, sizeof *timeline);
	timeline->writer = writer;
	timeline->n_bins = time_series_n_bins(time_series);
	timeline->bin_s = ns_to_seconds(time_series->bin_ns);
	timeline->last_bin_s =
		ns_to_seconds(total_ns - (timeline->n_bins - 1) * time_series->bin_ns);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		stage_css_class(stage, timeline->classes[stage]);
}

void timeline_chart_open(struct timeline_chart *timeline, struct chart_frame frame)
{
	const struct time_series *time_series = timeline->writer->time_series;

	frame.n_bins = timeline->n_bins;
	frame.bin_s = timeline->bin_s;
	html_report_open_figure(&timeline->writer->html, frame.title);
	chart_open(&timeline->chart, &timeline->writer->html, &frame);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (time_series->phases[phase].end_ns)
			chart_span(&timeline->chart, phase_name(phase),
				   ns_to_seconds(time_series->phases[phase].begin_ns -
						 time_series->begin_ns),
				   ns_to_seconds(time_series->phases[phase].end_ns -
						 time_series->begin_ns));
}

void timeline_chart_close(struct timeline_chart *timeline, const bool used[static N_STAGES])
{
	struct html *html = &timeline->writer->html;

	chart_close(&timeline->chart);
	html_open(html, "figcaption");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (!used[stage])
			continue;
		html_open_with_class(html, "span", "key");
		html_open(html, "i");
		html_attribute(html, "class", "of-%s", stage_name(stage));
		html_close(html);
		html_text(html, "%s", stage_name(stage));
		html_close(html);
	}
	html_close(html);
	html_close(html);
}

double timeline_chart_bin_s(const struct timeline_chart *timeline, uint32_t bin)
{
	const double s = bin + 1 < timeline->n_bins ? timeline->bin_s : timeline->last_bin_s;

	return s > 0 ? s : timeline->bin_s;
}

uint64_t timeline_chart_sum(const uint64_t bins[static TIME_SERIES_BINS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < TIME_SERIES_BINS; i++)
		sum += bins[i];
	return sum;
}

double timeline_chart_peak(const struct timeline_chart *timeline, unsigned n)
{
	double peak = 0;

	for (uint32_t bin = 0; bin < timeline->n_bins; bin++) {
		double sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += timeline->series[i].values[bin];
		peak = sum > peak ? sum : peak;
	}
	return peak;
}
