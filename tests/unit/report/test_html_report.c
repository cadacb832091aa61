/*
 * test_html_report - the page of any sort is complete and small
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format.h"
#include "src/report/html_report.h"
#include "tests/support/unit_test.h"

#define S UINT64_C(1000000000)

static char text[1 << 20];

/* Of each test, empty at first. */
static struct time_series *time_series;
static struct stats *stats;

static const struct sort_summary small_summary = { .record_nbytes = 8,
						   .backend = "CPU",
						   .type = "u64le" };

static int start(void **state)
{
	(void)state;
	return time_series_open(&time_series) < 0 || stats_open(NULL, NULL, &stats) < 0;
}

static int finish(void **state)
{
	(void)state;
	stats_close(stats);
	time_series_close(time_series);
	return 0;
}

static const char *const inputs[] = { "a.bin", "-", "<b>\n\xff\".bin", "100%d%s.bin" };

/* Write the page to `text`. */
static void write_page(const struct sort_summary *summary, const char *const *names, size_t n)
{
	const struct stats_report report = { .stats = stats, .summary = summary };
	const struct html_report page = { .stats_report = &report,
					  .time_series = time_series,
					  .inputs = names,
					  .n_inputs = n,
					  .output = "out & \"in\"" };
	FILE *stream = fmemopen(text, sizeof text, "w");

	memset(text, 0, sizeof text);
	html_report_write(&page, stream);
	assert_int_equal(fclose(stream), 0);
}

static void write_rank_page(const struct rank_stats *ranks)
{
	static char hosts[1][COMM_HOST_NBYTES] = { "node1" };
	struct rank_summary entry = ranks->total;
	struct rank_stats all = *ranks;
	const struct stats_report report = { .stats = stats, .rank_stats = &all };
	const struct html_report page = {
		.stats_report = &report, .time_series = time_series, .inputs = inputs, .n_inputs = 1
	};
	FILE *stream = fmemopen(text, sizeof text, "w");

	if (!all.ranks) {
		all.ranks = &entry;
		all.hosts = hosts;
	}
	memset(text, 0, sizeof text);
	html_report_write(&page, stream);
	assert_int_equal(fclose(stream), 0);
}

static uint32_t random_part(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

/* Add ten hours of work that changes all the time, and 16 queues of a GPU. */
static void work_for_hours(void)
{
	uint32_t random = 1;

	for (uint64_t at = 0; at < 36000; at++) {
		const enum stage stage = random_part(&random) % N_STAGES;
		const uint64_t begin_ns = time_series->begin_ns + at * S;
		const struct time_series_gauges sample = { (uint64_t)random_part(&random) << 20,
							   (uint64_t)random_part(&random) << 24,
							   at << 25 };

		for (unsigned i = 0; i < 20; i++)
			time_series_add(time_series, (stage + i) % N_STAGES, i < 16 ? i + 1 : 0,
					begin_ns, begin_ns + random_part(&random) * UINT64_C(20000),
					(uint64_t)random_part(&random) << 12);
		time_series_sample(time_series, begin_ns, &sample);
	}
	time_series->phases[PHASE_RUN_GENERATION].begin_ns = time_series->begin_ns + S;
	time_series->phases[PHASE_RUN_GENERATION].end_ns = time_series->begin_ns + 20000 * S;
	time_series->phases[PHASE_FINAL_MERGE].begin_ns = time_series->begin_ns + 20000 * S;
	time_series->phases[PHASE_FINAL_MERGE].end_ns = time_series->begin_ns + 36000 * S;
}

static void work_in_all_stages(void)
{
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		stats_begin_phase(stats, phase, 1);
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			stats_end_at(stats,
				     (struct span){ .stage = stage,
						    .begin_ns = time_series->begin_ns },
				     time_series->begin_ns + (1 + (uint64_t)stage) * S,
				     UINT64_C(1) << 40);
	}
	stats_finish(stats);
}

static double number_after(const char *at, const char *name)
{
	const char *value = strstr(at, name);

	assert_non_null(value);
	return strtod(value + strlen(name), NULL);
}

/* Each stage has bars for its share of the phase, its rate, and its share of the peak rate. */
static void assert_bars_fit_their_cells(void)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, "<i class=\"work of-")); n++, at++) {
		const double width = number_after(at, "width:");

		assert_true(width >= 0 && width <= 100);
	}
	assert_int_equal(n, 3 * N_PHASES * N_STAGES);
}

