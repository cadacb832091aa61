/*
 * test_progress - the line says how far the sort is, when it should and not otherwise
 */
#include "src/cli/progress.h"

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

/* A quarter of the first of two phases, of one size, in two seconds. */
static void whole_sort_has_one_percentage_and_one_estimate(void **state)
{
	struct stats_progress at = { .started = true,
				     .phase = PHASE_RUNS,
				     .done_nbytes = 1 << 20,
				     .total_nbytes = 4 << 20,
				     .elapsed_ns = UINT64_C(2000000000),
				     .whole_done_nbytes = 1 << 20,
				     .whole_total_nbytes = 8 << 20,
				     .whole_elapsed_ns = UINT64_C(2000000000) };
	char line[PROGRESS_LINE_NBYTES];

	(void)state;
	progress_format(&at, line);
	assert_string_equal(line,
			    "forming runs: 25 %, 512 KiB/s, 0:06 left; in all 12 %, 0:14 left");
	/* Later, in a phase that is twice as fast as the first. */
	at.phase = PHASE_MERGE;
	at.done_nbytes = 2 << 20;
	at.whole_done_nbytes = 6 << 20;
	at.whole_elapsed_ns = UINT64_C(10000000000);
	progress_format(&at, line);
	assert_string_equal(
		line, "merging into the output: 50 %, 1 MiB/s, 0:02 left; in all 75 %, 0:02 left");
	at.done_nbytes = 4 << 20;
	at.whole_done_nbytes = 8 << 20;
	progress_format(&at, line);
	assert_string_equal(line, "merging into the output: 100 %, 2 MiB/s; in all 100 %");
}

static struct stats_progress progress_of(struct stats *stats)
{
	struct stats_progress at;

	stats_get_progress(stats, &at);
	return at;
}

static void whole_is_of_the_phases_that_are_expected(void **state)
{
	struct stats *stats;

	(void)state;
	assert_int_equal(stats_open(NULL, &stats), 0);
	stats_expect(stats, PHASE_PASSES, 50);
	stats_expect(stats, PHASE_MERGE, 100);
	stats_begin_phase(stats, PHASE_RUNS, 100);
	stats_end(stats, stats_begin(STAGE_READ, 0), 30);
	assert_int_equal(progress_of(stats).whole_done_nbytes, 30);
	assert_int_equal(progress_of(stats).whole_total_nbytes, 250);
	stats_end(stats, stats_begin(STAGE_READ, 0), 70);
	stats_expect(stats, PHASE_PASSES, 0); /* there are fewer runs than was planned */
	stats_begin_phase(stats, PHASE_MERGE, 80);
	stats_end(stats, stats_begin(STAGE_WRITE, 0), 8);
	assert_int_equal(progress_of(stats).whole_done_nbytes, 108);
	assert_int_equal(progress_of(stats).whole_total_nbytes, 180);
	stats_close(stats);
}

/* While a pipe is read nobody knows the whole; afterwards it is what came. */
static void whole_of_a_pipe_is_known_when_it_has_ended(void **state)
{
	struct stats *stats;

	(void)state;
	assert_int_equal(stats_open(NULL, &stats), 0);
	stats_begin_phase(stats, PHASE_RUNS, 0);
	stats_end(stats, stats_begin(STAGE_READ, 0), 30);
	assert_int_equal(progress_of(stats).whole_total_nbytes, 0);
	stats_begin_phase(stats, PHASE_MERGE, 30);
	assert_int_equal(progress_of(stats).whole_done_nbytes, 30);
	assert_int_equal(progress_of(stats).whole_total_nbytes, 60);
	stats_close(stats);
}

static void nothing_begun_is_no_line(void **state)
{
	const struct stats_progress at = { 0 };
	char line[PROGRESS_LINE_NBYTES];

	(void)state;
	progress_format(&at, line);
	assert_string_equal(line, "");
}

/* A sort whose progress is reported to a standard error that the test reads. */
struct session {
	int real_stderr, reader, writer;
	struct stats *stats;
	struct progress *progress;
};

/* 42 % of the first phase are done. */
static struct session start(enum progress_mode mode, int reader, int writer)
{
	struct session session = { .real_stderr = dup(STDERR_FILENO),
				   .reader = reader,
				   .writer = writer };

	assert_true(session.real_stderr >= 0 && dup2(writer, STDERR_FILENO) >= 0);
	assert_int_equal(stats_open(NULL, &session.stats), 0);
	stats_begin_phase(session.stats, PHASE_RUNS, 100);
	stats_end(session.stats, stats_begin(STAGE_READ, 0), 42);
	assert_int_equal(progress_open(mode, session.stats, &session.progress), 0);
	return session;
}

