/*
 * api_status.c - messages, progress, statistics and report files (see include/gsort.h)
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/lib/lib_internal.h"
#include "src/base/clock.h"
#include "src/base/thread.h"
#include "src/report/format.h"
#include "src/report/html_report.h"
#include "src/report/stats_report.h"

/* --- Messages --- */

/* Pass a message to the callback. Messages of the sort and of calls come one at a time. */
static void call_message_callback(struct gsort *sort, enum message_kind kind, const char *line)
{
	static const enum gsort_severity kinds[] = { [MESSAGE_ERROR] = GSORT_ERROR,
						     [MESSAGE_WARNING] = GSORT_WARNING,
						     [MESSAGE_NOTICE] = GSORT_NOTICE,
						     [MESSAGE_DEBUG] = GSORT_DEBUG };

	if (!sort->message_callback ||
	    (sort->drops_warnings && (kind == MESSAGE_WARNING || kind == MESSAGE_NOTICE)))
		return;
	SCOPED_LOCK(&sort->message_callback_lock);
	sort->message_callback(sort->message_context, kinds[kind], line);
}

void api_on_sort_message(void *context, const struct message *message)
{
	struct gsort *sort = context;

	process_wait_if_terminating(sort->process);
	quote_text(message->text, sort->sort_line, sizeof sort->sort_line);
	if (message->kind == MESSAGE_ERROR) {
		pthread_mutex_lock(&sort->lock);
		memcpy(sort->failure_text, sort->sort_line, sizeof sort->failure_text);
		pthread_mutex_unlock(&sort->lock);
	}
	call_message_callback(sort, message->kind, sort->sort_line);
}

void api_on_call_message(void *context, const struct message *message)
{
	struct gsort *sort = context;

	quote_text(message->text, sort->call_line, sizeof sort->call_line);
	if (message->kind == MESSAGE_ERROR)
		memcpy(sort->last_error, sort->call_line, sizeof sort->last_error);
	call_message_callback(sort, message->kind, sort->call_line);
}

void api_set_failure(struct gsort *sort)
{
	memcpy(sort->last_error, sort->failure_text, sizeof sort->last_error);
}

const char *gsort_message(const struct gsort *sort)
{
	return sort ? sort->last_error : "handle is NULL";
}

static int set_message_callback(struct gsort *sort, gsort_message_callback *callback, void *context)
{
	int r = api_check_not_started(sort, "gsort_set_message_callback()");

	if (r < 0)
		return r;
	sort->message_callback = callback;
	sort->message_context = context;
	return 0;
}

int gsort_set_message_callback(struct gsort *sort, gsort_message_callback *callback, void *context)
{
	return API_CALL(sort, set_message_callback(sort, callback, context));
}

/* --- Progress --- */

/* Read the progress of all ranks, which may take a moment. */
static void get_current_progress(struct gsort *sort, struct stats_progress *ret_progress)
{
	SCOPED_LOCK(&sort->progress_lock);
	if (sort->rank_progress) {
		rank_progress_get(sort->rank_progress, ret_progress);
		return;
	}
	pthread_mutex_lock(&sort->lock);
	stats_get_progress(sort->stats, ret_progress);
	pthread_mutex_unlock(&sort->lock);
}

/* sort: may be NULL. */
static struct gsort_progress collect_progress(struct gsort *sort)
{
	struct stats_progress progress = { 0 };

	if (sort)
		get_current_progress(sort, &progress);
	return (struct gsort_progress){
		.phase = progress.started ? phase_name(progress.phase) : "",
		.done_nbytes = progress.done_nbytes,
		.total_nbytes = progress.total_nbytes,
		.overall_done_nbytes = progress.overall_done_nbytes,
		.overall_total_nbytes = progress.overall_total_nbytes,
		.elapsed_ns = progress.overall_elapsed_ns,
		.phase_elapsed_ns = progress.elapsed_ns,
	};
}

