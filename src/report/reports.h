/*
 * reports.h - the report files of a run: --stats-json, --trace and --report
 *
 *	open -> (a run, whose statistics get the trace and the time series) -> write
 *	                                                                    \-> discard
 *
 * The files are opened before the run, so that errors show early, and appear when they are written.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "src/base/time_series.h"
#include "src/base/trace.h"
#include "src/report/report_file.h"
#include "src/report/stats_report.h"

struct html_report;

/* The requested files; NULL: none. */
struct report_paths {
	const char *stats_json, *trace, *html;
};

/* Report files and what records for them. Zero-initialised: none is open. */
struct reports {
	struct report_file *stats_file, *trace_file, *html_file; /* NULL: none */
	struct trace *trace;                                     /* NULL: none */
	FILE *trace_stream; /* memory instead of a file: on every rank but the first */
	char *trace_text;   /* trace_nbytes, of that stream */
	size_t trace_nbytes;
	struct time_series *time_series; /* for the HTML report; NULL: none */
};

/*
 * Open the requested report files; reports_write() makes them appear, and reports_discard() leaves
 * older files unchanged. One of both must follow, even after an error. Returns 0 or a negative
 * errno (reported).
 */
int reports_open(const struct syscalls *calls, const struct report_paths *paths,
		 struct reports *ret_reports);

/* Trace to memory, and return the text, which is valid until reports_discard(). */
int reports_open_trace_text(struct reports *reports);
int reports_close_trace_text(struct reports *reports, const char **ret_text, size_t *ret_nbytes);

/*
 * Write the reports of a run that has succeeded, and give them their names. html: what the page
 * shows; its time series and statistics are set. has_output: messages say that the output is
 * complete. Returns 0 or the first error (reported).
 */
int reports_write(const struct stats_report *report, const struct html_report *html,
		  bool has_output, struct reports *reports);

/* Drop what was not written. Idempotent. */
void reports_discard(struct reports *reports);
