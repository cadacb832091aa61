/*
 * reports.c - the report files of a run (see reports.h)
 */
#include "src/report/reports.h"

#include <errno.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"
#include "src/report/html_report.h"

int reports_open(const struct syscalls *calls, const struct report_paths *paths,
		 struct reports *ret_reports)
{
	struct reports *reports = ret_reports;
	int r = 0;

	if (paths->stats_json)
		r = report_file_open(calls, paths->stats_json, &reports->stats_file);
	if (r == 0 && paths->trace)
		r = report_file_open(calls, paths->trace, &reports->trace_file);
	if (r == 0 && paths->trace)
		r = trace_open(report_file_stream(reports->trace_file), &reports->trace);
	if (r == 0 && paths->html)
		r = report_file_open(calls, paths->html, &reports->html_file);
	if (r == 0 && paths->html)
		r = time_series_open(&reports->time_series);
	return r;
}

int reports_open_trace_text(struct reports *reports)
{
	reports->trace_stream = open_memstream(&reports->trace_text, &reports->trace_nbytes);
	if (!reports->trace_stream)
		return fail(-ENOMEM, "--trace: no memory for its events: %m");
	return trace_open(reports->trace_stream, &reports->trace);
}

int reports_close_trace_text(struct reports *reports, const char **ret_text, size_t *ret_nbytes)
{
	const bool has_failed = ferror(reports->trace_stream);
	int r;

	trace_close(reports->trace);
	reports->trace = NULL;
	r = fclose(reports->trace_stream) != 0 || has_failed;
	reports->trace_stream = NULL;
	if (r)
		return fail(-ENOMEM, "--trace: no memory for its events");
	*ret_text = reports->trace_text;
	*ret_nbytes = reports->trace_nbytes;
	return 0;
}

static int commit_reports(struct reports *reports, bool output_is_complete)
{
	struct report_file *files[] = { reports->stats_file, reports->trace_file,
					reports->html_file };
	int r = 0;

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		const int error = report_file_commit(files[i], output_is_complete);

		if (r == 0)
			r = error;
	}
	return r;
}

/* Complete the trace and the time series. */
static void close_recorders(struct reports *reports)
{
	trace_close(reports->trace);
	time_series_close(reports->time_series);
	reports->trace = NULL;
	reports->time_series = NULL;
}

int reports_write(const struct stats_report *report, const struct html_report *html,
		  bool has_output, struct reports *reports)
{
	int r = 0, error;

	if (reports->stats_file)
		r = stats_report_write_json(report, report_file_stream(reports->stats_file));
	if (r < 0) {
		report_file_abort(reports->stats_file);
		reports->stats_file = NULL;
	}
	if (reports->html_file) {
		struct html_report page = *html;

		page.stats_report = report;
		page.time_series = reports->time_series;
		html_report_write(&page, report_file_stream(reports->html_file));
	}
	close_recorders(reports);
	error = commit_reports(reports, has_output);
	r = r < 0 ? r : error;
	*reports = (struct reports){ 0 };
	return r;
}

void reports_discard(struct reports *reports)
{
	close_recorders(reports);
	if (reports->trace_stream)
		fclose(reports->trace_stream);
	free(reports->trace_text);
	report_file_abort(reports->stats_file);
	report_file_abort(reports->trace_file);
	report_file_abort(reports->html_file);
	*reports = (struct reports){ 0 };
}
