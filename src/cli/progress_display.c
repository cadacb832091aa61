/*
 * progress_display.c - one line that shows the progress of a sort (see cli_main.h)
 *
 * The thread is stopped by a flag and a SIGUSR1 that is sent to it alone. Such a signal stays
 * pending until the thread waits for it, so the wake-up cannot be missed.
 */
#include "src/cli/cli_main.h"

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

struct progress_display {
	/* Set at creation. */
	progress_query *query;
	void *context;
	enum progress_mode mode;
	bool is_terminal;
	pthread_t thread;

	atomic_bool stopping;

	/* Used by the thread, and by progress_display_close() after the thread has ended. */
	bool is_line_shown; /* on the terminal */
};

/*
 * Print the line. On a terminal it has no line end and is rewritten, unless end_line is set. When
 * all bytes have been moved, the rest may take a while: elsewhere than on a terminal, that state is
 * only printed as the last line or on request.
 */
static void print_progress(struct progress_display *display, bool end_line)
{
	struct gsort_progress progress;
	char line[LINE_NBYTES];
	bool is_all_done;

	display->query(display->context, &progress);
	is_all_done = progress.total_nbytes && progress.done_nbytes >= progress.total_nbytes &&
		      progress.overall_total_nbytes &&
		      progress.overall_done_nbytes >= progress.overall_total_nbytes;
	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	if (!line[0] || (!end_line && !display->is_terminal && is_all_done))
		return;
	if (display->is_terminal)
		dprintf(STDERR_FILENO, "\r%s\033[K%s", line, end_line ? "\n" : "");
	else
		dprintf(STDERR_FILENO, "%s\n", line);
	display->is_line_shown = display->is_terminal && !end_line;
}

static void *progress_display_run(void *arg)
{
	struct progress_display *display = arg;
	const bool is_continuous = display->mode == PROGRESS_ALWAYS ||
				   (display->mode == PROGRESS_AUTO && display->is_terminal);
	int wait_ms = FIRST_MS;
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	for (;;) {
		const struct timespec timeout = { .tv_sec = wait_ms / 1000,
						  .tv_nsec = wait_ms % 1000 * 1000000L };
		const int signal_number = is_continuous ? sigtimedwait(&usr1, NULL, &timeout) :
							  sigwaitinfo(&usr1, NULL);

		if (atomic_load(&display->stopping))
			return NULL;
		if (signal_number < 0 && errno != EAGAIN)
			continue;
		print_progress(display, signal_number == SIGUSR1);
		wait_ms = display->is_terminal ? TERMINAL_INTERVAL_MS : LINE_INTERVAL_MS;
	}
}

void progress_display_block_signal(void)
{
	sigset_t usr1;

	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &usr1, NULL);
}

int progress_display_open(enum progress_mode mode, progress_query *query, void *context,
			  struct progress_display **ret_display)
{
	struct progress_display *display = calloc(1, sizeof *display);
	int r;

	if (!display)
		return cli_error(-ENOMEM, "cannot show progress: %m");
	display->query = query;
	display->context = context;
	display->mode = mode;
	display->is_terminal = isatty(STDERR_FILENO);
	progress_display_block_signal();
	r = process_start_thread(progress_display_run, display, &display->thread);
	if (r < 0) {
		free(display);
		return cli_error(r, "cannot start the progress thread: %m%s",
				 r == -EAGAIN ? "; likely limits: ulimit -u, -v" : "");
	}
	*ret_display = display;
	return 0;
}

void progress_display_close(struct progress_display *display)
{
	if (!display)
		return;
	atomic_store(&display->stopping, true);
	pthread_kill(display->thread, SIGUSR1);
	pthread_join(display->thread, NULL);
	/* The last line shows the final state. */
	if (display->mode == PROGRESS_ALWAYS)
		print_progress(display, true);
	else if (display->is_line_shown)
		dprintf(STDERR_FILENO, "\r\033[K");
	free(display);
}
