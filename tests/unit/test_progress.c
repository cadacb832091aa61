/*
 * test_progress - the line says how far the sort is, when it should and not otherwise
 */
#include "src/progress.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { GIVE_UP_MS = 10000 };

static char text[4096];

/* What progress_format() makes of a state. */
static const char *format(enum phase phase, uint64_t done_nbytes, uint64_t total_nbytes,
			  uint64_t elapsed_s)
{
	const struct stats_progress at = { .started = true,
					   .phase = phase,
					   .done_nbytes = done_nbytes,
					   .total_nbytes = total_nbytes,
					   .elapsed_ns = elapsed_s * UINT64_C(1000000000) };
	static char line[PROGRESS_LINE_NBYTES];

	progress_format(&at, line);
	return line;
}

static void line_has_phase_part_rate_and_time_left(void **state)
{
	(void)state;
	assert_string_equal(format(PHASE_RUNS, 1 << 30, UINT64_C(4) << 30, 2),
			    "forming runs: 25 %, 512 MiB/s, 0:06 left");
	assert_string_equal(format(PHASE_MERGE, 1 << 20, UINT64_C(1) << 32, 1),
			    "merging into the output: 0 %, 1 MiB/s, 1:08:15 left");
}

static void unknown_total_shows_bytes(void **state)
{
	(void)state;
	assert_string_equal(format(PHASE_RUNS, 3 << 20, 0, 3), "forming runs: 3 MiB, 1 MiB/s");
}

static void ends_of_a_phase_have_no_time_left(void **state)
{
	(void)state;
	assert_string_equal(format(PHASE_RUNS, 0, 100, 0), "forming runs: 0 %, 0 B/s");
	assert_string_equal(format(PHASE_RUNS, 100, 100, 1), "forming runs: 100 %, 100 B/s");
	assert_string_equal(format(PHASE_RUNS, 101, 100, 1), "forming runs: 100 %, 101 B/s");
}

static void nothing_begun_is_no_line(void **state)
{
	const struct stats_progress at = { 0 };
	char line[PROGRESS_LINE_NBYTES];

	(void)state;
	progress_format(&at, line);
	assert_string_equal(line, "");
}

/* Standard error, put in the place of the real one, and a way to read what arrives there. */
struct redirected {
	int real, reader, writer;
};

static struct redirected redirect(int reader, int writer)
{
	const struct redirected redirected = { dup(STDERR_FILENO), reader, writer };

	assert_true(redirected.real >= 0 && dup2(writer, STDERR_FILENO) >= 0);
	return redirected;
}

static struct redirected redirect_to_pipe(void)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	return redirect(ends[0], ends[1]);
}

static struct redirected redirect_to_terminal(void)
{
	const int controller = posix_openpt(O_RDWR | O_NOCTTY);

	assert_true(controller >= 0 && grantpt(controller) == 0 && unlockpt(controller) == 0);
	return redirect(controller, open(ptsname(controller), O_RDWR | O_NOCTTY));
}

static void restore(struct redirected redirected)
{
	dup2(redirected.real, STDERR_FILENO);
	close(redirected.real);
	close(redirected.reader);
	close(redirected.writer);
}