void gsort_get_progress(struct gsort *sort, struct gsort_progress *ret_progress, size_t size)
{
	struct gsort_progress progress;

	if (!ret_progress)
		return;
	progress = collect_progress(sort);
	copy_struct_prefix(ret_progress, size, &progress, sizeof progress);
}

static struct number_text format_duration(double s)
{
	const uint64_t seconds = (uint64_t)(s + 0.5);
	const unsigned minutes = (unsigned)(seconds / 60 % 60);
	struct number_text time;

	if (seconds >= 3600)
		snprintf(time.text, sizeof time, "%" PRIu64 ":%02u:%02u", seconds / 3600, minutes,
			 (unsigned)(seconds % 60));
	else
		snprintf(time.text, sizeof time, "%u:%02u", minutes, (unsigned)(seconds % 60));
	return time;
}

static unsigned percent(uint64_t done_nbytes, uint64_t total_nbytes)
{
	return done_nbytes >= total_nbytes ?
		       100 :
		       (unsigned)(100 * (double)done_nbytes / (double)total_nbytes);
}

static double bytes_per_second(uint64_t nbytes, uint64_t elapsed_ns)
{
	return elapsed_ns ? (double)nbytes * 1e9 / (double)elapsed_ns : 0;
}

enum { PROGRESS_LINE_NBYTES = 128 };

/* Format "run generation: 25 %, 512 MiB/s, 0:06 left". */
static void format_phase(const struct gsort_progress *progress, double rate,
			 char text[static PROGRESS_LINE_NBYTES])
{
	const struct number_text rate_text = size_format((uint64_t)rate);
	const uint64_t remaining_nbytes = progress->total_nbytes - progress->done_nbytes;

	if (progress->total_nbytes == 0)
		snprintf(text, PROGRESS_LINE_NBYTES, "%s: %s, %s/s", progress->phase,
			 size_format(progress->done_nbytes).text, rate_text.text);
	else if (progress->done_nbytes >= progress->total_nbytes || progress->done_nbytes == 0)
		snprintf(text, PROGRESS_LINE_NBYTES, "%s: %d %%, %s/s", progress->phase,
			 progress->done_nbytes ? 100 : 0, rate_text.text);
	else
		snprintf(text, PROGRESS_LINE_NBYTES, "%s: %u %%, %s/s, %s left", progress->phase,
			 percent(progress->done_nbytes, progress->total_nbytes), rate_text.text,
			 format_duration((double)remaining_nbytes / rate).text);
}

/*
 * Return the remaining seconds of the sort: the rest of this phase at its own rate, later phases at
 * the rate of all so far.
 */
static double overall_remaining_s(const struct gsort_progress *progress, double rate)
{
	const double overall_rate =
		bytes_per_second(progress->overall_done_nbytes, progress->elapsed_ns);
	const uint64_t remaining = progress->overall_total_nbytes - progress->overall_done_nbytes;
	uint64_t phase_nbytes = progress->total_nbytes > progress->done_nbytes ?
					progress->total_nbytes - progress->done_nbytes :
					0;

	phase_nbytes = phase_nbytes < remaining ? phase_nbytes : remaining;
	return (rate > 0 ? (double)phase_nbytes / rate : 0) +
	       (double)(remaining - phase_nbytes) / overall_rate;
}

/*
 * Format "run generation: 43 %, 1.2 GiB/s, 0:12 left; total 20 %, 0:40 left". The total is omitted
 * if there is only one phase, or the size of one is unknown. Empty if no phase has begun.
 */
