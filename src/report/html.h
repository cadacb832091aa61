/*
 * html.h - write a page of HTML with tables and SVG charts
 *
 *	html_print(stream, "<p>%s is sorted</p>\n", path);
 *
 * A format is HTML with conversions as of printf. Texts (%s) are escaped: <, >, &, quotes, and
 * invalid and invisible characters as in the shell (src/base/text.h). So the page is UTF-8 and has
 * no other markup, whatever bytes a text has. The owner of the stream checks for write errors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/time_series.h"

/*
 * Write a format with the conversions %s, %d, %u, %f and %g, with flags and lengths. A text is
 * omitted if memory is short.
 */
__attribute__((format(printf, 2, 3))) void html_print(FILE *stream, const char *format, ...);

/* Write the beginning of a tag, with a class (NULL: none). `tag` may contain attributes. */
void html_begin_tag(FILE *stream, const char *tag, const char *class);

struct html_column {
	const char *name;
	bool is_number;
};

/* Write a table up to its first row. */
void html_open_table(FILE *stream, const char *caption, const struct html_column *columns,
		     unsigned n);
void html_close_table(FILE *stream);

/* Write the beginning of a section, with its heading. */
void html_open_section(FILE *stream, const char *id, const char *heading);

/*
 * --- charts over time ---
 *
 * Rows that share one time axis, each with stacked areas:
 *
 *		run generation     final merge
 *	readers	####.###_
 *	queues	_#########..._#######___######
 *	writers	____##___##____############___
 *		0      1 s     2 s     3 s
 *
 * Colours are those of CSS classes (html_report.c). A chart has a title and a description for
 * screen readers.
 */

/* The width of all charts, and the position and width of the plot. */
enum { CHART_WIDTH = 960, CHART_LEFT = 132, CHART_PLOT = 816 };

struct chart_frame {
	const char *id; /* prefix of the ids of its elements */
	const char *title, *description;
	uint32_t n_bins;
	double bin_s;
	unsigned n_rows, row_height;
};

struct chart {
	FILE *stream;
	struct chart_frame frame;
	unsigned row; /* number of the next row */
};

/* One of the areas of a row. */
struct chart_series {
	const char *class, *name;
	double values[TIME_SERIES_BINS];
};

struct chart_row {
	const char *name, *note;
	const struct chart_series *series; /* n, from bottom to top */
	unsigned n;
	double max;   /* the value at full height; positive */
	double limit; /* a dashed line; 0: none */
};

void chart_open(struct chart *chart, FILE *stream, const struct chart_frame *frame);

/* Draw a phase: its name above the plot, and a box. */
void chart_span(struct chart *chart, const char *name, double begin_s, double end_s);

void chart_row(struct chart *chart, const struct chart_row *row);

/* Draw the axis and close the chart. */
void chart_close(struct chart *chart);
