/*
 * test_progress_line - the line says how far the sort is
 */
#include "src/base/stats.h"
#include "src/report/progress_line.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What progress_line() makes of a state. */
static const char *format(enum phase phase, uint64_t done_nbytes, uint64_t total_nbytes,
			  uint64_t elapsed_s)
{
	const struct progress_state at = { .phase = phase_name(phase),
					   .done_nbytes = done_nbytes,
					   .total_nbytes = total_nbytes,
					   .elapsed_ns = elapsed_s * UINT64_C(1000000000) };
	static char line[PROGRESS_LINE_NBYTES];

	progress_line(&at, line);
	return line;
}

static void line_has_phase_part_rate_and_time_left(void **state)
{
	(void)state;
	assert_string_equal(format(PHASE_RUNS, 1 << 30, UINT64_C(4) << 30, 2),
			    "run generation: 25 %, 512 MiB/s, 0:06 left");
	assert_string_equal(format(PHASE_MERGE, 1 << 20, UINT64_C(1) << 32, 1),
			    "final merge: 0 %, 1 MiB/s, 1:08:15 left");
}

static void unknown_total_shows_bytes(void **state)
{
	(void)state;
	assert_string_equal(format(PHASE_RUNS, 3 << 20, 0, 3), "run generation: 3 MiB, 1 MiB/s");
}

static void ends_of_a_phase_have_no_time_left(void **state)
{
	(void)state;
	assert_string_equal(format(PHASE_RUNS, 0, 100, 0), "run generation: 0 %, 0 B/s");
	assert_string_equal(format(PHASE_RUNS, 100, 100, 1), "run generation: 100 %, 100 B/s");
	assert_string_equal(format(PHASE_RUNS, 101, 100, 1), "run generation: 100 %, 101 B/s");
}

/* A quarter of the first of two phases, of one size, in two seconds. */
static void whole_sort_has_one_percentage_and_one_estimate(void **state)
{
	struct progress_state at = { .phase = phase_name(PHASE_RUNS),
				     .done_nbytes = 1 << 20,
				     .total_nbytes = 4 << 20,
				     .elapsed_ns = UINT64_C(2000000000),
				     .whole_done_nbytes = 1 << 20,
				     .whole_total_nbytes = 8 << 20,
				     .whole_elapsed_ns = UINT64_C(2000000000) };
	char line[PROGRESS_LINE_NBYTES];

	(void)state;
	progress_line(&at, line);
	assert_string_equal(line,
			    "run generation: 25 %, 512 KiB/s, 0:06 left; total 12 %, 0:14 left");
	/* Later, in a phase that is twice as fast as the first. */
	at.phase = phase_name(PHASE_MERGE);
	at.done_nbytes = 2 << 20;
	at.whole_done_nbytes = 6 << 20;
	at.whole_elapsed_ns = UINT64_C(10000000000);
	progress_line(&at, line);
	assert_string_equal(line, "final merge: 50 %, 1 MiB/s, 0:02 left; total 75 %, 0:02 left");
	at.done_nbytes = 4 << 20;
	at.whole_done_nbytes = 8 << 20;
	progress_line(&at, line);
	assert_string_equal(line, "final merge: 100 %, 2 MiB/s; total 100 %");
}

static void nothing_begun_is_no_line(void **state)
{
	const struct progress_state at = { 0 };
	char line[PROGRESS_LINE_NBYTES];

	(void)state;
	progress_line(&at, line);
	assert_string_equal(line, "");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(line_has_phase_part_rate_and_time_left),
		cmocka_unit_test(unknown_total_shows_bytes),
		cmocka_unit_test(ends_of_a_phase_have_no_time_left),
		cmocka_unit_test(whole_sort_has_one_percentage_and_one_estimate),
		cmocka_unit_test(nothing_begun_is_no_line),
		cmocka_unit_test(whole_is_of_the_phases_that_are_expected),
		cmocka_unit_test(whole_of_a_pipe_is_known_when_it_has_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
