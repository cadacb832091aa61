/*
 * test_progress_line - the line of --progress
 */
#include "include/gsort.h"
#include "src/base/stats.h"

#include "tests/support/unit_test.h"

/* Format a progress state. */
static const char *format(enum phase phase, uint64_t done_nbytes, uint64_t total_nbytes,
			  uint64_t elapsed_s)
{
	const struct gsort_progress progress = { .phase = phase_name(phase),
						 .done_nbytes = done_nbytes,
						 .total_nbytes = total_nbytes,
						 .phase_elapsed_ns =
							 elapsed_s * UINT64_C(1000000000) };
	static char line[128];

	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	return line;
}

TEST(line_has_phase_percent_rate_and_time)
{
	assert_string_equal(format(PHASE_RUN_GENERATION, 1 << 30, UINT64_C(4) << 30, 2),
			    "run generation: 25 %, 512 MiB/s, 0:06 left");
	assert_string_equal(format(PHASE_FINAL_MERGE, 1 << 20, UINT64_C(360076) << 20, 1),
			    "final merge: 0 %, 1 MiB/s, 100:01:15 left");
}

TEST(unknown_total_shows_bytes)
{
	assert_string_equal(format(PHASE_RUN_GENERATION, 3 << 20, 0, 3),
			    "run generation: 3 MiB, 1 MiB/s");
}

TEST(ends_of_a_phase_show_no_remaining_time)
{
	assert_string_equal(format(PHASE_RUN_GENERATION, 0, 100, 0), "run generation: 0 %, 0 B/s");
	assert_string_equal(format(PHASE_RUN_GENERATION, 100, 100, 1),
			    "run generation: 100 %, 100 B/s");
	assert_string_equal(format(PHASE_RUN_GENERATION, 101, 100, 1),
			    "run generation: 100 %, 101 B/s");
}

/* A quarter of the first of two phases of equal size, after two seconds. */
TEST(overall_has_one_percentage_and_estimate)
{
	struct gsort_progress progress = { .phase = phase_name(PHASE_RUN_GENERATION),
					   .done_nbytes = 1 << 20,
					   .total_nbytes = 4 << 20,
					   .phase_elapsed_ns = UINT64_C(2000000000),
					   .overall_done_nbytes = 1 << 20,
					   .overall_total_nbytes = 8 << 20,
					   .elapsed_ns = UINT64_C(2000000000) };
	char line[128];

	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	assert_string_equal(line,
			    "run generation: 25 %, 512 KiB/s, 0:06 left; total 12 %, 0:14 left");
	/* Later, in a phase that is twice as fast. */
	progress.phase = phase_name(PHASE_FINAL_MERGE);
	progress.done_nbytes = 2 << 20;
	progress.overall_done_nbytes = 6 << 20;
	progress.elapsed_ns = UINT64_C(10000000000);
	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	assert_string_equal(line, "final merge: 50 %, 1 MiB/s, 0:02 left; total 75 %, 0:02 left");
	progress.done_nbytes = 4 << 20;
	progress.overall_done_nbytes = 8 << 20;
	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	assert_string_equal(line, "final merge: 100 %, 2 MiB/s; total 100 %");
}

TEST(no_line_before_the_first_phase)
{
	const struct gsort_progress progress = { 0 };
	char line[128];

	gsort_format_progress(&progress, sizeof progress, line, sizeof line);
	assert_string_equal(line, "");
}

static struct stats_progress progress_of(struct stats *stats)
{
	struct stats_progress progress;

	stats_get_progress(stats, &progress);
	return progress;
}

TEST(overall_counts_expected_phases)
{
	struct stats *stats;

	assert_int_equal(stats_open(NULL, NULL, &stats), 0);
	stats_set_phase_total(stats, PHASE_MERGE_PASSES, 50);
	stats_set_phase_total(stats, PHASE_FINAL_MERGE, 100);
	stats_begin_phase(stats, PHASE_RUN_GENERATION, 100);
	stats_end(stats, stats_begin(STAGE_READ, 0), 30);
	assert_int_equal(progress_of(stats).overall_done_nbytes, 30);
	assert_int_equal(progress_of(stats).overall_total_nbytes, 250);
	stats_end(stats, stats_begin(STAGE_READ, 0), 70);
	stats_set_phase_total(stats, PHASE_MERGE_PASSES, 0); /* fewer runs than planned */
	stats_begin_phase(stats, PHASE_FINAL_MERGE, 80);
	stats_end(stats, stats_begin(STAGE_WRITE, 0), 8);
	assert_int_equal(progress_of(stats).overall_done_nbytes, 108);
	assert_int_equal(progress_of(stats).overall_total_nbytes, 180);
	stats_close(stats);
}

/* The total of a pipe is unknown until its end. */
TEST(overall_of_a_pipe_needs_its_end)
{
	struct stats *stats;

	assert_int_equal(stats_open(NULL, NULL, &stats), 0);
	stats_begin_phase(stats, PHASE_RUN_GENERATION, 0);
	stats_end(stats, stats_begin(STAGE_READ, 0), 30);
	assert_int_equal(progress_of(stats).overall_total_nbytes, 0);
	stats_begin_phase(stats, PHASE_FINAL_MERGE, 30);
	assert_int_equal(progress_of(stats).overall_done_nbytes, 30);
	assert_int_equal(progress_of(stats).overall_total_nbytes, 60);
	stats_close(stats);
}
