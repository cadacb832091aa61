/*
 * test_stats - spans are added up correctly, and the reports show the sums
 */
#include "src/report/format.h"
#include "src/report/stats_report.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "tests/support/unit_test.h"

enum { N_THREADS = 4, N_SPANS = 1000 };
#define S UINT64_C(1000000000)

static const struct sort_summary summary = {
	.backend = "CPU, 2 threads",
	.record_nbytes = 8,
	.type = "u64",
	.n_records_in = 1 << 20,
	.input_nbytes = 8 << 20,
	.n_records_out = 1 << 20,
	.buffer_nbytes = 64 << 20,
	.chunk_nbytes = 1 << 20,
	.n_runs = 8,
	.n_runs_spilled = 5,
	.n_passes = 2,
	.n_partitions = 4,
	.n_windows = 3,
	.peak_temp_nbytes = 5 << 20,
	.spilled = { .codec = "delta", .items_nbytes = 6 << 20, .stored_nbytes = 3 << 20 },
};

static char text[1 << 16];

/* Add a span of a stage from begin_s to end_s, in seconds of any clock. */
static void add_span(struct stats *stats, enum stage stage, double begin_s, double end_s,
		     uint64_t nbytes)
{
	const struct span span = { .stage = stage, .begin_ns = (uint64_t)(begin_s * 1e9) };

	stats_end_at(stats, span, (uint64_t)(end_s * 1e9), nbytes);
}

static struct stats *open_stats(enum phase phase)
{
	struct stats *stats;

	assert_int_equal(stats_open(NULL, NULL, &stats), 0);
	stats_begin_phase(stats, phase, 100);
	return stats;
}

static FILE *open_file(void)
{
	FILE *file = tmpfile();

	assert_non_null(file);
	return file;
}

/* Read the file into `text`, and close it. */
static void read_file(FILE *file)
{
	rewind(file);
	text[fread(text, 1, sizeof text - 1, file)] = '\0';
	fclose(file);
}

/* Print the report of --stats to `text`. */
static void print_report(struct stats *stats, const struct sort_summary *of)
{
	FILE *file = open_file();

	stats_report_print(&(struct stats_report){ .stats = stats, .summary = of }, file);
	read_file(file);
}

/* Join the lines of `text` and remove their indentation. */
static void join_lines(void)
{
	char *end = text;

	for (const char *c = text; *c; c++) {
		if (*c != '\n') {
			*end++ = *c;
			continue;
		}
		if (end > text && end[-1] == ',')
			*end++ = ' ';
		while (c[1] == ' ')
			c++;
	}
	*end = '\0';
}

/* Print the JSON to `text`, in one line. */
static void print_json(struct stats *stats, const struct sort_summary *of)
{
	FILE *file = open_file();

	stats_report_write_json(&(struct stats_report){ .stats = stats, .summary = of }, file);
	read_file(file);
	join_lines();
}

/* Return the JSON, and close the statistics. */
static const char *report_json(struct stats *stats)
{
	print_json(stats, &summary);
	stats_close(stats);
	return text;
}

static void assert_has(const char *part)
{
	if (!strstr(text, part))
		fail_msg("no '%s' in:\n%s", part, text);
}

TEST(overlapping_spans_cover_time_once)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);

	add_span(stats, STAGE_SORT, 1, 4, 10);
	add_span(stats, STAGE_SORT, 2, 5, 10);   /* adds 1 s */
	add_span(stats, STAGE_SORT, 3, 4.5, 10); /* adds nothing */
	add_span(stats, STAGE_SORT, 7, 8, 10);   /* after a gap */
	report_json(stats);
	assert_has("\"name\": \"sort\", \"tasks\": 4, \"bytes\": 40, \"busy_s\": 8.5, "
		   "\"blocked_s\": 0.0, \"active_s\": 5.0");
}

