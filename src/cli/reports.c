/*
 * reports - the files that tell of a run (see reports.h)
 */
#include "src/cli/reports.h"

#include <errno.h>
#include <stdio.h>

#include "src/base/messages.h"
#include "src/cli/process.h"
#include "src/report/page.h"

bool reports_are_wanted(const struct options *options)
{
	return options->stats || options->stats_json_path || options->trace_path ||
	       options->report_path;
}

int reports_open(const struct options *options, struct reports *ret_reports)
{
	const struct syscalls *calls = process_calls();
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

/* No write to it was refused, so what was asked for is there. */
static int check_standard_error(const struct options *options)
{
	const char *option = options->stats ? "--stats" : "--debug";

	if (!(options->stats || options->debug) || !ferror(stderr))
		return 0;
	return fail(-EIO, "%s: standard error cannot be written to", option);
}

static void write_page(const struct options *options, const struct report *report,
		       const struct reports *reports)
{
	const struct page page = {
		.report = report,
		.history = reports->history,
		.inputs = options->inputs,
		.n_inputs = options->n_inputs,
		.output = options->output_path,
		.written_at = time(NULL),
		.found_disorder = reports->found_disorder,
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

int reports_write(const struct options *options, const struct report *report,
		  struct reports *reports)
{
	int r, shown;

	if (options->stats)
		report_print(report, stderr);
	shown = check_standard_error(options);
	if (reports->stats_json)
		report_write_json(report, report_file_stream(reports->stats_json));
	trace_close(reports->trace);
	if (reports->page)
		write_page(options, report, reports);
	history_close(reports->history);
	r = commit(reports);
	if (r < 0)
		tell_what_is_done(options);
	return r < 0 ? r : shown;
}

void reports_drop(struct reports *reports)
{
	trace_close(reports->trace);
	history_close(reports->history);
	report_file_abort(reports->stats_json);
	report_file_abort(reports->trace_file);
	report_file_abort(reports->page);
}
