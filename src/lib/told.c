/*
 * told - what is told of a sort (see include/gsort.h)
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "src/lib/inside.h"
#include "src/report/report.h"

/* --- messages --- */

static const char *word(const struct message *message, char *text, char *line, size_t nbytes)
{
	struct message_words words;

	messages_word(message, &words);
	snprintf(text, TOLD_NBYTES, "%s%s%s", words.before, message->text, words.after);
	return legible(text, line, nbytes);
}

void told_hear_sort(void *context, const struct message *message)
{
	struct gsort *sort = context;

	word(message, sort->text, sort->line, sizeof sort->line);
	if (message->kind != MESSAGE_FAILURE) {
		if (sort->listener)
			sort->listener(sort->listener_context,
				       message->kind == MESSAGE_WARNING ? GSORT_WARNING :
									  GSORT_NOTE,
				       sort->line);
		return;
	}
	pthread_mutex_lock(&sort->lock);
	memcpy(sort->failure, sort->line, sizeof sort->failure);
	pthread_mutex_unlock(&sort->lock);
}

void told_hear_call(void *context, const struct message *message)
{
	struct gsort *sort = context;
	char text[TOLD_NBYTES];

	word(message, text, sort->message, sizeof sort->message);
}

void told_failure(struct gsort *sort)
{
	memcpy(sort->message, sort->failure, sizeof sort->message);
}

const char *gsort_message(const struct gsort *sort)
{
	return sort ? sort->message : "there is no handle: it is NULL";
}

int gsort_on_message(struct gsort *sort, gsort_listener *listener, void *context)
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

static struct gsort_progress progress_of(struct stats *stats)
{
	struct stats_progress at;

	stats_get_progress(stats, &at);
	return (struct gsort_progress){
		.phase = at.started ? phase_name(at.phase) : "",
		.done_nbytes = at.done_nbytes,
		.total_nbytes = at.total_nbytes,
		.all_done_nbytes = at.whole_done_nbytes,
		.all_total_nbytes = at.whole_total_nbytes,
		.elapsed_ns = at.whole_elapsed_ns,
	};
}

/* As much of a struct as the caller knows of; what we do not know is zeroed. */
static void give_struct(void *to, size_t to_nbytes, const void *from, size_t from_nbytes)
{
	memset(to, 0, to_nbytes);
	memcpy(to, from, from_nbytes < to_nbytes ? from_nbytes : to_nbytes);
}

void gsort_get_progress(struct gsort *sort, struct gsort_progress *ret_progress, size_t size)
{
	struct gsort_progress progress = progress_of(NULL);

	if (!ret_progress)
		return;
	if (sort) {
		pthread_mutex_lock(&sort->lock);
		progress = progress_of(sort->stats);
		pthread_mutex_unlock(&sort->lock);
	}
	give_struct(ret_progress, size, &progress, sizeof progress);
}

int gsort_on_progress(struct gsort *sort, gsort_watcher *watcher, void *context,
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
		const struct gsort_progress progress = progress_of(sort->stats);

		sort->watcher(sort->watcher_context, &progress);
	}
	return NULL;
}

/* --- statistics --- */

static bool has_succeeded(struct gsort *sort)
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
	if (!has_succeeded(sort))
		return fail(-EINVAL, "there are no statistics: it has not succeeded");
	stats_get_totals(sort->stats, &totals);
	stats = (struct gsort_stats){
		.record_nbytes = facts->record_nbytes,
		.n_records_in = facts->n_records_in,
		.n_records_out = facts->n_records_out,
		.memory_nbytes = facts->buffer_nbytes,
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

const char *told_json(struct gsort *sort, void (*write)(const struct gsort *sort, FILE *stream))
{
	char *text = NULL;
	size_t nbytes;
	FILE *stream = open_memstream(&text, &nbytes);

	if (!stream)
		return NULL;
	write(sort, stream);
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	free(sort->json);
	sort->json = text;
	return text;
}

static void write_stats(const struct gsort *sort, FILE *stream)
{
	report_write_json(&(struct report){ sort->stats, &sort->facts }, stream);
}

const char *gsort_stats_json(struct gsort *sort)
{
	return sort && has_succeeded(sort) ? told_json(sort, write_stats) : NULL;
}
