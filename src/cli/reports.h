/*
 * reports - the files that tell of a run, and what is told on standard error
 *
 *	open -> (the run) -> reports_write	they appear
 *	                 \-> reports_drop	older ones are as they were
 *
 * All functions print their message.
 */
#pragma once

#include "src/base/history.h"
#include "src/base/trace.h"
#include "src/report/report_file.h"
#include "src/options/options.h"
#include "src/report/report.h"

/* A zeroed struct has nothing open. */
struct reports {
	struct report_file *stats_json, *trace_file, *page; /* NULL: none */
	struct trace *trace;                                /* NULL: none */
	struct history *history;                            /* for the page; NULL: none */
	bool found_disorder; /* to be set when it is known: a check has */
};

/* Is any file asked for, or a table? */
bool reports_are_wanted(const struct options *options);

/*
 * Open what is asked for. Returns 0, or a negative errno; write or drop is due in both cases, when
 * nobody adds to trace and history any more.
 */
int reports_open(const struct options *options, struct reports *ret_reports);

/* The run is done: tell of it. 0, or the first failure. */
int reports_write(const struct options *options, const struct report *report,
		  struct reports *reports);

/* There is nothing to tell. */
void reports_drop(struct reports *reports);
