/*
 * html_report - a sort as one page of HTML, to be looked at, kept and printed
 *
 * All is in the one file: no scripts, nothing is loaded. Pictures are SVG, each with its numbers in
 * a table beside it, a title and a description; colours follow the reader's choice of light or
 * dark. The size does not grow with the sort (time_series.h): well below 300 KB.
 */
#pragma once

#include <time.h>

#include "src/base/time_series.h"
#include "src/report/stats_report.h"

struct html_report {
	const struct stats_report *stats_report; /* with stats */
	const struct time_series *time_series;   /* of the same */
	const char *const *inputs;               /* n_inputs; "-": standard input */
	size_t n_inputs;
	const char *output;  /* NULL: standard output */
	bool has_disorder;   /* by a check */
	time_t created_at;   /* now, as the page has it; of UTC */
	size_t n_part_files; /* in the directory of that name; 0: it is one file */
};

/* Whoever owns the stream finds out whether it could be written. */
void html_report_write(const struct html_report *report, FILE *stream);
