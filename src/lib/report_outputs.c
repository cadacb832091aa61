/*
 * report_outputs - the files that tell of a run (see report_outputs.h)
 */
#include "src/lib/report_outputs.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "src/base/diagnostics.h"
#include "src/report/html_report.h"

bool reports_are_wanted(const struct options *options)
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
		r = report_file_open(calls, options->stats_json_path, &reports->stats_json);
	if (r == 0 && options->trace_path)
		r = report_file_open(calls, options->trace_path, &reports->trace_file);
	if (r == 0 && options->trace_path)
		r = trace_open(report_file_stream(reports->trace_file), &reports->trace);
	if (r == 0 && options->report_path)
		r = report_file_open(calls, options->report_path, &reports->page);
	if (r == 0 && options->report_path)
		r = history_open(&reports->history);
	return r;
}

int reports_open_trace_text(struct reports *reports)
{
	reports->trace_stream = open_memstream(&reports->trace_text, &reports->trace_nbytes);
	if (!reports->trace_stream)
		return fail_hint(-ENOMEM, HINT_ABOUT_TRACE, 0, "no memory for its events: %m");
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
		return fail_hint(-ENOMEM, HINT_ABOUT_TRACE, 0, "no memory for its events");
	*ret_text = reports->trace_text;
	*ret_nbytes = reports->trace_nbytes;
	return 0;
}

static void write_page(const struct options *options, const struct report *report,
		       bool found_disorder, const struct reports *reports)
{
	const struct page page = {
		.report = report,
		.history = reports->history,
		.inputs = options->inputs,
		.n_inputs = options->n_inputs,
		.output = options->output_path,
		.written_at = time(NULL),
		.found_disorder = found_disorder,
		.n_part_files = options->n_part_files,
	};

	page_write(&page, report_file_stream(reports->page));
}

static int commit(struct reports *reports)
{
	struct report_file *files[] = { reports->stats_json, reports->trace_file, reports->page };
	int r = 0;

	for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
		const int committed = report_file_commit(files[i]);

		if (r == 0)
			r = committed;
	}
	return r;
}

/* The status is that of a failure, and what has been done is not undone by it. */
static void tell_what_is_done(const struct options *options)
{
	const bool is_check = options->mode == MODE_CHECK || options->mode == MODE_CHECK_QUIET;

	if (!is_check && !options->explain)
		tell("the output is complete, and what was to be told of it is not");
}

/* Nobody adds to them any more; the trace is complete then. */
static void close_records(struct reports *reports)
{
	trace_close(reports->trace);
	history_close(reports->history);
	reports->trace = NULL;
	reports->history = NULL;
}

int reports_write(const struct options *options, const struct report *report, bool found_disorder,
		  struct reports *reports)
{
	int r;

	if (reports->stats_json)
		report_write_json(report, report_file_stream(reports->stats_json));
	if (reports->page)
		write_page(options, report, found_disorder, reports);
	close_records(reports);
	r = commit(reports);
	if (r < 0)
		tell_what_is_done(options);
	*reports = (struct reports){ 0 };
	return r;
}

void reports_drop(struct reports *reports)
{
	close_records(reports);
	if (reports->trace_stream)
		fclose(reports->trace_stream);
	free(reports->trace_text);
	report_file_abort(reports->stats_json);
	report_file_abort(reports->trace_file);
	report_file_abort(reports->page);
	*reports = (struct reports){ 0 };
}
