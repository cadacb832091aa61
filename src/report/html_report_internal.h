/*
 * html_report_internal - the parts of a page, for page*.c only
 */
#pragma once

#include "src/report/html.h"
#include "src/report/html_report.h"

/* What all parts write to, and about. */
struct writer {
	struct html html;
	const struct page *page;
	const struct sort_facts *facts;
	const struct history *history;
	struct stats_totals totals;
};

/* How it looks: CSS. */
extern const char page_style[];

/* "work of-sort": the class of what has the colour of a stage. */
enum { PAGE_CLASS_NBYTES = 32 };
const char *page_class(enum stage stage, char text[static PAGE_CLASS_NBYTES]);

/* --- Tables --- */

struct page_column {
	const char *name;
	bool is_number;
};

/* Begin a table of n columns. Rows are opened with html_open("tr"); the caller closes all. */
void page_open_table(struct html *html, const char *caption, const struct page_column *columns,
		     unsigned n);

/* A cell: the one that names its row, one of text, one of a number. */
__attribute__((format(printf, 2, 3))) void page_head_cell(struct html *html, const char *format,
							  ...);
__attribute__((format(printf, 2, 3))) void page_cell(struct html *html, const char *format, ...);
__attribute__((format(printf, 2, 3))) void page_number(struct html *html, const char *format, ...);

/* Begin a section with a heading; a picture in a frame that can be scrolled; both are closed. */
void page_open_section(struct html *html, const char *id, const char *heading);
void page_open_figure(struct html *html, const char *label);

/* --- html_report_phases.c --- */

/* How long each took; and in each what every stage moved, and how fast it can be. */
void page_write_phases(struct writer *writer);
void page_write_links(struct writer *writer);

/* --- html_report_ranks.c --- */

/* Of several ranks, if there are any; else nothing. */
bool page_has_ranks(const struct writer *writer);
void page_write_ranks(struct writer *writer);

/* page_open_section(), of what is known of the first rank only: it says so. */
void page_open_section_over_time(struct writer *writer, const char *id, const char *heading);

/* --- html_report_activity.c --- */

void page_write_roles(struct writer *writer);
/* Of a GPU, if it was at work; else nothing. */
bool page_has_lanes(const struct writer *writer);
void page_write_lanes(struct writer *writer);

/* --- html_report_throughput.c --- */

void page_write_throughput(struct writer *writer);
void page_write_space(struct writer *writer);