static unsigned count_of(const char *what, const char *begin, const char *end)
{
	unsigned n = 0;

	for (const char *at = begin; (at = strstr(at, what)) && at < end; at++)
		n++;
	return n;
}

/* The chart must have a box for each phase and an area for each row. */
static void assert_throughput_is_drawn(unsigned n_phases)
{
	const char *begin = strstr(text, "throughput-picture"), *end;

	assert_non_null(begin);
	end = strstr(begin, "</svg>");
	assert_non_null(end);
	assert_int_equal(count_of("class=\"span\"", begin, end), n_phases);
	assert_true(count_of("<path", begin, end) > 3);
	assert_int_equal(count_of("<path", begin, end), count_of("class=\"ground\"", begin, end));
	assert_int_equal(count_of("<path", begin, end), count_of("z\"><title>", begin, end));
}

#define REPORT_TEST(claim) TEST_WITH(claim, start, finish)

REPORT_TEST(report_of_a_terabyte_is_small)
{
	struct sort_summary summary = {
		.record_nbytes = 100,
		.type = "0:b10",
		.backend = "a GPU",
		.n_records_in = UINT64_C(10000000000),
		.n_records_out = UINT64_C(10000000000),
		.buffer_nbytes = UINT64_C(64) << 30,
		.spilled = { .codec = "delta", .items_nbytes = 100, .stored_nbytes = 70 },
		.plan = { .n_chunks = 100, .copies_to_device = true }
	};
	const char **names = calloc(100000, sizeof *names);

	assert_non_null(names);
	for (size_t i = 0; i < 100000; i++)
		names[i] = "some/name/of/an/input";
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		summary.peak_rates[stage] = 1e10 + stage;
	work_for_hours();
	work_in_all_stages();
	write_page(&summary, names, 100000);
	assert_true(strlen(text) > 50000);
	assert_true(strlen(text) < 300000);
	assert_non_null(strstr(text, "Queues of the GPU"));
	assert_null(strstr(text, "were not measured"));
	assert_non_null(strstr(text, "and 99990 more"));
	assert_non_null(strstr(text, "</html>"));
	assert_bars_fit_their_cells();
	assert_throughput_is_drawn(2);
	free(names);
}

/* No division by zero without records, time or work. */
REPORT_TEST(report_of_empty_input_is_complete)
{
	stats_begin_phase(stats, PHASE_RUN_GENERATION, 0);
	stats_finish(stats);
	write_page(&small_summary, inputs, 3);
	assert_non_null(strstr(text, "0 records"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf\""));
	assert_non_null(strstr(text, "</html>"));
}

/* The columns of peak rates are empty. */
REPORT_TEST(report_explains_missing_peak_rates)
{
	work_in_all_stages();
	write_page(&small_summary, inputs, 1);
	assert_non_null(
		strstr(text, "were not measured: this is done only for phases of a second"));
}

/* A resumed sort that was complete has no statistics. */
REPORT_TEST(report_says_if_nothing_remained_to_do)
{
	const struct sort_summary summary = { 0 };

	write_page(&summary, inputs, 1);
	assert_non_null(strstr(text, "The sort was already complete"));
	assert_null(strstr(text, "checked"));
}

/* The metric, the chart and the table show the same peak, although samples miss it. */
REPORT_TEST(memory_is_one_number)
{
	const struct time_series_gauges sample = { .memory_nbytes = 1 << 10,
						   .temporary_nbytes = UINT64_C(3) << 30 };
	struct stats_totals totals;
	char peak_text[64];
	const char *end = text + sizeof text;

	work_in_all_stages();
	time_series_sample(time_series, time_series->begin_ns + 1, &sample);
	stats_get_totals(stats, &totals);
	write_page(&small_summary, inputs, 1);
	snprintf(peak_text, sizeof peak_text, ">%s<",
		 size_format(totals.usage.peak_rss_nbytes).text);
	assert_int_equal(count_of(peak_text, text, end), 2);
	snprintf(peak_text, sizeof peak_text, ">peak %s<",
		 size_format(totals.usage.peak_rss_nbytes).text);
	assert_int_equal(count_of(peak_text, text, end), 1);
	/* Bins without a sample count with the value before them. */
	assert_non_null(strstr(text, ">3 GiB</td>\n<td class=\"number\">3 GiB</td>"));
}

