/*
 * progress_display - one line that says how far the sort is (see progress_display.h)
 *
 * The thread is stopped by a flag and a SIGUSR1 of its own: a signal that is sent to one thread
 * stays pending for it until it looks, so there is no moment at which the wake-up could be missed.
 */
#include "src/cli/progress_display.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "src/cli/process_setup.h"
#include "src/cli/print_message.h"

enum { TERMINAL_INTERVAL_MS = 200, LINE_INTERVAL_MS = 1000, FIRST_MS = 1000 };
enum { LINE_NBYTES = 128 };

struct progress {
	/* Set at creation. */
	progress_asker *ask;
	void *context;
	enum progress_mode mode;
	bool on_terminal;
	pthread_t thread;

	atomic_bool stopping;

	/* The thread's own; after it has ended, progress_close()'s. */
	bool line_shown; /* on the terminal */
};

static bool is_all_done(const struct gsort_progress *at)
{
	return at->total_nbytes && at->done_nbytes >= at->total_nbytes &&
	       at->overall_total_nbytes && at->overall_done_nbytes >= at->overall_total_nbytes;
}

/*
 * On a terminal the line stays, to be written over; elsewhere, and if it is the last, it is ended.
 * What is left when all has been moved may take a while: of that nothing is said but the last line,
 * which is the same, unless somebody asks.
 */
static void show(struct progress *progress, bool keep)
{
	struct gsort_progress at;
	char line[LINE_NBYTES];

	progress->ask(progress->context, &at);
	gsort_format_progress(&at, sizeof at, line, sizeof line);
	if (!line[0] || (!keep && !progress->on_terminal && is_all_done(&at)))
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

void progress_hold_signal(void)
{
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
}

int progress_open(enum progress_mode mode, progress_asker *ask, void *context,
		  struct progress **ret_progress)
{
	struct progress *progress = calloc(1, sizeof *progress);
	int r;

	if (!progress)
		return complain(-ENOMEM, "cannot show progress: %m");
	progress->ask = ask;
	progress->context = context;
	progress->mode = mode;
	progress->on_terminal = isatty(STDERR_FILENO);
	progress_hold_signal();
	r = process_start_thread(run, progress, &progress->thread);
	if (r < 0) {
		free(progress);
		return complain(r, "cannot start the thread that shows progress: %m%s",
				r == -EAGAIN ? "; what limits it is mostly ulimit -u, or -v" : "");
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
