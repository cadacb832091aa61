/*
 * timeline_chart - rows over time, one above the other (see timeline_chart.h)
 */
#include "src/report/timeline_chart.h"

#include <string.h>

#include "src/report/format_numbers.h"

void picture_init(struct picture *picture, struct writer *writer)
{
	const struct history *history = writer->history;
	const uint64_t all_ns = history->end_ns - history->begin_ns;

	memset(picture, 0, sizeof *picture);
	picture->writer = writer;
	picture->n_bins = history_n_bins(history);
	picture->bin_s = figures_s(history->bin_ns);
	picture->last_s = figures_s(all_ns - (picture->n_bins - 1) * history->bin_ns);
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		page_class(stage, picture->classes[stage]);
}

void picture_open(struct picture *picture, struct chart_frame frame)
{
	const struct history *history = picture->writer->history;

	frame.n_bins = picture->n_bins;
	frame.bin_s = picture->bin_s;
	page_open_figure(&picture->writer->html, frame.title);
	chart_open(&picture->chart, &picture->writer->html, &frame);
	for (enum phase phase = 0; phase < N_PHASES; phase++)
		if (history->phases[phase].end_ns)
			chart_span(&picture->chart, phase_name(phase),
				   figures_s(history->phases[phase].begin_ns - history->begin_ns),
				   figures_s(history->phases[phase].end_ns - history->begin_ns));
}

void picture_close(struct picture *picture, const bool used[static N_STAGES])
{
	struct html *html = &picture->writer->html;

	chart_close(&picture->chart);
	html_open(html, "figcaption");
	for (enum stage stage = 0; stage < N_STAGES; stage++) {
		if (!used[stage])
			continue;
		html_open_of(html, "span", "key");
		html_open(html, "i");
		html_attribute(html, "class", "of-%s", stage_name(stage));
		html_close(html);
		html_text(html, "%s", stage_name(stage));
		html_close(html);
	}
	html_close(html);
	html_close(html);
}

double picture_bin_s(const struct picture *picture, uint32_t bin)
{
	const double s = bin + 1 < picture->n_bins ? picture->bin_s : picture->last_s;

	return s > 0 ? s : picture->bin_s;
}

uint64_t picture_sum(const uint64_t bins[static HISTORY_BINS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < HISTORY_BINS; i++)
		sum += bins[i];
	return sum;
}

double picture_peak(const struct picture *picture, unsigned n)
{
	double most = 0;

	for (uint32_t bin = 0; bin < picture->n_bins; bin++) {
		double sum = 0;

		for (unsigned i = 0; i < n; i++)
			sum += picture->series[i].values[bin];
		most = sum > most ? sum : most;
	}
	return most;
}
