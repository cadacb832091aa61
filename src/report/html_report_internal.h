/*
 * html_report_internal.h - parts of the page, for html_report.c and html_report_chart.c
 */
#pragma once

#include "src/report/html.h"
#include "src/report/html_report.h"

/* The page that is being written. */
struct html_report_writer {
	struct html html;
	const struct html_report *report;
	const struct sort_summary *summary;
	const struct time_series *time_series;
	struct stats_totals totals;
};

/* Format "work of-sort": the CSS class with the colour of a stage. */
enum { STAGE_CLASS_NBYTES = 32 };
const char *stage_css_class(enum stage stage, char text[static STAGE_CLASS_NBYTES]);

/* --- tables --- */

struct html_report_column {
	const char *name;
	bool is_number;
};

/* Open a table of n columns. The caller opens rows with html_open("tr") and closes all. */
void html_report_open_table(struct html *html, const char *caption,
			    const struct html_report_column *columns, unsigned n);

/* Write a cell: the name of the row, a text, or a number. */
__attribute__((format(printf, 2, 3))) void html_report_header_cell(struct html *html,
								   const char *format, ...);
__attribute__((format(printf, 2, 3))) void html_report_text_cell(struct html *html,
								 const char *format, ...);
__attribute__((format(printf, 2, 3))) void html_report_number_cell(struct html *html,
								   const char *format, ...);

/* Open a section with a heading, or a figure that scrolls; the caller closes them. */
void html_report_open_section(struct html *html, const char *id, const char *heading);
void html_report_open_figure(struct html *html, const char *label);

/* --- html_report_chart.c --- */

/* Write the section of phases, and that of the stages of each phase. */
void html_report_write_phases(struct html_report_writer *writer);
void html_report_write_stages(struct html_report_writer *writer);

/* Open a section about rank 0 only; with several ranks the section says so. */
void html_report_open_time_section(struct html_report_writer *writer, const char *id,
				   const char *heading);

void html_report_write_roles(struct html_report_writer *writer);
/* Write the queues of a device with its own memory, if any was active. */
bool html_report_has_queues(const struct html_report_writer *writer);
void html_report_write_queues(struct html_report_writer *writer);

void html_report_write_throughput(struct html_report_writer *writer);
void html_report_write_space(struct html_report_writer *writer);
