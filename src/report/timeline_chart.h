/*
 * timeline_chart - rows over time, one above the other, with what is to be said of them in numbers
 *
 * All pictures of a page have the same bins (src/base/time_series.h), so that what stands above each
 * other was at the same time. A picture has room for the series of one row, which is filled in for
 * one row after the other; and again for the table that has the same in numbers.
 */
#pragma once

#include "src/report/chart.h"
#include "src/report/html_report_internal.h"

struct picture {
	struct writer *writer;
	struct chart chart;
	uint32_t n_bins;
	double bin_s, last_s; /* the last bin may have less */
	struct chart_series series[N_STAGES];
	char classes[N_STAGES][PAGE_CLASS_NBYTES];
};

/* Of the page that the writer writes; nothing is written yet. */
void picture_init(struct picture *picture, struct writer *writer);

/* Begin it, with the phases; bins are known. And end it, with a legend of the stages in it. */
void picture_open(struct picture *picture, struct chart_frame frame);
void picture_close(struct picture *picture, const bool used[static N_STAGES]);

/* How long a bin is, in seconds; not 0. */
double picture_bin_s(const struct picture *picture, uint32_t bin);

/* The most that the first n series come to together. */
double picture_peak(const struct picture *picture, unsigned n);

/* All bins together. */
uint64_t picture_sum(const uint64_t bins[static HISTORY_BINS]);