static void format_progress(const struct gsort_progress *progress,
			    char line[static PROGRESS_LINE_NBYTES])
{
	const double rate = bytes_per_second(progress->done_nbytes, progress->phase_elapsed_ns);
	size_t n;

	line[0] = '\0';
	if (!progress->phase || !*progress->phase)
		return;
	format_phase(progress, rate, line);
	if (progress->overall_total_nbytes == 0 ||
	    progress->overall_total_nbytes == progress->total_nbytes)
		return;
	n = strlen(line);
	n += (size_t)snprintf(line + n, PROGRESS_LINE_NBYTES - n, "; total %u %%",
			      percent(progress->overall_done_nbytes,
				      progress->overall_total_nbytes));
	if (progress->overall_done_nbytes == 0 ||
	    progress->overall_done_nbytes >= progress->overall_total_nbytes)
		return;
	snprintf(line + n, PROGRESS_LINE_NBYTES - n, ", %s left",
		 format_duration(overall_remaining_s(progress, rate)).text);
}

void gsort_format_progress(const struct gsort_progress *progress, size_t size, char *line,
			   size_t nbytes)
{
	struct gsort_progress full_progress;
	char text[PROGRESS_LINE_NBYTES] = "";

	if (!line || nbytes == 0)
		return;
	if (progress) {
		copy_struct_prefix(&full_progress, sizeof full_progress, progress, size);
		format_progress(&full_progress, text);
	}
	snprintf(line, nbytes, "%s", text);
}

static int set_progress_callback(struct gsort *sort, gsort_progress_callback *callback,
				 void *context, unsigned interval_ms)
{
	int r = api_check_not_started(sort, "gsort_set_progress_callback()");

	if (r < 0)
		return r;
	if (interval_ms == 0)
		return fail(-EINVAL, "progress interval must be at least 1 ms");
	sort->progress_callback = callback;
	sort->progress_context = context;
	sort->progress_interval_ms = interval_ms;
	return 0;
}

int gsort_set_progress_callback(struct gsort *sort, gsort_progress_callback *callback,
				void *context, unsigned interval_ms)
{
	return API_CALL(sort, set_progress_callback(sort, callback, context, interval_ms));
}

/* The last call of a successful operation has the end of the progress. */
static void *run_progress_thread(void *argument)
{
	struct gsort *sort = argument;
	enum progress_end end;

	do {
		const uint64_t deadline_ns =
			clock_now_ns() + sort->progress_interval_ms * UINT64_C(1000000);
		struct gsort_progress progress;

		pthread_mutex_lock(&sort->lock);
		while (!sort->progress_end &&
		       !thread_wait_until(&sort->ended_cond, &sort->lock, deadline_ns))
			;
		end = sort->progress_end;
		pthread_mutex_unlock(&sort->lock);
		progress = collect_progress(sort);
		if (!end || (end == PROGRESS_SUCCEEDED && *progress.phase))
			sort->progress_callback(sort->progress_context, &progress);
	} while (!end);
	return NULL;
}

void api_start_progress_thread(struct gsort *sort)
{
	sort->progress_end = PROGRESS_CONTINUES;
	sort->has_progress_thread =
		sort->progress_callback &&
		thread_start(run_progress_thread, sort, 0, &sort->progress_thread) == 0;
}

void api_end_progress_thread(struct gsort *sort, int result)
{
	if (!sort->has_progress_thread)
		return;
	pthread_mutex_lock(&sort->lock);
	sort->progress_end = result < 0 ? PROGRESS_FAILED : PROGRESS_SUCCEEDED;
	pthread_cond_broadcast(&sort->ended_cond);
	pthread_mutex_unlock(&sort->lock);
	pthread_join(sort->progress_thread, NULL);
}

/* --- Statistics --- */

static bool has_succeeded(struct gsort *sort)
{
	SCOPED_LOCK(&sort->lock);
	return sort->has_ended && sort->result == 0;
}

_Static_assert(sizeof((struct gsort_stats *)0)->type == KEYS_TEXT_NBYTES, "one buffer for types");