static struct session start_with_pipe(enum progress_mode mode)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	return start(mode, ends[0], ends[1]);
}

static struct session start_with_terminal(enum progress_mode mode)
{
	const int controller = posix_openpt(O_RDWR | O_NOCTTY);

	assert_true(controller >= 0 && grantpt(controller) == 0 && unlockpt(controller) == 0);
	return start(mode, controller, open(ptsname(controller), O_RDWR | O_NOCTTY));
}

/* What has been written, waiting for it up to a time; "" if nothing came. */
static const char *arrived(struct session session, int wait_ms)
{
	struct pollfd pollfd = { .fd = session.reader, .events = POLLIN };
	ssize_t n = 0;

	if (poll(&pollfd, 1, wait_ms) == 1)
		n = read(session.reader, text, sizeof text - 1);
	text[n > 0 ? n : 0] = '\0';
	return text;
}

/* Stop reporting; what that wrote is what arrives. */
static const char *last_words(struct session session)
{
	progress_close(session.progress);
	return arrived(session, 0);
}

static void stop(struct session session)
{
	dup2(session.real_stderr, STDERR_FILENO);
	close(session.real_stderr);
	close(session.reader);
	close(session.writer);
	stats_close(session.stats);
}

static void sigusr1_prints_the_line_once(void **state)
{
	const struct session session = start_with_pipe(PROGRESS_NEVER);

	(void)state;
	kill(getpid(), SIGUSR1);
	arrived(session, GIVE_UP_MS);
	assert_non_null(strstr(text, "forming runs: 42 %"));
	assert_string_equal(strchr(text, '\n'), "\n");
	assert_string_equal(arrived(session, 50), "");
	assert_string_equal(last_words(session), "");
	stop(session);
}

static void sigusr1_leaves_its_line_on_a_terminal(void **state)
{
	const struct session session = start_with_terminal(PROGRESS_NEVER);

	(void)state;
	kill(getpid(), SIGUSR1);
	arrived(session, GIVE_UP_MS);
	assert_non_null(strstr(text, "forming runs: 42 %"));
	assert_int_equal(text[strlen(text) - 1], '\n');
	assert_string_equal(last_words(session), "");
	stop(session);
}

static void always_prints_lines_and_how_it_ended(void **state)
{
	const struct session session = start_with_pipe(PROGRESS_ALWAYS);

	(void)state;
	assert_non_null(strstr(arrived(session, GIVE_UP_MS), "forming runs: 42 %"));
	stats_end(session.stats, stats_begin(STAGE_READ, 0), 58);
	assert_non_null(strstr(last_words(session), "forming runs: 100 %"));
	stop(session);
}

static void auto_is_quiet_where_there_is_no_terminal(void **state)
{
	const struct session session = start_with_pipe(PROGRESS_AUTO);

	(void)state;
	assert_string_equal(arrived(session, 1200), "");
	assert_string_equal(last_words(session), "");
	stop(session);
}

static void line_on_a_terminal_is_removed_at_the_end(void **state)
{
	const struct session session = start_with_terminal(PROGRESS_AUTO);

	(void)state;
	assert_string_equal(arrived(session, 300), ""); /* not before a second */
	arrived(session, GIVE_UP_MS);
	assert_int_equal(text[0], '\r');
	assert_non_null(strstr(text, "forming runs: 42 %"));
	assert_null(strchr(text, '\n'));
	last_words(session);
	assert_string_equal(text + strlen(text) - 4, "\r\033[K");
	stop(session);
}

static void short_sorts_end_without_delay(void **state)
{
	struct progress *progress;
	const uint64_t begin_ns = clock_now_ns();

	(void)state;
	for (int i = 0; i < 100; i++) {
		assert_int_equal(progress_open(PROGRESS_NEVER, NULL, &progress), 0);
		progress_close(progress);
	}
	assert_true(clock_now_ns() - begin_ns < UINT64_C(5000000000));
	progress_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_has_phase_part_rate_and_time_left),
		cmocka_unit_test(unknown_total_shows_bytes),
		cmocka_unit_test(ends_of_a_phase_have_no_time_left),
		cmocka_unit_test(whole_sort_has_one_percentage_and_one_estimate),
		cmocka_unit_test(whole_is_of_the_phases_that_are_expected),
		cmocka_unit_test(whole_of_a_pipe_is_known_when_it_has_ended),
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
