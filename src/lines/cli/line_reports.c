/*
 * line_reports.c - progress, statistics and report files of lines (see line_reports.h)
 */
#include "src/lines/cli/line_reports.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "src/base/diagnostics.h"
#include "src/comm/comm.h"
#include "src/comm/rank_progress.h"
#include "src/lines/line_sort.h"
#include "src/options/command_files.h"
#include "src/report/html_report.h"
#include "src/sort/distributed_sort.h"

/* Time between two queries of all ranks. */
static const uint64_t rank_progress_interval_ns = 500000000;

static void query_progress(void *context, struct gsort_progress *ret_progress)
{
	const struct line_reports *reports = context;
	struct stats_progress progress;

	if (reports->rank_progress)
		rank_progress_get(reports->rank_progress, &progress);
	else
		stats_get_progress(reports->stats, &progress);
	*ret_progress = (struct gsort_progress){
		.phase = progress.started ? phase_name(progress.phase) : "",
		.done_nbytes = progress.done_nbytes,
		.total_nbytes = progress.total_nbytes,
		.overall_done_nbytes = progress.overall_done_nbytes,
		.overall_total_nbytes = progress.overall_total_nbytes,
		.elapsed_ns = progress.overall_elapsed_ns,
		.phase_elapsed_ns = progress.elapsed_ns,
	};
}

/* Refuse reports, and a checkpoint, in files that have another role. */
static int check_files(const struct report_paths *paths, const struct line_sort_params *params)
{
	const struct options options = { .spec = { .inputs = params->inputs,
						   .n_inputs = params->n_inputs,
						   .output_path = params->output,
						   .n_part_files = params->n_part_files,
						   .checkpoint_path = params->checkpoint_path },
					 .stats_json_path = paths->stats_json,
					 .trace_path = paths->trace,
					 .report_path = paths->html };

	/* Otherwise any file may be read and written, as by GNU sort. */
	if (!paths->stats_json && !paths->trace && !paths->html && !params->checkpoint_path)
		return 0;
	return command_files_check(&options, false);
}

static bool is_reporting_rank(const struct line_reports *reports)
{
	return !reports->options->comm || comm_rank(reports->options->comm) == 0;
}

/* Open the report files. Collective of all ranks: rank 0 reports its errors for all. */
static int open_files(const struct syscalls *calls, const struct line_sort_params *params,
		      struct line_reports *reports)
{
	struct comm *comm = reports->options->comm;
	const struct report_paths *paths = &reports->options->paths;
	int r = 0;

	if (is_reporting_rank(reports))
		r = check_files(paths, params);
	if (r == 0 && is_reporting_rank(reports))
		r = reports_open(calls, paths, &reports->files);
	if (comm)
		r = distributed_broadcast_status(comm, r);
	return r == 0 && comm ? reports_open_rank_trace(&reports->files, comm) : r;
}

int line_reports_open(const struct syscalls *calls, const struct line_report_options *options,
		      const struct line_sort_params *params, struct line_reports *ret_reports)
{
	struct line_reports *reports = ret_reports;
	int r;

	*reports = (struct line_reports){ .options = options };
	r = open_files(calls, params, reports);
	if (r == 0)
		r = stats_open(reports->files.trace, reports->files.time_series, &reports->stats);
	if (r == 0 && options->comm)
		r = rank_progress_open(options->comm, reports->stats, rank_progress_interval_ns,
				       &reports->rank_progress);
	if (r < 0 || !is_reporting_rank(reports))
		return r;
	return progress_display_open(options->progress, query_progress, reports, &reports->display);
}

int line_reports_gather_ranks(struct line_reports *reports, const struct sort_summary *summary)
{
	struct comm *comm = reports->options->comm;
	int r;

	if (!comm)
		return 0;
	r = reports_gather_ranks(&reports->files, comm, reports->stats, summary,
				 &reports->rank_stats);
	return r < 0 ? r : rank_progress_finish(reports->rank_progress);
}

void line_reports_stop_display(struct line_reports *reports)
{
	progress_display_close(reports->display);
	reports->display = NULL;
}

int line_reports_write(struct line_reports *reports, const struct line_sort_params *params,
		       const struct sort_summary *summary, bool is_check, bool has_disorder)
{
	const struct stats_report report = { reports->stats, summary, reports->rank_stats };
	const struct html_report html = {
		.inputs = params->inputs,
		.n_inputs = params->n_inputs,
		.output = params->output,
		.created_at = time(NULL),
		.has_disorder = has_disorder,
	};
	int r = 0, error;

	if (!is_reporting_rank(reports))
		return 0;
	if (reports->options->prints_stats) {
		stats_report_print(&report, stderr);
		if (ferror(stderr))
			r = fail(-EIO, "--stats: cannot write to standard error");
	}
	error = reports_write(&report, &html, !is_check, &reports->files);
	return error < 0 ? error : r;
}

void line_reports_close(struct line_reports *reports)
{
	line_reports_stop_display(reports);
	rank_progress_close(reports->rank_progress);
	rank_stats_close(reports->rank_stats);
	reports_discard(&reports->files);
	stats_close(reports->stats);
	reports->stats = NULL;
}
