/*
 * api_status - what is told of a sort (see include/gsort.h)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/lib/lib_internal.h"
#include "src/report/progress_line.h"
#include "src/report/stats_report.h"

/* --- messages --- */

static const char *word(const struct message *message, char *text, char *line, size_t nbytes)
{
	struct message_words words;

	messages_word(message, &words);
	snprintf(text, TOLD_NBYTES, "%s%s%s", words.before, message->text, words.after);
	return legible(text, line, nbytes);
}

/* To the listener: what is said of the sort and of a call, one at a time. */
static void pass_on(struct gsort *sort, enum message_kind kind, const char *line)
{
	static const enum gsort_severity kinds[] = { [MESSAGE_FAILURE] = GSORT_ERROR,
						     [MESSAGE_WARNING] = GSORT_WARNING,
						     [MESSAGE_NOTE] = GSORT_NOTICE,
						     [MESSAGE_DETAIL] = GSORT_DEBUG };

	if (!sort->listener)
		return;
	pthread_mutex_lock(&sort->listening);
	sort->listener(sort->listener_context, kinds[kind], line);
	pthread_mutex_unlock(&sort->listening);
}

void told_hear_sort(void *context, const struct message *message)
{
	struct gsort *sort = context;

	process_wait_if_ending(sort->process);
	word(message, sort->text, sort->line, sizeof sort->line);
	if (message->kind == MESSAGE_FAILURE) {
		pthread_mutex_lock(&sort->lock);
		memcpy(sort->failure, sort->line, sizeof sort->failure);
		pthread_mutex_unlock(&sort->lock);
	}
	pass_on(sort, message->kind, sort->line);
}

void told_hear_call(void *context, const struct message *message)
{
	struct gsort *sort = context;
	char text[TOLD_NBYTES];

	word(message, text, sort->call_line, sizeof sort->call_line);
	if (message->kind == MESSAGE_FAILURE)
		memcpy(sort->message, sort->call_line, sizeof sort->message);
	pass_on(sort, message->kind, sort->call_line);
}

void told_failure(struct gsort *sort)
{
	memcpy(sort->message, sort->failure, sizeof sort->message);
}

const char *gsort_message(const struct gsort *sort)
{
	return sort ? sort->message : "there is no handle: it is NULL";
}

int gsort_set_message_callback(struct gsort *sort, gsort_message_callback *listener, void *context)
{
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = check_early(sort, "a listener");
	if (r == 0) {
		sort->listener = listener;
		sort->listener_context = context;
	}
	return told_leave(before, r);
}

/* --- progress --- */

static void look_at_own(struct gsort *sort, struct stats_progress *ret_at)
{
	pthread_mutex_lock(&sort->lock);
	stats_get_progress(sort->stats, ret_at);
	pthread_mutex_unlock(&sort->lock);
}

/* Of several ranks all are looked at, which may take a moment. */
static void look(struct gsort *sort, struct stats_progress *ret_at)
{
	pthread_mutex_lock(&sort->looking);
	if (sort->news)
		news_get(sort->news, ret_at);
	else
		look_at_own(sort, ret_at);
	pthread_mutex_unlock(&sort->looking);
}

/* sort: NULL: nothing has begun. */
static struct gsort_progress progress_of(struct gsort *sort)
{
	struct stats_progress at = { 0 };

	if (sort)
		look(sort, &at);
	return (struct gsort_progress){
		.phase = at.started ? phase_name(at.phase) : "",
		.done_nbytes = at.done_nbytes,
		.total_nbytes = at.total_nbytes,
		.overall_done_nbytes = at.whole_done_nbytes,
		.overall_total_nbytes = at.whole_total_nbytes,
		.elapsed_ns = at.whole_elapsed_ns,
		.phase_elapsed_ns = at.elapsed_ns,
	};
}

void give_struct(void *to, size_t to_nbytes, const void *from, size_t from_nbytes)
{
	memset(to, 0, to_nbytes);
	memcpy(to, from, from_nbytes < to_nbytes ? from_nbytes : to_nbytes);
}

void gsort_get_progress(struct gsort *sort, struct gsort_progress *ret_progress, size_t size)
{
	struct gsort_progress progress;

	if (!ret_progress)
		return;
	progress = progress_of(sort);
	give_struct(ret_progress, size, &progress, sizeof progress);
}

void gsort_format_progress(const struct gsort_progress *progress, size_t size, char *line,
			   size_t nbytes)
{
	struct gsort_progress at;
	char text[PROGRESS_LINE_NBYTES] = "";

	if (!line || nbytes == 0)
		return;
	if (progress) {
		give_struct(&at, sizeof at, progress, size);
		progress_line(&(struct progress_state){ .phase = at.phase,
							.done_nbytes = at.done_nbytes,
							.total_nbytes = at.total_nbytes,
							.elapsed_ns = at.phase_elapsed_ns,
							.whole_done_nbytes = at.overall_done_nbytes,
							.whole_total_nbytes =
								at.overall_total_nbytes,
							.whole_elapsed_ns = at.elapsed_ns },
			      text);
	}
	snprintf(line, nbytes, "%s", text);
}