TEST(longest_stage_is_the_bottleneck)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);

	/* Sorting has more busy time, on two threads, but spilling never pauses. */
	add_span(stats, STAGE_SPILL, 0, 10, 100);
	add_span(stats, STAGE_SORT, 0, 8, 100);
	add_span(stats, STAGE_SORT, 0, 8, 100);
	report_json(stats);
	assert_has("\"bottleneck\": \"spill\"");
}

TEST(short_stage_is_no_bottleneck)
{
	struct phase_totals phase = { .elapsed_ns = 100 };

	assert_int_equal(phase_longest_stage(&phase), N_STAGES);
	phase.stages[STAGE_SORT].active_ns = 12;
	phase.stages[STAGE_MERGE].active_ns = 18;
	assert_int_equal(phase_longest_stage(&phase), STAGE_MERGE);
	assert_int_equal(phase_bottleneck(&phase), N_STAGES);
	phase.stages[STAGE_MERGE].active_ns = 50;
	assert_int_equal(phase_bottleneck(&phase), STAGE_MERGE);
}

/* The clock may not advance within a span. */
TEST(stage_that_took_no_time_has_no_rate)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);

	add_span(stats, STAGE_READ, 1, 2, 1 << 20);
	add_span(stats, STAGE_SORT, 1, 1, 1 << 20);
	print_report(stats, &summary);
	stats_close(stats);
	assert_has("\n  sort              1 MiB     0.000 s     0.000 s      0 %              -\n");
}

TEST(phases_are_counted_apart)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);

	add_span(stats, STAGE_MERGE, 1, 2, 11);
	stats_begin_phase(stats, PHASE_FINAL_MERGE, 0);
	add_span(stats, STAGE_MERGE, 3, 4, 22);
	report_json(stats);
	assert_has("{\"name\": \"run_generation\", \"elapsed_s\": ");
	assert_has("\"bytes\": 11,");
	assert_has("{\"name\": \"final_merge\", \"elapsed_s\": ");
	assert_has("\"bytes\": 22,");
	assert_null(strstr(text, "passes\", \"elapsed_s"));
}

TEST(waiting_is_not_work)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);
	struct span span = stats_begin(STAGE_WRITE, 0);

	span.begin_ns -= 5 * S;
	stats_end_wait(stats, span);
	report_json(stats);
	assert_has("\"name\": \"write\", \"tasks\": 0, \"bytes\": 0, \"busy_s\": 0.0, "
		   "\"blocked_s\": 5.");
	assert_has("\"bottleneck\": null");
}

TEST(unknown_values_are_omitted)
{
	const struct sort_summary unknown = { 0 };
	struct stats *stats = open_stats(PHASE_VERIFY);

	add_span(stats, STAGE_VERIFY, 1, 2, 1 << 20);
	print_report(stats, &unknown);
	assert_null(strstr(text, "records"));
	assert_has("peak RSS\nverify: ");
	print_json(stats, &unknown);
	stats_close(stats);
	assert_null(strstr(text, "records"));
	assert_has("\"peak_rss_bytes\": ");
	assert_has("\"name\": \"verify\"");
}

TEST(progress_follows_the_measuring_stage)
{
	struct stats *stats;
	struct stats_progress at;

	assert_int_equal(stats_open(NULL, NULL, &stats), 0);
	stats_get_progress(stats, &at);
	assert_false(at.started);
	stats_begin_phase(stats, PHASE_RUN_GENERATION, 200);
	add_span(stats, STAGE_READ, 1, 2, 50);
	add_span(stats, STAGE_SORT, 1, 2, 20);
	stats_get_progress(stats, &at);
	assert_true(at.started);
	assert_int_equal(at.phase, PHASE_RUN_GENERATION);
	assert_int_equal(at.done_nbytes, 50);
	assert_int_equal(at.total_nbytes, 200);
	stats_begin_phase(stats, PHASE_FINAL_MERGE, 300);
	add_span(stats, STAGE_WRITE, 3, 4, 70);
	stats_get_progress(stats, &at);
	assert_int_equal(at.phase, PHASE_FINAL_MERGE);
	assert_int_equal(at.done_nbytes, 70);
	assert_int_equal(at.total_nbytes, 300);
	stats_close(stats);
}

