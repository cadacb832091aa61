/*
 * html_report_internal - the parts of a page, for html_report*.c only
 */
#pragma once

#include "src/report/html.h"
#include "src/report/html_report.h"

/* What all parts write to, and about. */
struct html_report_writer {
	struct html html;
	const struct html_report *report;
	const struct sort_summary *summary;
	const struct time_series *time_series;
	struct stats_totals totals;
};

/* "work of-sort": the class of what has the colour of a stage. */
enum { STAGE_CLASS_NBYTES = 32 };
const char *stage_css_class(enum stage stage, char text[static STAGE_CLASS_NBYTES]);

/* --- Tables --- */

struct html_report_column {
	const char *name;
	bool is_number;
};

/* Begin a table of n columns. Rows are opened with html_open("tr"); the caller closes all. */
void html_report_open_table(struct html *html, const char *caption,
			    const struct html_report_column *columns, unsigned n);

/* A cell: the one that names its row, one of text, one of a number. */
__attribute__((format(printf, 2, 3))) void html_report_header_cell(struct html *html,
								   const char *format, ...);
__attribute__((format(printf, 2, 3))) void html_report_text_cell(struct html *html,
								 const char *format, ...);
__attribute__((format(printf, 2, 3))) void html_report_number_cell(struct html *html,
								   const char *format, ...);

/* Begin a section with a heading; a picture in a frame that can be scrolled; both are closed. */
void html_report_open_section(struct html *html, const char *id, const char *heading);
void html_report_open_figure(struct html *html, const char *label);

/* --- html_report_chart.c --- */

/* How long each took; and in each what every stage moved, and how fast it can be. */
void html_report_write_phases(struct html_report_writer *writer);
void html_report_write_stages(struct html_report_writer *writer);

/* Open a section about rank 0 only; with several ranks the section says so. */
void html_report_open_time_section(struct html_report_writer *writer, const char *id,
				   const char *heading);

void html_report_write_roles(struct html_report_writer *writer);
/* Of a GPU, if it was at work; else nothing. */
bool html_report_has_queues(const struct html_report_writer *writer);
void html_report_write_queues(struct html_report_writer *writer);

void html_report_write_throughput(struct html_report_writer *writer);
void html_report_write_space(struct html_report_writer *writer);