static int get_stats(struct gsort *sort, struct gsort_stats *ret_stats, size_t size)
{
	const struct sort_summary *summary = &sort->summary;
	struct gsort_stats stats = { 0 };
	struct stats_totals totals;

	if (api_check_pointer(ret_stats, "ret_stats") < 0)
		return -EINVAL;
	if (!has_succeeded(sort))
		return fail(-EINVAL, "no statistics: the sort has not succeeded");
	stats_get_totals(sort->stats, &totals);
	stats = (struct gsort_stats){
		.record_nbytes = summary->record_nbytes,
		.n_records_in = summary->n_records_in,
		.n_records_out = summary->n_records_out,
		.memory_limit_nbytes = summary->buffer_nbytes,
		.peak_temporary_nbytes = summary->peak_temp_nbytes,
		.n_runs = summary->n_runs,
		.n_runs_spilled = summary->n_runs_spilled,
		.n_passes = summary->n_passes,
		.elapsed_ns = totals.elapsed_ns,
	};
	memcpy(stats.type, summary->type, sizeof stats.type);
	memcpy(stats.backend, summary->backend, sizeof stats.backend);
	copy_struct_prefix(ret_stats, size, &stats, sizeof stats);
	return 0;
}

int gsort_get_stats(struct gsort *sort, struct gsort_stats *ret_stats, size_t size)
{
	return API_CALL(sort, get_stats(sort, ret_stats, size));
}

int api_make_text(struct gsort *sort, api_text_writer *write, const char **ret_text)
{
	char *text = NULL;
	size_t nbytes;
	FILE *stream = open_memstream(&text, &nbytes);
	int r = stream ? 0 : -errno;

	if (r == 0)
		r = write(sort, stream);
	if (stream && fclose(stream) != 0 && r == 0)
		r = -errno;
	if (r < 0) {
		free(text);
		return fail(r, "text: %m");
	}
	free(sort->returned_text);
	sort->returned_text = text;
	*ret_text = text;
	return 0;
}

static struct stats_report make_stats_report(const struct gsort *sort)
{
	return (struct stats_report){ sort->stats, &sort->summary, sort->rank_stats };
}

static int write_stats_json(const struct gsort *sort, FILE *stream)
{
	const struct stats_report report = make_stats_report(sort);

	return stats_report_write_json(&report, stream);
}

/* Return NULL (reported) if the operation has not succeeded. */
static const char *get_stats_text(struct gsort *sort, api_text_writer *write)
{
	const char *text = NULL;

	(void)API_CALL(sort, has_succeeded(sort) ?
				     api_make_text(sort, write, &text) :
				     fail(-EINVAL, "no statistics: the sort has not succeeded"));
	return text;
}

const char *gsort_stats_json(struct gsort *sort)
{
	return get_stats_text(sort, write_stats_json);
}

static int write_stats_table(const struct gsort *sort, FILE *stream)
{
	const struct stats_report report = make_stats_report(sort);

	stats_report_print(&report, stream);
	return 0;
}

const char *gsort_stats_text(struct gsort *sort)
{
	return get_stats_text(sort, write_stats_table);
}

/* --- Report files --- */

bool reports_are_requested(const struct options *options)
{
	bool has_path = false;

	for (enum report_kind i = 0; i < N_REPORTS; i++)
		has_path = has_path || options->report_paths[i];
	return options->stats || has_path;
}

static int write_reports(struct gsort *sort)
{
	const struct options *options = &sort->options;
	const struct stats_report report = make_stats_report(sort);
	const struct html_report html = {
		.inputs = options->spec.inputs,
		.n_inputs = options->spec.n_inputs,
		.output = options_output_path(options),
		.created_at = time(NULL),
		.has_disorder = sort->disorder != 0,
		.n_part_files = options->spec.n_part_files,
	};

	if (!has_succeeded(sort))
		return fail(-EINVAL, "no reports: the sort has not succeeded");
	return reports_write(&report, &html, sort->operation == API_SORT, &sort->reports);
}

int gsort_write_reports(struct gsort *sort)
{
	return API_CALL(sort, write_reports(sort));
}