TEST(progress_counts_skipped_bytes)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);
	struct stats_progress at;

	stats_begin_phase(stats, PHASE_FINAL_MERGE, 300);
	add_span(stats, STAGE_WRITE, 3, 4, 70);
	stats_skip(stats, STAGE_WRITE, 80);
	stats_skip(stats, STAGE_SPILL, 1000); /* does not measure this phase */
	stats_get_progress(stats, &at);
	assert_int_equal(at.done_nbytes, 150);
	assert_int_equal(at.total_nbytes, 300);
	stats_close(stats);
}

TEST(complete_phase_has_moved_all)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);
	struct stats_progress at;

	stats_begin_phase(stats, PHASE_FINAL_MERGE, 300);
	add_span(stats, STAGE_WRITE, 3, 4, 70);
	stats_complete_phase(stats);
	stats_get_progress(stats, &at);
	assert_int_equal(at.done_nbytes, 70);
	assert_int_equal(at.total_nbytes, 70);
	assert_int_equal(at.overall_done_nbytes, at.overall_total_nbytes);
	stats_close(stats);
}

/* Wait until the clock advances. */
static void wait_for_the_clock(void)
{
	const uint64_t begin_ns = clock_now_ns();

	while (clock_now_ns() == begin_ns)
		;
}

TEST(sort_takes_as_long_as_all_phases)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);
	struct stats_progress runs, merge;

	wait_for_the_clock();
	stats_get_progress(stats, &runs);
	assert_true(runs.elapsed_ns > 0);
	assert_int_equal(runs.overall_elapsed_ns, runs.elapsed_ns);
	stats_begin_phase(stats, PHASE_FINAL_MERGE, 300);
	wait_for_the_clock();
	stats_get_progress(stats, &merge);
	assert_true(merge.overall_elapsed_ns >= runs.elapsed_ns + merge.elapsed_ns);
	stats_close(stats);
}

static void *add_spans(void *arg)
{
	for (int i = 0; i < N_SPANS; i++)
		stats_end(arg, stats_begin(STAGE_READ, 0), 3);
	return NULL;
}

TEST(spans_of_all_threads_are_counted)
{
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);
	pthread_t threads[N_THREADS];
	struct stats_progress at;

	for (int i = 0; i < N_THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, add_spans, stats), 0);
	for (int i = 0; i < N_THREADS; i++)
		pthread_join(threads[i], NULL);
	stats_get_progress(stats, &at);
	assert_int_equal(at.done_nbytes, N_THREADS * N_SPANS * 3);
	stats_close(stats);
}

TEST(spans_become_events_of_the_trace)
{
	FILE *file = open_file();
	struct trace *trace;
	struct stats *stats;
	struct span span;

	assert_int_equal(trace_open(file, &trace), 0);
	assert_int_equal(stats_open(trace, NULL, &stats), 0);
	stats_end(stats, stats_begin(STAGE_FETCH, 7), 99);
	span = stats_begin(STAGE_SORT, 8);
	span.queue = 2;
	stats_end_wait(stats, span);
	span.device = 2;
	stats_end_wait(stats, span);
	stats_close(stats);
	trace_close(trace);
	read_file(file);
	assert_has("{\"name\":\"fetch\",\"cat\":\"work\"");
	assert_has("{\"item\":7,\"bytes\":99}");
	assert_has("{\"name\":\"sort\",\"cat\":\"wait\"");
	assert_has("\"name\":\"fetcher 1\"");
	assert_has("\"name\":\"GPU queue 1\"");
	assert_has("\"name\":\"GPU queue 2, device 2\"");
}

