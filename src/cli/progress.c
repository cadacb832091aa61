/*
 * progress - one line that says how far the sort is (see progress.h)
 *
 * The thread is stopped by a flag and a SIGUSR1 of its own: a signal that is sent to one thread
 * stays pending for it until it looks, so there is no moment at which the wake-up could be missed.
 */
#include "src/cli/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "src/base/messages.h"
#include "src/base/size.h"
#include "src/base/thread.h"

enum { TERMINAL_INTERVAL_MS = 200, LINE_INTERVAL_MS = 1000, FIRST_MS = 1000 };

struct progress {
	/* Set at creation. */
	struct stats *stats;
	enum progress_mode mode;
	bool on_terminal;
	pthread_t thread;

	atomic_bool stopping;

	/* The thread's own; after it has ended, progress_close()'s. */
	bool line_shown; /* on the terminal */
};

static void format_duration(uint64_t s, char text[static 32])
{
	if (s >= 3600)
		snprintf(text, 32, "%" PRIu64 ":%02u:%02u", s / 3600, (unsigned)(s / 60 % 60),
			 (unsigned)(s % 60));
	else
		snprintf(text, 32, "%u:%02u", (unsigned)(s / 60), (unsigned)(s % 60));
}

static unsigned percent(uint64_t done_nbytes, uint64_t total_nbytes)
{
	return done_nbytes >= total_nbytes ?
		       100 :
		       (unsigned)(100 * (double)done_nbytes / (double)total_nbytes);
}

/* Bytes per second. */
static double rate_of(uint64_t nbytes, uint64_t elapsed_ns)
{
	return elapsed_ns ? (double)nbytes * 1e9 / (double)elapsed_ns : 0;
}

/* Of a phase: "forming runs: 25 %, 512 MiB/s, 0:06 left". */
static void format_phase(const struct stats_progress *at, double rate, char *text, size_t room)
{
	char done[32], rate_text[32], left[32];

	size_format((uint64_t)rate, rate_text);
	if (at->total_nbytes == 0) {
		size_format(at->done_nbytes, done);
		snprintf(text, room, "%s: %s, %s/s", phase_name(at->phase), done, rate_text);
	} else if (at->done_nbytes >= at->total_nbytes || at->done_nbytes == 0) {
		snprintf(text, room, "%s: %d %%, %s/s", phase_name(at->phase),
			 at->done_nbytes ? 100 : 0, rate_text);
	} else {
		format_duration(
			(uint64_t)((double)(at->total_nbytes - at->done_nbytes) / rate + 0.5),
			left);
		snprintf(text, room, "%s: %u %%, %s/s, %s left", phase_name(at->phase),
			 percent(at->done_nbytes, at->total_nbytes), rate_text, left);
	}
}

/*
 * Seconds that are left of the whole: the rest of this phase at its own rate, and the phases that
 * are to come at that of all so far.
 */
static double whole_left_s(const struct stats_progress *at, double rate)
{
	const double whole_rate = rate_of(at->whole_done_nbytes, at->whole_elapsed_ns);
	const uint64_t left = at->whole_total_nbytes - at->whole_done_nbytes;
	uint64_t of_phase =
		at->total_nbytes > at->done_nbytes ? at->total_nbytes - at->done_nbytes : 0;

	of_phase = of_phase < left ? of_phase : left;
	return (rate > 0 ? (double)of_phase / rate : 0) + (double)(left - of_phase) / whole_rate;
}

void progress_format(const struct stats_progress *at, char line[static PROGRESS_LINE_NBYTES])
{
	const double rate = rate_of(at->done_nbytes, at->elapsed_ns);
	char left[32];
	size_t n;

	line[0] = '\0';
	if (!at->started)
		return;
	format_phase(at, rate, line, PROGRESS_LINE_NBYTES);
	if (at->whole_total_nbytes == 0 || at->whole_total_nbytes == at->total_nbytes)
		return;
	n = strlen(line);
	n += (size_t)snprintf(line + n, PROGRESS_LINE_NBYTES - n, "; in all %u %%",
			      percent(at->whole_done_nbytes, at->whole_total_nbytes));
	if (at->whole_done_nbytes == 0 || at->whole_done_nbytes >= at->whole_total_nbytes)
		return;
	format_duration((uint64_t)(whole_left_s(at, rate) + 0.5), left);
	snprintf(line + n, PROGRESS_LINE_NBYTES - n, ", %s left", left);
}

/*
 * On a terminal the line stays, to be written over; elsewhere, and if it is the last, it is ended.
 */
static void show(struct progress *progress, bool keep)
{
	char line[PROGRESS_LINE_NBYTES];
	struct stats_progress at;

	stats_get_progress(progress->stats, &at);
	progress_format(&at, line);
	if (!line[0])
		return;
	if (progress->on_terminal)
		dprintf(STDERR_FILENO, "\r%s\033[K%s", line, keep ? "\n" : "");
	else
		dprintf(STDERR_FILENO, "%s\n", line);
	progress->line_shown = progress->on_terminal && !keep;
}

static bool is_live(const struct progress *progress)
{
	return progress->mode == PROGRESS_ALWAYS ||
	       (progress->mode == PROGRESS_AUTO && progress->on_terminal);
}

static void *run(void *arg)
{
	struct progress *progress = arg;
	const bool live = is_live(progress);
	int wait_ms = FIRST_MS;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	for (;;) {
		const struct timespec timeout = { .tv_sec = wait_ms / 1000,
						  .tv_nsec = wait_ms % 1000 * 1000000L };
		const int got = live ? sigtimedwait(&usr1, NULL, &timeout) :
				       sigwaitinfo(&usr1, NULL);

		if (atomic_load(&progress->stopping))
			return NULL;
		if (got < 0 && errno != EAGAIN)
			continue;
		show(progress, got == SIGUSR1);
		wait_ms = progress->on_terminal ? TERMINAL_INTERVAL_MS : LINE_INTERVAL_MS;
	}
}

int progress_open(enum progress_mode mode, struct stats *stats, struct progress **ret_progress)
{
	char limits[THREAD_LIMITS_NBYTES];
	struct progress *progress = calloc(1, sizeof *progress);
	sigset_t usr1;
	int r;

	if (!progress)
		return fail(-ENOMEM, "cannot show progress: %m");
	progress->stats = stats;
	progress->mode = mode;
	progress->on_terminal = isatty(STDERR_FILENO);
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
	r = thread_start(run, progress, 0, &progress->thread);
	if (r < 0) {
		free(progress);
		return fail(r, "cannot start the thread that shows progress: %m%s",
			    thread_limits(r, limits));
	}
	*ret_progress = progress;
	return 0;
}

void progress_close(struct progress *progress)
{
	if (!progress)
		return;
	atomic_store(&progress->stopping, true);
	pthread_kill(progress->thread, SIGUSR1);
	pthread_join(progress->thread, NULL);
	/* Somebody asked for lines: the last one is how it ended. */
	if (progress->mode == PROGRESS_ALWAYS)
		show(progress, true);
	else if (progress->line_shown)
		dprintf(STDERR_FILENO, "\r\033[K");
	free(progress);
}