int gsort_set_progress_callback(struct gsort *sort, gsort_progress_callback *watcher, void *context,
				unsigned interval_ms)
{
	struct messages *before;
	int r;

	if (!told_enter(sort, &before))
		return -EINVAL;
	r = check_early(sort, "a watcher");
	if (r == 0 && interval_ms == 0)
		r = fail(-EINVAL, "progress every 0 milliseconds: say 1 or more");
	if (r == 0) {
		sort->watcher = watcher;
		sort->watcher_context = context;
		sort->watch_interval_ms = interval_ms;
	}
	return told_leave(before, r);
}

static struct timespec after_ms(unsigned ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000L;
	if (at.tv_nsec >= 1000000000L) {
		at.tv_nsec -= 1000000000L;
		at.tv_sec++;
	}
	return at;
}

/* Wait for the end, or the time. */
static bool has_ended_after(struct gsort *sort, unsigned ms)
{
	const struct timespec until = after_ms(ms);
	bool has_ended;
	int r = 0;

	pthread_mutex_lock(&sort->lock);
	while (!sort->has_ended && r == 0)
		r = pthread_cond_timedwait(&sort->ended, &sort->lock, &until);
	has_ended = sort->has_ended;
	pthread_mutex_unlock(&sort->lock);
	return has_ended;
}

void *told_watch(void *argument)
{
	struct gsort *sort = argument;

	while (!has_ended_after(sort, sort->watch_interval_ms)) {
		const struct gsort_progress progress = progress_of(sort);

		sort->watcher(sort->watcher_context, &progress);
	}
	return NULL;
}

/* --- statistics --- */

bool told_success(struct gsort *sort)
{
	bool has;

	pthread_mutex_lock(&sort->lock);
	has = sort->has_ended && sort->r == 0;
	pthread_mutex_unlock(&sort->lock);
	return has;
}

_Static_assert(sizeof((struct gsort_stats *)0)->type == KEYS_TEXT_NBYTES, "holds a type");

static int get_stats(struct gsort *sort, struct gsort_stats *ret_stats, size_t size)
{
	const struct sort_facts *facts = &sort->facts;
	struct gsort_stats stats = { 0 };
	struct stats_totals totals;

	if (check_pointer(ret_stats, "ret_stats") < 0)
		return -EINVAL;
	if (!told_success(sort))
		return fail(-EINVAL, "there are no statistics: it has not succeeded");
	stats_get_totals(sort->stats, &totals);
	stats = (struct gsort_stats){
		.record_nbytes = facts->record_nbytes,
		.n_records_in = facts->n_records_in,
		.n_records_out = facts->n_records_out,
		.memory_limit_nbytes = facts->buffer_nbytes,
		.peak_temporary_nbytes = facts->peak_temp_nbytes,
		.n_runs = facts->n_runs,
		.n_runs_spilled = facts->n_runs_spilled,
		.n_passes = facts->n_passes,
		.elapsed_ns = totals.elapsed_ns,
	};
	memcpy(stats.type, facts->type, sizeof stats.type);
	memcpy(stats.backend, facts->backend, sizeof stats.backend);
	give_struct(ret_stats, size, &stats, sizeof stats);
	return 0;
}

int gsort_get_stats(struct gsort *sort, struct gsort_stats *ret_stats, size_t size)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, get_stats(sort, ret_stats, size));
}

int told_text(struct gsort *sort, told_writer *write, const char **ret_text)
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
		return fail(r, "cannot make the text: %m");
	}
	free(sort->told);
	sort->told = text;
	*ret_text = text;
	return 0;
}

static struct report report_of(const struct gsort *sort)
{
	return (struct report){ sort->stats, &sort->facts, sort->census };
}

static int write_json(const struct gsort *sort, FILE *stream)
{
	const struct report report = report_of(sort);

	report_write_json(&report, stream);
	return 0;
}

/* NULL after a message, if there is none. */
static const char *tell_stats(struct gsort *sort, told_writer *write)
{
	const char *text = NULL;
	struct messages *before;

	if (!told_enter(sort, &before))
		return NULL;
	if (told_success(sort))
		told_text(sort, write, &text);
	else
		fail(-EINVAL, "there are no statistics: it has not succeeded");
	told_leave(before, 0);
	return text;
}

const char *gsort_stats_json(struct gsort *sort)
{
	return tell_stats(sort, write_json);
}

static int write_table(const struct gsort *sort, FILE *stream)
{
	const struct report report = report_of(sort);

	report_print(&report, stream);
	return 0;
}

const char *gsort_stats_text(struct gsort *sort)
{
	return tell_stats(sort, write_table);
}

static int write_reports(struct gsort *sort)
{
	const struct report report = report_of(sort);

	if (!told_success(sort))
		return fail(-EINVAL, "there is nothing to report: it has not succeeded");
	return reports_write(&sort->options, &report, sort->disorder != 0, &sort->reports);
}

int gsort_write_reports(struct gsort *sort)
{
	struct messages *before;

	if (!told_enter(sort, &before))
		return -EINVAL;
	return told_leave(before, write_reports(sort));
}