/* The second and third of three devices are used. */
TEST(devices_are_reported_separately)
{
	struct sort_summary two = summary;
	struct stats *stats = open_stats(PHASE_RUN_GENERATION);
	struct span span = stats_begin(STAGE_SORT, 0);

	two.n_devices = 2;
	two.devices[0].number = 4;
	two.devices[0].ordinal = 2;
	two.devices[1].number = 7;
	two.devices[1].ordinal = 3;
	stats_add_device(stats, 0, &(struct device_totals){ .n_chunks = 1000 });
	stats_add_device(stats, 2, &(struct device_totals){ .n_chunks = 5, .sorted_nbytes = 50 });
	stats_add_device(stats, 3,
			 &(struct device_totals){ .n_partitions = 6, .merged_nbytes = 60 });
	stats_add_device(stats, 3,
			 &(struct device_totals){ .n_partitions = 1,
						  .peer_read_nbytes = 8,
						  .staged_read_nbytes = 9 });
	span.device = 3;
	stats_end_at(stats, span, span.begin_ns + 2 * S, 0);
	stats_end_at(stats, span, span.begin_ns + 3 * S, 0);
	print_json(stats, &two);
	assert_has("{\"device\": 2, \"gpu\": 4, \"chunks\": 5, \"sorted_bytes\": 50, "
		   "\"partitions\": 0, \"merged_bytes\": 0, \"peer_read_bytes\": 0, "
		   "\"staged_read_bytes\": 0, "
		   "\"busy_s\": 0.0, \"active_s\": 0.0},");
	assert_has("{\"device\": 3, \"gpu\": 7, \"chunks\": 0, \"sorted_bytes\": 0, "
		   "\"partitions\": 7, \"merged_bytes\": 60, \"peer_read_bytes\": 8, "
		   "\"staged_read_bytes\": 9, "
		   "\"busy_s\": 5.0, \"active_s\": 3.0}]");
	print_report(stats, &two);
	stats_close(stats);
	assert_has("  2 (GPU 4)         5         50 B          0");
}

TEST(no_stats_are_fine)
{
	struct stats_progress at;

	stats_begin_phase(NULL, PHASE_RUN_GENERATION, 1);
	stats_end(NULL, stats_begin(STAGE_READ, 0), 1);
	stats_end_wait(NULL, stats_begin(STAGE_READ, 0));
	stats_get_progress(NULL, &at);
	assert_false(at.started);
	stats_report_print(&(struct stats_report){ .summary = &summary }, stdout);
	stats_report_write_json(&(struct stats_report){ .summary = &summary }, stdout);
	stats_close(NULL);
}

static void report_volumes(void *context, struct stats_volumes *ret_volumes)
{
	*ret_volumes = *(const struct stats_volumes *)context;
}

/* Volumes before the first phase belong to it: ranks have already exchanged messages. */
TEST(volumes_belong_to_their_phase)
{
	struct stats_volumes volumes = { .temporary_written_nbytes = 3, .sent_nbytes = 10 };
	struct stats_totals totals;
	struct stats *stats;

	assert_int_equal(stats_open(NULL, NULL, &stats), 0);
	stats_set_volume_source(stats, report_volumes, &volumes);
	stats_begin_phase(stats, PHASE_RUN_GENERATION, 100);
	volumes.sent_nbytes = 15;
	stats_begin_phase(stats, PHASE_FINAL_MERGE, 100);
	volumes.sent_nbytes = 115;
	volumes.temporary_read_nbytes = 2;
	stats_finish(stats);
	volumes.sent_nbytes = 999;
	stats_get_totals(stats, &totals);
	assert_int_equal(totals.phases[PHASE_RUN_GENERATION].volumes.sent_nbytes, 15);
	assert_int_equal(totals.phases[PHASE_RUN_GENERATION].volumes.temporary_written_nbytes, 3);
	assert_int_equal(totals.phases[PHASE_FINAL_MERGE].volumes.sent_nbytes, 100);
	assert_int_equal(totals.phases[PHASE_FINAL_MERGE].volumes.temporary_read_nbytes, 2);
	assert_int_equal(totals.phases[PHASE_FINAL_MERGE].volumes.temporary_written_nbytes, 0);
	report_json(stats);
	assert_has("\"temporary_written_bytes\": 3, \"temporary_read_bytes\": 0, ");
}
