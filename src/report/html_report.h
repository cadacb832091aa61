/*
 * html_report.h - a sort as one page of HTML (--report)
 *
 * The page is one file without scripts or external resources. Charts are SVG, each with a title, a
 * description and a table of its numbers; colours follow the reader's choice of light or dark. The
 * size does not grow with the sort (time_series.h): it is well below 300 KB.
 */
#pragma once

#include <time.h>

#include "src/base/time_series.h"
#include "src/report/html.h"
#include "src/report/stats_report.h"
#include "src/sort/rank_stats.h"

struct html_report {
	const struct stats_report *stats_report; /* stats must not be NULL */
	const struct time_series *time_series;   /* samples of the same sort; borrowed */
	const char *const *inputs;               /* n_inputs names; "-": standard input */
	size_t n_inputs;
	const char *output;  /* NULL: standard output */
	bool has_disorder;   /* found by a check */
	time_t created_at;   /* shown in UTC */
	size_t n_part_files; /* in the directory `output`; 0: the output is one file */
};

/* Write the page. The owner of the stream checks for write errors. */
void html_report_write(const struct html_report *report, FILE *stream);

/* --- sections with charts over time, and those of phases (html_report_chart.c) --- */

/* What the page shows, and where it is written. */
struct html_page {
	FILE *stream;
	const struct rank_stats *rank_stats; /* NULL: one process */
	const struct sort_summary *summary;
	const struct time_series *time_series;
	struct stats_totals totals;
};

/* Write the section of phases, and that of the stages of each phase. */
void html_page_write_phases(const struct html_page *page);
void html_page_write_stages(const struct html_page *page);

/* Write a section over time. With several ranks the section says that it shows rank 0 only. */
void html_page_write_roles(const struct html_page *page);
void html_page_write_throughput(const struct html_page *page);
void html_page_write_space(const struct html_page *page);

/* Write the queues of a device with its own memory, if any was active. */
bool html_page_has_queues(const struct html_page *page);
void html_page_write_queues(const struct html_page *page);
