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
 * shell has them (src/base/quote.h). Whoever owns the stream finds out whether it could be
 * written.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

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
