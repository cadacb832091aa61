/*
 * reports.c - the report files of a run (see reports.h)
 *
 * One trace of all ranks: each rank records its own trace, all but rank 0 in memory. At the end
 * rank 0 joins them. Time 0 is that of rank 0, which asks each rank several times for the time of
 * its clock, and assumes that the fastest answer was given halfway. So a clock is known to half of
 * that round trip, about 100 us. Later drift is ignored.
 */
#include "src/report/reports.h"

#include <errno.h>
#include <stdlib.h>

#include "io/file/file.h"
#include "io/output/output.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/comm/comm.h"
#include "src/report/html_report.h"

/*
 * --- a text file that appears when it is complete ---
 *
 *	open -> (write to the stream) -> commit    the file is there
 *	                             \-> abort     an older file is unchanged
 *
 * It is written like the sort's output (io/output/output.h), so errors show before the sort. Paths
 * such as /dev/stdout and /dev/fd/3 are written directly.
 */

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

/* NULL is fine. */
static void report_file_abort(struct report_file *file)
{
	if (!file)
		return;
	file->error = file->error ? file->error : -ECANCELED; /* discards what is in the buffer */
	if (file->stream)
		fclose(file->stream);
	output_abort(file->output);
	free(file);
}

/*
 * Open a file. calls and path must outlive it. Returns 0, or a negative errno; the caller must
 * commit or abort the file.
 */
static int report_file_open(const struct syscalls *calls, const char *path,
			    struct report_file **ret_file)
{
	struct report_file *file = calloc(1, sizeof *file);
	int r;

	if (!file)
		return fail(-ENOMEM, "%s: %m", path);
	file->path = path;
	r = output_open_text(calls, path, &file->output);
	if (r == 0) {
		file->stream =
			fopencookie(file, "w", (cookie_io_functions_t){ .write = write_text });
		r = file->stream ? 0 : fail(-ENOMEM, "%s: %m", path);
	}
	if (r < 0)
		report_file_abort(file);
	else
		*ret_file = file;
	return r;
}

/*
 * Give the complete text its name and free `file`, also after an error. output_is_complete: an
 * error message says so. Returns 0 or a negative errno after one message. NULL is fine.
 */
static int report_file_commit(struct report_file *file, bool output_is_complete)
{
	int r;

	if (!file)
		return 0;
	r = fclose(file->stream) == 0 ? 0 : -errno;
	file->stream = NULL;
	if (file->error < 0)
		r = file->error;
	if (r < 0) {
		r = fail(r, "%s: cannot write: %m%s%s", file->path, size_limit_hint(r).text,
			 output_is_complete ? "; the output is complete" : "");
		report_file_abort(file);
		return r;
	}
	r = output_commit(file->output, OUTPUT_UNSYNCED);
	free(file);
	return r;
}

/* --- all reports --- */

int reports_open(const struct syscalls *calls, const char *const paths[static N_REPORTS],
		 struct reports *ret_reports)
{
	struct reports *reports = ret_reports;
	int r = 0;

	for (enum report_kind i = 0; i < N_REPORTS && r == 0; i++)
		if (paths[i])
			r = report_file_open(calls, paths[i], &reports->files[i]);
	if (r == 0 && paths[REPORT_TRACE])
		r = trace_open(reports->files[REPORT_TRACE]->stream, &reports->trace);
	if (r == 0 && paths[REPORT_HTML])
		r = time_series_open(&reports->time_series);
	return r;
}

/* --- reports of several ranks --- */

enum { N_CLOCK_SAMPLES = 8 };

/* Rank 0: find the time of a rank's clock at begin_ns of this clock, and send it. */
static int align_clock_of(struct comm *comm, unsigned rank, uint64_t begin_ns)
{
	uint64_t min_round_trip_ns = UINT64_MAX, remote_begin_ns = 0;
	int r = 0;

	for (unsigned i = 0; i < N_CLOCK_SAMPLES && r == 0; i++) {
		const uint64_t request_ns = clock_now_ns();
		uint64_t reply_ns = 0, round_trip_ns;

		r = comm_send_wait(comm, rank, COMM_TAG_TRACE, &request_ns, sizeof request_ns);
		if (r == 0)
			r = comm_receive_wait(comm, rank, COMM_TAG_TRACE, &reply_ns,
					      sizeof reply_ns);
		round_trip_ns = clock_now_ns() - request_ns;
		if (round_trip_ns < min_round_trip_ns) {
			min_round_trip_ns = round_trip_ns;
			remote_begin_ns = reply_ns - (request_ns + round_trip_ns / 2 - begin_ns);
		}
	}
	return r < 0 ? r :
		       comm_send_wait(comm, rank, COMM_TAG_TRACE, &remote_begin_ns,
				      sizeof remote_begin_ns);
}

static int answer_clock_requests(struct comm *comm, uint64_t *ret_begin_ns)
{
	uint64_t request_ns;
	int r = 0;

	for (unsigned i = 0; i < N_CLOCK_SAMPLES && r == 0; i++) {
		uint64_t now_ns;

		r = comm_receive_wait(comm, 0, COMM_TAG_TRACE, &request_ns, sizeof request_ns);
		now_ns = clock_now_ns();
		if (r == 0)
			r = comm_send_wait(comm, 0, COMM_TAG_TRACE, &now_ns, sizeof now_ns);
	}
	return r < 0 ? r :
		       comm_receive_wait(comm, 0, COMM_TAG_TRACE, ret_begin_ns,
					 sizeof *ret_begin_ns);
}

