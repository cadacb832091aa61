/*
 * timeline_chart - rows over time, one above the other, with what is to be said of them in numbers
 *
 * All pictures of a page have the same bins (src/base/time_series.h), so that what stands above
 * each other was at the same time. A picture has room for the series of one row, which is filled
 * in for one row after the other; and again for the table that has the same in numbers.
 */
#pragma once

#include "src/report/chart.h"
#include "src/report/html_report_internal.h"

struct timeline_chart {
	struct html_report_writer *writer;
	struct chart chart;
	uint32_t n_bins;
	double bin_s, last_bin_s; /* the last bin may have less */
	struct chart_series series[N_STAGES];
	char classes[N_STAGES][STAGE_CLASS_NBYTES];
};

/* Of the page that the writer writes; nothing is written yet. */
void timeline_chart_init(struct timeline_chart *timeline, struct html_report_writer *writer);

/* Begin it, with the phases; bins are known. And end it, with a legend of the stages in it. */
void timeline_chart_open(struct timeline_chart *timeline, struct chart_frame frame);
void timeline_chart_close(struct timeline_chart *timeline, const bool used[static N_STAGES]);

/* How long a bin is, in seconds; not 0. */
double timeline_chart_bin_s(const struct timeline_chart *timeline, uint32_t bin);

/* The most that the first n series come to together. */
double timeline_chart_peak(const struct timeline_chart *timeline, unsigned n);

/* All bins together. */
uint64_t timeline_chart_sum(const uint64_t bins[static TIME_SERIES_BINS]);
