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
#include "src/report/stats_report.h"

struct html_report;
struct report_file;
struct syscalls;

enum report_kind { REPORT_STATS_JSON, REPORT_TRACE, REPORT_HTML, N_REPORTS };

/* Report files and what records for them. Zero-initialised: none is open. */
struct reports {
	struct report_file *files[N_REPORTS]; /* NULL: none */
	struct trace *trace;                  /* NULL: none */
	FILE *trace_stream;                   /* memory instead of a file: on all ranks but 0 */
	char *trace_text;                     /* trace_nbytes, of that stream */
	size_t trace_nbytes;
	struct time_series *time_series; /* for the HTML report; NULL: none */
};

/*
 * Open the report files that have a path (NULL: none); reports_write() makes them appear, and
 * reports_discard() leaves older files unchanged. One of both must follow, even after an error.
 * Returns 0 or a negative errno (reported).
 */
int reports_open(const struct syscalls *calls, const char *const paths[static N_REPORTS],
		 struct reports *ret_reports);

/*
 * Collective, after reports_open(), which only rank 0 calls: record a trace on all ranks if rank 0
 * does. Returns 0 or a negative errno (reported).
 */
int reports_open_rank_trace(struct reports *reports, struct comm *comm);

/*
 * Collective, after a run that has succeeded: complete the statistics, and collect them and the
 * traces on rank 0. Returns 0, with *ret_rank_stats NULL on all ranks but 0, or a negative errno
 * (reported).
 */
int reports_gather_ranks(struct reports *reports, struct comm *comm, struct stats *stats,
			 const struct sort_summary *summary, struct rank_stats **ret_rank_stats);

/*
 * Write the reports of a run that has succeeded, and give them their names. html: what the page
 * shows; its time series and statistics are set. has_output: messages say that the output is
 * complete. Returns 0 or the first error (reported).
 */
int reports_write(const struct stats_report *report, const struct html_report *html,
		  bool has_output, struct reports *reports);

/* Drop what was not written. Idempotent. */
void reports_discard(struct reports *reports);
