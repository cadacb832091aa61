/*
 * html - a page, element by element, in which text stays text
 *
 *	html_open(&html, "p");
 *	html_attribute(&html, "id", "%s", name);	before anything is in the element
 *	html_text(&html, "%s is sorted", path);		<, &, quotes, control characters: shown
 *	html_close(&html);				it is known what is open
 *
 * Names of elements and attributes are ours, plain words that stay where they are. Whatever bytes a
 * text has, the page is UTF-8: what is no character, or would not be seen, is an escape as the
 * shell has them (src/base/text.h). Whoever owns the stream finds out whether it could be
 * written.
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
	bool in_tag; /* attributes can still come */
};

void html_open(struct html *html, const char *element);
void html_close(struct html *html);

/* Close all until that deep. */
void html_close_to(struct html *html, unsigned depth);

__attribute__((format(printf, 3, 4))) void html_attribute(struct html *html, const char *name,
							  const char *format, ...);
__attribute__((format(printf, 2, 3))) void html_text(struct html *html, const char *format, ...);

/* An element that holds nothing but text; and one with a class. */
__attribute__((format(printf, 3, 4))) void html_element(struct html *html, const char *element,
							const char *format, ...);
__attribute__((format(printf, 4, 5))) void html_element_with_class(struct html *html,
								   const char *element,
								   const char *class,
								   const char *format, ...);

/* Open an element with a class. */
void html_open_with_class(struct html *html, const char *element, const char *class);

/* The value of an attribute that is made of digits and letters only, bit by bit. */
FILE *html_begin_attribute(struct html *html, const char *name);
void html_end_attribute(struct html *html);

/* What is HTML, or CSS, already. */
void html_raw(struct html *html, const char *text);

/*
 * Charts over time: rows that share one axis, each an area of what happened then.
 *
 *		run generation     final merge
 *	readers	####.###_
 *	queues	_#########..._#######___######
 *	writers	____##___##____############___
 *		0      1 s     2 s     3 s
 *
 * Colours are those of classes (the style in html_report.c). A chart has a title and a description
 * for readers who cannot see it.
 */

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