/* A GPU without times: its queues are omitted, and the navigation does not link to them. */
REPORT_TEST(idle_queues_are_omitted)
{
	const struct sort_summary summary = { .record_nbytes = 8,
					      .backend = "GPU",
					      .type = "u64le" };

	time_series_add(time_series, STAGE_SORT, 1, time_series->begin_ns, time_series->begin_ns,
			0);
	write_page(&summary, inputs, 1);
	assert_null(strstr(text, "id=\"queues\""));
	assert_non_null(strstr(text, "nothing was spilled"));
}

REPORT_TEST(names_are_escaped_in_the_report)
{
	write_page(&small_summary, inputs, 4);
	assert_non_null(strstr(text, "<td>100%d%s.bin</td>"));
	assert_non_null(strstr(text, "<td>&lt;b&gt;$&#39;\\n\\377&#39;&quot;.bin</td>"));
	assert_non_null(strstr(text, "<td>standard input</td>"));
	assert_non_null(strstr(text, "<td>out &amp; &quot;in&quot;</td>"));
}

/* If no stage was active for half of a phase, the table and the text agree. */
REPORT_TEST(phase_without_a_bottleneck_names_the_longest_stage)
{
	struct rank_stats ranks = { .n_ranks = 1 };
	struct phase_totals *phase = &ranks.total.totals.phases[PHASE_FINAL_MERGE];

	ranks.total.summary = small_summary;
	phase->has_begun = true;
	phase->elapsed_ns = 10 * S;
	phase->stages[STAGE_MERGE] =
		(struct stage_totals){ .n_spans = 1, .active_ns = 2 * S, .busy_ns = 2 * S };
	write_rank_page(&ranks);
	assert_non_null(strstr(text, "<td>none</td>\n<td>merge, 20 %</td>"));
	assert_non_null(strstr(text, "merge</strong>\n was active longest, but only 20 %"));
}

/* Words are not broken, columns of zeros are omitted, and the headline counts all ranks. */
REPORT_TEST(table_of_ranks_fits_the_page)
{
	char hosts[4][COMM_HOST_NBYTES] = { "node1", "node2", "node3", "node4" };
	struct rank_summary entries[4];
	struct rank_stats ranks = { .n_ranks = 4, .ranks = entries, .hosts = hosts };
	const char *work, *times;

	memset(entries, 0, sizeof entries);
	for (unsigned i = 0; i < 4; i++) {
		entries[i].summary = (struct sort_summary){ .record_nbytes = 8,
							    .backend = "CPU, 1 thread",
							    .type = "u64le",
							    .n_records_in = 1000000,
							    .n_records_out = 1000000 };
		entries[i].totals.phases[PHASE_RUN_GENERATION] =
			(struct phase_totals){ .has_begun = true, .elapsed_ns = S };
	}
	ranks.total = entries[0];
	write_rank_page(&ranks);
	assert_non_null(strstr(text, ", on 4 ranks, each on CPU, 1 thread. All records"));
	assert_null(strstr(
		text,
		"td{overflow-wrap:anywhere}td")); /* only in the tables of files and of the plan */
	assert_non_null(strstr(text, ".pairs td{overflow-wrap:anywhere}"));
	work = strstr(text, ">Work of each rank<");
	times = strstr(text, ">Time of each rank in each phase<");
	assert_non_null(work);
	assert_non_null(times);
	assert_int_equal(count_of("<th scope=\"col\"", work, times), 3);
	assert_int_equal(count_of("<th scope=\"col\"", times, strstr(times, "</thead>")), 4);
}

TEST(format_time_chooses_the_unit)
{
	static const struct {
		double s;
		const char *expected;
	} times[] = { { 0.1254, "0.125 s" }, { 2.345, "2.35 s" },   { 12.34, "12.3 s" },
		      { 59.4, "59.4 s" },    { 59.6, "1:00 min" },  { 65, "1:05 min" },
		      { 3599, "59:59 min" }, { 3600, "1:00:00 h" }, { 11405, "3:10:05 h" } };
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
		assert_string_equal(format_time(times[i].s).text, times[i].expected);
}
