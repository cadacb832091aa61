/*
 * reports.c - the report files of a run (see reports.h)
 */
#include "src/report/reports.h"

#include <errno.h>
#include <stdlib.h>

#include "io/file/file.h"
#include "io/output/output.h"
#include "src/base/diagnostics.h"
#include "src/report/html_report.h"

/* --- a text file --- */

struct report_file {
	const char *path;
	FILE *stream; /* its buffer goes to the output */
	struct output *output;
	uint64_t nbytes; /* written to it */
	int error;       /* the first write error, or 0 */
};

/*
 * A cookie_write_function_t: returns how much was written, 0 after an error. Errors are reported by
 * the commit: until then the sort may report its own.
 */
static ssize_t write_text(void *cookie, const char *text, size_t nbytes)
{
	struct report_file *file = cookie;

	if (file->error == 0) {
		struct diagnostics *saved = diagnostics_push(NULL);

		file->error = output_write_at(file->output, file->nbytes, text, nbytes);
		diagnostics_push(saved);
	}
	if (file->error < 0) {
		errno = -file->error;
		return 0;
	}
	file->nbytes += nbytes;
	return (ssize_t)nbytes;
}

int report_file_open(const struct syscalls *calls, const char *path, struct report_file **ret_file)
{
	struct report_file *file = calloc(1, sizeof *file);
	int r;

	if (!file)
		return fail(-ENOMEM, "%s: %m", path);
	file->path = path;
	r = output_open_text(calls, path, &file->output);
	if (r < 0) {
		free(file);
		return r;
	}
	file->stream = fopencookie(file, "w", (cookie_io_functions_t){ .write = write_text });
	if (!file->stream) {
		output_abort(file->output);
		free(file);
		return fail(-ENOMEM, "%s: %m", path);
	}
	*ret_file = file;
	return 0;
}

FILE *report_file_stream(const struct report_file *file)
{
	return file->stream;
}

int report_file_commit(struct report_file *file, bool output_is_complete)
{
	char advice[SIZE_LIMIT_HINT_NBYTES];
	bool has_failed;
	int r, close_error;

	if (!file)
		return 0;
	has_failed = ferror(file->stream);
	close_error = fclose(file->stream);
	file->stream = NULL;
	r = file->error;
	if (r == 0 && (has_failed || close_error != 0))
		r = has_failed ? -EIO : -errno;
	if (r < 0) {
		r = fail(r, "%s: cannot write: %m%s%s", file->path, size_limit_hint(r, advice),
			 output_is_complete ? "; the output is complete" : "");
		report_file_abort(file);
		return r;
	}
	r = output_commit(file->output, OUTPUT_UNSYNCED);
	free(file);
	return r;
}

void report_file_abort(struct report_file *file)
{
	if (!file)
		return;
	file->error = file->error ? file->error : -ECANCELED; /* discards what is in the buffer */
	if (file->stream)
		fclose(file->stream);
	output_abort(file->output);
	free(file);
}

/* --- all reports --- */

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
