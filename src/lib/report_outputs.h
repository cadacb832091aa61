/*
 * report_outputs - the files that tell of a run
 *
 *	open -> (the run) -> reports_write	they appear
 *	                 \-> reports_discard	older ones are as they were
 *
 * Failures have a message.
 */
#pragma once

#include "src/base/time_series.h"
#include "src/base/trace.h"
#include "src/options/options.h"
#include "src/report/stats_report.h"
#include "src/report/report_file.h"

/* A zeroed struct has nothing open. */
struct reports {
	struct report_file *stats_file, *trace_file, *html_file; /* NULL: none */
	struct trace *trace;                                     /* NULL: none */
	FILE *trace_stream;  /* in the place of a file: of a rank that is not the first */
	char *trace_text;    /* what is in it, ... */
	size_t trace_nbytes; /* ... and how much */
	struct time_series *time_series; /* for the page; NULL: none */
};

/* Is any file asked for, or a table? */
bool reports_are_requested(const struct options *options);

/*
 * Open what is asked for. Returns 0, or a negative errno; drop is due in the end, when nobody adds
 * to trace and history any more. calls: as of a report_file.
 */
int reports_open(const struct options *options, const struct syscalls *calls,
		 struct reports *ret_reports);

/*
 * A trace into memory, for who writes no files. 0, or -ENOMEM after a message. And: it is complete.
 * The text goes when the reports are dropped. 0, or a negative errno after a message.
 */
int reports_open_trace_text(struct reports *reports);
int reports_close_trace_text(struct reports *reports, const char **ret_text, size_t *ret_nbytes);

/*
 * The run is done: tell of it, and of the disorder that a check has found. 0, or the first failure.
 */
int reports_write(const struct options *options, const struct stats_report *report,
		  bool has_disorder, struct reports *reports);

/* What was not written is not wanted. More than once is fine. */
void reports_discard(struct reports *reports);