/* Collective: return the time of this clock at time 0 of the trace, begin_ns of rank 0. */
static int align_clocks(struct comm *comm, uint64_t *ret_begin_ns)
{
	const uint64_t begin_ns = clock_now_ns();
	int r = 0;

	if (comm_rank(comm) != 0)
		return answer_clock_requests(comm, ret_begin_ns);
	for (unsigned i = 1; i < comm_size(comm) && r == 0; i++)
		r = align_clock_of(comm, i, begin_ns);
	*ret_begin_ns = begin_ns;
	return r;
}

int reports_open_rank_trace(struct reports *reports, struct comm *comm)
{
	struct trace_process process = { .number = comm_rank(comm),
					 .n_processes = comm_size(comm) };
	uint64_t is_requested = reports->trace != NULL;
	int r = comm_broadcast(comm, &is_requested, sizeof is_requested);

	if (r < 0 || !is_requested)
		return r;
	r = align_clocks(comm, &process.begin_ns);
	if (r == 0 && process.number > 0) {
		reports->trace_stream =
			open_memstream(&reports->trace_text, &reports->trace_nbytes);
		r = reports->trace_stream ? trace_open(reports->trace_stream, &reports->trace) :
					    fail(-ENOMEM, "--trace: no memory for its events: %m");
	}
	if (r < 0)
		return r;
	snprintf(process.name, sizeof process.name, "rank %u, on %s", process.number,
		 comm_host(comm, process.number));
	trace_set_process(reports->trace, &process);
	return 0;
}

static int send_trace(struct reports *reports, struct comm *comm)
{
	bool has_failed = ferror(reports->trace_stream);
	uint64_t nbytes;
	int r;

	trace_close(reports->trace);
	reports->trace = NULL;
	has_failed |= fclose(reports->trace_stream) != 0;
	reports->trace_stream = NULL;
	if (has_failed)
		return fail(-ENOMEM, "--trace: no memory for its events");
	nbytes = reports->trace_nbytes;
	r = comm_send_wait(comm, 0, COMM_TAG_TRACE, &nbytes, sizeof nbytes);
	return r < 0 ? r : comm_send_wait(comm, 0, COMM_TAG_TRACE, reports->trace_text, nbytes);
}

static int receive_trace(struct reports *reports, struct comm *comm, unsigned rank)
{
	uint64_t nbytes;
	char *text;
	int r = comm_receive_wait(comm, rank, COMM_TAG_TRACE, &nbytes, sizeof nbytes);

	if (r < 0)
		return r;
	text = malloc(nbytes + 1);
	if (!text)
		return fail(-ENOMEM, "no memory for the trace of rank %u", rank);
	r = comm_receive_wait(comm, rank, COMM_TAG_TRACE, text, nbytes);
	if (r == 0)
		trace_append(reports->trace, text, nbytes);
	free(text);
	return r;
}

static int gather_trace(struct reports *reports, struct comm *comm)
{
	int r = 0;

	if (!reports->trace)
		return 0;
	if (comm_rank(comm) != 0)
		return send_trace(reports, comm);
	for (unsigned i = 1; i < comm_size(comm) && r == 0; i++)
		r = receive_trace(reports, comm, i);
	return r;
}

int reports_gather_ranks(struct reports *reports, struct comm *comm, struct stats *stats,
			 const struct sort_summary *summary, struct rank_stats **ret_rank_stats)
{
	struct rank_summary own = { .summary = *summary };
	int r;

	stats_finish(stats); /* completes the trace */
	stats_get_totals(stats, &own.totals);
	r = rank_stats_gather(comm, &own, ret_rank_stats);
	return r < 0 ? r : gather_trace(reports, comm);
}

/* --- the end --- */

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
	struct report_file **stats_file = &reports->files[REPORT_STATS_JSON];
	struct report_file *html_file = reports->files[REPORT_HTML];
	int r = 0, error;

	if (*stats_file)
		r = stats_report_write_json(report, (*stats_file)->stream);
	if (r < 0) {
		report_file_abort(*stats_file);
		*stats_file = NULL;
	}
	if (html_file) {
		struct html_report page = *html;

		page.stats_report = report;
		page.time_series = reports->time_series;
		html_report_write(&page, html_file->stream);
	}
	close_recorders(reports);
	for (enum report_kind i = 0; i < N_REPORTS; i++) {
		error = report_file_commit(reports->files[i], has_output);
		r = r < 0 ? r : error;
	}
	*reports = (struct reports){ 0 };
	return r;
}

void reports_discard(struct reports *reports)
{
	close_recorders(reports);
	if (reports->trace_stream)
		fclose(reports->trace_stream);
	free(reports->trace_text);
	for (enum report_kind i = 0; i < N_REPORTS; i++)
		report_file_abort(reports->files[i]);
	*reports = (struct reports){ 0 };
}
