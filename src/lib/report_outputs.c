/*
 * report_outputs - the files that tell of a run (see report_outputs.h)
 */
#include "src/lib/report_outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/diagnostics.h"
#include "src/report/html_report.h"

bool reports_are_requested(const struct options *options)
{
	return options->stats || options->stats_json_path || options->trace_path ||
	       options->report_path;
}

int reports_open(const struct options *options, const struct syscalls *calls,
		 struct reports *ret_reports)
{
	struct reports *reports = ret_reports;
	int r = 0;

	if (options->stats_json_path)
		r = report_file_open(calls, options->stats_json_path, &reports->stats_file);
	if (r == 0 && options->trace_path)
		r = report_file_open(calls, options->trace_path, &reports->trace_file);
	if (r == 0 && options->trace_path)
		r = trace_open(report_file_stream(reports->trace_file), &reports->trace);
	if (r == 0 && options->report_path)
		r = report_file_open(calls, options->report_path, &reports->html_file);
	if (r == 0 && options->report_path)
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

static void write_html_report(const struct options *options, const struct stats_report *report,
			      bool has_disorder, const struct reports *reports)
{
	const struct html_report html_report = {
		.stats_report = report,
		.time_series = reports->time_series,
		.inputs = options->inputs,
		.n_inputs = options->n_inputs,
		.output = options->output_path,
		.created_at = time(NULL),
		.has_disorder = has_disorder,
		.n_part_files = options->n_part_files,
	};

	html_report_write(&html_report, report_file_stream(reports->html_file));
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

static bool has_output(const struct options *options)
{
	return options->mode != MODE_CHECK && options->mode != MODE_CHECK_QUIET &&
	       !options->explain;
}

/* Nobody adds to them any more; the trace is complete then. */
static void close_recorders(struct reports *reports)
{
	trace_close(reports->trace);
	time_series_close(reports->time_series);
	reports->trace = NULL;
	reports->time_series = NULL;
}

int reports_write(const struct options *options, const struct stats_report *report,
		  bool has_disorder, struct reports *reports)
{
	int r = 0, error;

	if (reports->stats_file)
		r = stats_report_write_json(report, report_file_stream(reports->stats_file));
	if (r < 0) {
		report_file_abort(reports->stats_file);
		reports->stats_file = NULL;
	}
	if (reports->html_file)
		write_html_report(options, report, has_disorder, reports);
	close_recorders(reports);
	error = commit_reports(reports, has_output(options));
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
