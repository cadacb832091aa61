/*
 * html.h - write a page of HTML, element by element, with SVG charts
 *
 *	html_open(&html, "p");
 *	html_attribute(&html, "id", "%s", name);	before any content
 *	html_text(&html, "%s is sorted", path);		escapes <, &, quotes, control characters
 *	html_close(&html);				closes the innermost element
 *
 * Names of elements and attributes are constants and are not escaped. Whatever bytes a text has,
 * the page is UTF-8: invalid and invisible characters are escaped as in the shell
 * (src/base/text.h). The owner of the stream checks for write errors.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "src/base/time_series.h"

enum { HTML_MAX_DEPTH = 32 };

struct html {
	FILE *stream;
	unsigned depth;
	const char *open_elements[HTML_MAX_DEPTH];
	bool in_tag; /* attributes may follow */
};

void html_open(struct html *html, const char *element);
void html_close(struct html *html);

/* Close elements until `depth` are open. */
void html_close_to(struct html *html, unsigned depth);

__attribute__((format(printf, 3, 4))) void html_attribute(struct html *html, const char *name,
							  const char *format, ...);
__attribute__((format(printf, 2, 3))) void html_text(struct html *html, const char *format, ...);

/* Write an element that contains only text, optionally with a class. */
__attribute__((format(printf, 3, 4))) void html_element(struct html *html, const char *element,
							const char *format, ...);
__attribute__((format(printf, 4, 5))) void html_element_with_class(struct html *html,
								   const char *element,
								   const char *class,
								   const char *format, ...);

void html_open_with_class(struct html *html, const char *element, const char *class);

/*
 * Write the value of an attribute to the stream in pieces; the caller must not write characters
 * that need escapes.
 */
FILE *html_begin_attribute(struct html *html, const char *name);
void html_end_attribute(struct html *html);

/* Write HTML or CSS as it is. */
void html_raw(struct html *html, const char *text);

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
	struct html *html;
	struct chart_frame frame;
	unsigned depth; /* open elements outside of the chart */
	unsigned row;   /* number of the next row */
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

void chart_open(struct chart *chart, struct html *html, const struct chart_frame *frame);

/* Draw a phase: its name above the plot, and a box. */
void chart_span(struct chart *chart, const char *name, double begin_s, double end_s);

void chart_row(struct chart *chart, const struct chart_row *row);

/* Draw the axis and close the chart. */
void chart_close(struct chart *chart);