/* What has been written, waiting for it up to a time; "" if nothing came. */
static const char *arrived(struct redirected redirected, int wait_ms)
{
	struct pollfd pollfd = { .fd = redirected.reader, .events = POLLIN };
	ssize_t n = 0;

	if (poll(&pollfd, 1, wait_ms) == 1)
		n = read(redirected.reader, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

static struct stats *open_stats(void)
{
	struct stats *stats;

	assert_int_equal(stats_open(NULL, &stats), 0);
	stats_begin_phase(stats, PHASE_RUNS, 100);
	stats_end(stats, stats_begin(STAGE_READ, 0), 42);
	return stats;
}

static void sigusr1_prints_the_line_once(void **state)
{
	const struct redirected redirected = redirect_to_pipe();
	struct stats *stats = open_stats();
	struct progress *progress;

	(void)state;
	assert_int_equal(progress_open(PROGRESS_NEVER, stats, &progress), 0);
	kill(getpid(), SIGUSR1);
	arrived(redirected, GIVE_UP_MS);
	assert_non_null(strstr(text, "forming runs: 42 %"));
	assert_string_equal(strchr(text, '\n'), "\n");
	assert_string_equal(arrived(redirected, 50), "");
	progress_close(progress);
	assert_string_equal(arrived(redirected, 0), "");
	restore(redirected);
	stats_close(stats);
}

static void sigusr1_leaves_its_line_on_a_terminal(void **state)
{
	const struct redirected redirected = redirect_to_terminal();
	struct stats *stats = open_stats();
	struct progress *progress;

	(void)state;
	assert_int_equal(progress_open(PROGRESS_NEVER, stats, &progress), 0);
	kill(getpid(), SIGUSR1);
	arrived(redirected, GIVE_UP_MS);
	assert_non_null(strstr(text, "forming runs: 42 %"));
	assert_int_equal(text[strlen(text) - 1], '\n');
	progress_close(progress);
	assert_string_equal(arrived(redirected, 0), "");
	restore(redirected);
	stats_close(stats);
}

static void always_prints_lines_and_how_it_ended(void **state)
{
	const struct redirected redirected = redirect_to_pipe();
	struct stats *stats = open_stats();
	struct progress *progress;

	(void)state;
	assert_int_equal(progress_open(PROGRESS_ALWAYS, stats, &progress), 0);
	assert_non_null(strstr(arrived(redirected, GIVE_UP_MS), "forming runs: 42 %"));
	stats_end(stats, stats_begin(STAGE_READ, 0), 58);
	progress_close(progress);
	assert_non_null(strstr(arrived(redirected, 0), "forming runs: 100 %"));
	restore(redirected);
	stats_close(stats);
}

static void auto_is_quiet_where_there_is_no_terminal(void **state)
{
	const struct redirected redirected = redirect_to_pipe();
	struct stats *stats = open_stats();
	struct progress *progress;

	(void)state;
	assert_int_equal(progress_open(PROGRESS_AUTO, stats, &progress), 0);
	assert_string_equal(arrived(redirected, 1200), "");
	progress_close(progress);
	assert_string_equal(arrived(redirected, 0), "");
	restore(redirected);
	stats_close(stats);
}

static void line_on_a_terminal_is_removed_at_the_end(void **state)
{
	const struct redirected redirected = redirect_to_terminal();
	struct stats *stats = open_stats();
	struct progress *progress;

	(void)state;
	assert_int_equal(progress_open(PROGRESS_AUTO, stats, &progress), 0);
	assert_string_equal(arrived(redirected, 300), ""); /* not before a second */
	arrived(redirected, GIVE_UP_MS);
	assert_int_equal(text[0], '\r');
	assert_non_null(strstr(text, "forming runs: 42 %"));
	assert_null(strchr(text, '\n'));
	progress_close(progress);
	arrived(redirected, GIVE_UP_MS);
	assert_string_equal(text + strlen(text) - 4, "\r\033[K");
	restore(redirected);
	stats_close(stats);
}

static void short_sorts_end_without_delay(void **state)
{
	struct stats *stats = open_stats();
	struct progress *progress;
	const uint64_t begin_ns = trace_now_ns();

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(progress_open(PROGRESS_NEVER, stats, &progress), 0);
		progress_close(progress);
	}
	assert_true(trace_now_ns() - begin_ns < UINT64_C(5000000000));
	progress_close(NULL);
	stats_close(stats);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_has_phase_part_rate_and_time_left),
		cmocka_unit_test(unknown_total_shows_bytes),
		cmocka_unit_test(ends_of_a_phase_have_no_time_left),
		cmocka_unit_test(nothing_begun_is_no_line),
		cmocka_unit_test(sigusr1_prints_the_line_once),
		cmocka_unit_test(sigusr1_leaves_its_line_on_a_terminal),
		cmocka_unit_test(always_prints_lines_and_how_it_ended),
		cmocka_unit_test(auto_is_quiet_where_there_is_no_terminal),
		cmocka_unit_test(line_on_a_terminal_is_removed_at_the_end),
		cmocka_unit_test(short_sorts_end_without_delay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
