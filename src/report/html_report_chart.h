/*
 * html_report_chart.h - the sections of the page with charts over time, and those of phases
 */
#pragma once

#include "src/report/html.h"
#include "src/sort/rank_stats.h"

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
