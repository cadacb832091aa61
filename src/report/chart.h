/*
 * chart - pictures over time: rows that share one axis, each an area of what was then
 *
 *		run generation     final merge
 *	readers	####.###_
 *	lanes	_#########..._#######___######
 *	writers	____##___##____############___
 *		0      1 s     2 s     3 s
 *
 * Inline SVG, made of bins: the same number of bytes for a second and for a day. Colours are those
 * of classes (html_report_style.c). A picture has a title and a description for those who do not
 * see it.
 */
#pragma once

#include <stdint.h>

#include "src/base/time_series.h"
#include "src/report/html.h"

/* Units of the pictures that stand below each other: where they begin, how wide they are. */
enum { CHART_WIDTH = 960, CHART_LEFT = 132, CHART_PLOT = 816 };

struct chart_frame {
	const char *id; /* of the page's elements */
	const char *title, *description;
	uint32_t n_bins;
	double bin_s;
	unsigned n_rows, row_height;
};

struct chart {
	struct html *html;
	struct chart_frame frame;
	unsigned depth; /* of the page, outside */
	unsigned row;   /* the next one */
};

/* One of the things that a row adds up. */
struct chart_series {
	const char *class, *name;
	double values[TIME_SERIES_BINS];
};

struct chart_row {
	const char *name, *note;
	const struct chart_series *series; /* n, from below */
	unsigned n;
	double max;   /* what its height stands for; positive */
	double limit; /* a line across; 0: none */
};

void chart_open(struct chart *chart, struct html *html, const struct chart_frame *frame);

/* Something that lasted: its name above, and lines where it began and ended. */
void chart_span(struct chart *chart, const char *name, double begin_s, double end_s);

void chart_row(struct chart *chart, const struct chart_row *row);

/* With the axis. */
void chart_close(struct chart *chart);

/*
 * For any picture: <svg> with a title and a description, of that size; the caller closes the
 * element.
 */
void chart_open_svg(struct html *html, const struct chart_frame *frame, unsigned height);

/* A text at x, y; class: how it looks and on which side of x it is. */
__attribute__((format(printf, 5, 6))) void chart_text(struct html *html, const char *class,
						      double x, double y, const char *format, ...);

/* A rectangle; one that would not be seen is a little wider. */
void chart_box(struct html *html, const char *class, double x, double y, double width,
	       double height);

void chart_line(struct html *html, const char *class, double x1, double y1, double x2, double y2);
