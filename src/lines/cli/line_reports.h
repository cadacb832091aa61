/*
 * line_reports.h - progress, statistics and report files of a command that sorts or checks lines
 *
 *	open -> (a sort with the statistics) -> write
 *	                                    \-> close
 */
#pragma once

#include "src/cli/cli_main.h"
#include "src/report/reports.h"

struct line_sort_params;

/* What the command line asks for. */
struct line_report_options {
	struct comm *comm; /* NULL: a single process */
	enum progress_mode progress;
	bool prints_stats;
	struct report_paths paths;
};

struct line_reports {
	const struct line_report_options *options;
	struct reports files;
	struct stats *stats;
	struct rank_progress *rank_progress; /* NULL: a single process */
	struct rank_stats *rank_stats;       /* NULL: a single process, or not rank 0 */
	struct progress_display *display;    /* NULL on all ranks but rank 0 */
};

/*
 * Open the files and the statistics, and show progress from now on. The files must not be inputs or
 * the output of `params`. Returns 0 or a negative errno after a message; then, too, close.
 */
int line_reports_open(const struct syscalls *calls, const struct line_report_options *options,
		      const struct line_sort_params *params, struct line_reports *ret_reports);

/*
 * Collective of all ranks, after a run that has succeeded; nothing for a single process. Collect
 * statistics, traces and the final progress on rank 0. Returns 0 or a negative errno after a
 * message.
 */
int line_reports_gather_ranks(struct line_reports *reports, const struct sort_summary *summary);

/*
 * Print statistics and write the files of a run that has succeeded; of several ranks, only on rank
 * 0.
 * is_check, has_disorder: it was a check, which found disorder. Returns 0 or the first error after
 * a message.
 */
int line_reports_write(struct line_reports *reports, const struct line_sort_params *params,
		       const struct sort_summary *summary, bool is_check, bool has_disorder);

/* Stop the display, before messages about the end. Called by line_reports_close() as well. */
void line_reports_stop_display(struct line_reports *reports);
void line_reports_close(struct line_reports *reports);
