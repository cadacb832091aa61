/*
 * test_html_report - a page of any sort is whole and small, a terabyte's on a GPU included
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/size.h"
#include "src/report/format_numbers.h"
#include "src/report/html_report.h"

#include <cmocka.h>

#define S UINT64_C(1000000000)

static char text[1 << 20];

static const char *const inputs[] = { "a.bin", "-", "<b>\n\xff\".bin", "100%d%s.bin" };

/* What the page says, in `text`. */
static void write_page(const struct history *history, struct stats *stats,
		       const struct sort_facts *facts, const char *const *names, size_t n)
{
	const struct report report = { .stats = stats, .facts = facts };
	const struct page page = { .report = &report,
				   .history = history,
				   .inputs = names,
				   .n_inputs = n,
				   .output = "out & \"in\"" };
	FILE *stream = fmemopen(text, sizeof text, "w");

	memset(text, 0, sizeof text);
	page_write(&page, stream);
	assert_int_equal(fclose(stream), 0);
}

static uint32_t random_part(uint32_t *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

/* Ten hours in which everything was at work in turn, never twice alike, and 16 lanes of a GPU. */
static void work_for_hours(struct history *history)
{
	uint32_t random = 1;

	for (uint64_t at = 0; at < 36000; at++) {
		const enum stage stage = random_part(&random) % N_STAGES;
		const uint64_t begin_ns = history->begin_ns + at * S;
		const struct history_gauges seen = { (uint64_t)random_part(&random) << 20,
						     (uint64_t)random_part(&random) << 24,
						     at << 25 };

		for (unsigned i = 0; i < 20; i++)
			history_add(history, &(struct history_piece){
						     .stage = (stage + i) % N_STAGES,
						     .begin_ns = begin_ns,
						     .end_ns = begin_ns + random_part(&random) *
										  UINT64_C(20000),
						     .nbytes = (uint64_t)random_part(&random) << 12,
						     .is_of_lane = i < 16,
						     .lane = i });
		history_look(history, begin_ns, &seen);
	}
	history->phases[PHASE_RUNS].begin_ns = history->begin_ns + S;
	history->phases[PHASE_RUNS].end_ns = history->begin_ns + 20000 * S;
	history->phases[PHASE_MERGE].begin_ns = history->begin_ns + 20000 * S;
	history->phases[PHASE_MERGE].end_ns = history->begin_ns + 36000 * S;
}

static struct stats *stats_of_all_stages(struct history *history)
{
	struct stats *stats;

	assert_int_equal(stats_open(NULL, &stats), 0);
	for (enum phase phase = 0; phase < N_PHASES; phase++) {
		stats_begin_phase(stats, phase, 1);
		for (enum stage stage = 0; stage < N_STAGES; stage++)
			stats_end_at(stats,
				     (struct span){ .stage = stage, .begin_ns = history->begin_ns },
				     history->begin_ns + (1 + (uint64_t)stage) * S,
				     UINT64_C(1) << 40);
	}
	stats_finish(stats);
	return stats;
}

static double number_behind(const char *at, const char *name)
{
	const char *found = strstr(at, name);

	assert_non_null(found);
	return strtod(found + strlen(name), NULL);
}

/* The bar of a stage is drawn over the trough that it fills. */
static void assert_bars_lie_in_their_troughs(void)
{
	unsigned n = 0;

	for (const char *at = text; (at = strstr(at, "class=\"trough\"")); n++) {
		const char *bar = strstr(at, "<rect");

		assert_non_null(bar);
		assert_true(number_behind(bar, " x=\"") == number_behind(at, " x=\""));
		assert_true(number_behind(bar, " y=\"") == number_behind(at, " y=\""));
		assert_true(number_behind(bar, " width=\"") <= number_behind(at, " width=\""));
		at = bar;
	}
	assert_int_equal(n, N_PHASES * N_STAGES);
}

static unsigned count_of(const char *what, const char *begin, const char *end)
{
	unsigned n = 0;

	for (const char *at = begin; (at = strstr(at, what)) && at < end; at++)
		n++;
	return n;
}

/* The phases that a picture over time is divided in, and an area in each row. */
static void assert_throughput_is_drawn(unsigned n_phases)
{
	const char *begin = strstr(text, "throughput-picture"), *end;

	assert_non_null(begin);
	end = strstr(begin, "</svg>");
	assert_non_null(end);
	assert_int_equal(count_of("class=\"span\"", begin, end), n_phases);
	assert_true(count_of("<path", begin, end) > 3);
	assert_int_equal(count_of("<path", begin, end), count_of("class=\"ground\"", begin, end));
}

static void page_of_a_terabyte_is_small(void **state)
{
	struct sort_facts facts = {
		.record_nbytes = 100,
		.type = "0:b10",
		.backend = "a GPU",
		.n_records_in = UINT64_C(10000000000),
		.n_records_out = UINT64_C(10000000000),
		.buffer_nbytes = UINT64_C(64) << 30,
		.spilled = { .codec = "delta", .items_nbytes = 100, .stored_nbytes = 70 },
		.plan = { .n_chunks = 100, .copies = true }
	};
	const char **names = calloc(100000, sizeof *names);
	struct history *history;
	struct stats *stats;

	(void)state;
	assert_non_null(names);
	for (size_t i = 0; i < 100000; i++)
		names[i] = "some/name/of/an/input";
	for (enum stage stage = 0; stage < N_STAGES; stage++)
		facts.ceilings[stage] = 1e10 + stage;
	assert_int_equal(history_open(&history), 0);
	work_for_hours(history);
	stats = stats_of_all_stages(history);
	write_page(history, stats, &facts, names, 100000);
	assert_true(strlen(text) > 50000);
	assert_true(strlen(text) < 300000);
	assert_non_null(strstr(text, "Queues of the GPU"));
	assert_null(strstr(text, "were not measured"));
	assert_non_null(strstr(text, "and 99990 more"));
	assert_non_null(strstr(text, "</html>"));
	assert_bars_lie_in_their_troughs();
	assert_throughput_is_drawn(2);
	stats_close(stats);
	history_close(history);
	free(names);
}

/* No records, no time, nothing at work: nothing is divided by nothing. */
static void page_of_nothing_is_whole(void **state)
{
	const struct sort_facts facts = { .record_nbytes = 8, .backend = "CPU", .type = "u64le" };
	struct history *history;
	struct stats *stats;

	(void)state;
	assert_int_equal(history_open(&history), 0);
	assert_int_equal(stats_open(NULL, &stats), 0);
	stats_begin_phase(stats, PHASE_RUNS, 0);
	stats_finish(stats);
	write_page(history, stats, &facts, inputs, 3);
	assert_non_null(strstr(text, "0 records"));
	assert_null(strstr(text, "nan"));
	assert_null(strstr(text, "inf\""));
	assert_non_null(strstr(text, "</html>"));
	stats_close(stats);
	history_close(history);
}

/* The columns are empty then. */
static void page_says_why_nothing_is_known_of_stages_alone(void **state)
{
	const struct sort_facts facts = { .record_nbytes = 8, .backend = "CPU", .type = "u64le" };
	struct history *history;
	struct stats *stats;

	(void)state;
	assert_int_equal(history_open(&history), 0);
	stats = stats_of_all_stages(history);
	write_page(history, stats, &facts, inputs, 1);
	assert_non_null(
		strstr(text, "were not measured: this is done only for phases of a second"));
	stats_close(stats);
	history_close(history);
}

/* What an earlier process has done is not done again, and nothing is known of it. */
static void page_of_a_sort_that_was_done_says_so(void **state)
{
	const struct sort_facts facts = { 0 };
	struct history *history;
	struct stats *stats;

	(void)state;
	assert_int_equal(history_open(&history), 0);
	assert_int_equal(stats_open(NULL, &stats), 0);
	write_page(history, stats, &facts, inputs, 1);
	assert_non_null(strstr(text, "The sort was already complete"));
	assert_null(strstr(text, "checked"));
	stats_close(stats);
	history_close(history);
}

/* The figure, the picture and the table; whoever looks now and then has seen less than the most. */
static void memory_is_one_number(void **state)
{
	const struct sort_facts facts = { .record_nbytes = 8, .backend = "CPU", .type = "u64le" };
	const struct history_gauges seen = { .memory_nbytes = 1 << 10 };
	struct history *history;
	struct stats_totals totals;
	struct stats *stats;
	char size[32], said[64];
	const char *end = text + sizeof text;

	(void)state;
	assert_int_equal(history_open(&history), 0);
	stats = stats_of_all_stages(history);
	history_look(history, history->begin_ns + 1, &seen);
	stats_get_totals(stats, &totals);
	size_format(totals.usage.peak_rss_nbytes, size);
	write_page(history, stats, &facts, inputs, 1);
	snprintf(said, sizeof said, ">%s<", size);
	assert_int_equal(count_of(said, text, end), 2);
	snprintf(said, sizeof said, ">peak %s<", size);
	assert_int_equal(count_of(said, text, end), 1);
	stats_close(stats);
	history_close(history);
}

/* A GPU whose clock said nothing: its lanes are not shown, and no link leads to them. */
static void lanes_that_did_nothing_are_left_out(void **state)
{
	const struct sort_facts facts = { .record_nbytes = 8, .backend = "GPU", .type = "u64le" };
	struct history *history;
	struct stats *stats;

	(void)state;
	assert_int_equal(history_open(&history), 0);
	assert_int_equal(stats_open(NULL, &stats), 0);
	history_add(history, &(struct history_piece){ .stage = STAGE_SORT,
						      .begin_ns = history->begin_ns,
						      .end_ns = history->begin_ns,
						      .is_of_lane = true });
	write_page(history, stats, &facts, inputs, 1);
	assert_null(strstr(text, "id=\"queues\""));
	stats_close(stats);
	history_close(history);
}

static void names_cannot_break_the_page(void **state)
{
	const struct sort_facts facts = { .record_nbytes = 8, .backend = "CPU", .type = "u64le" };
	struct history *history;
	struct stats *stats;

	(void)state;
	assert_int_equal(history_open(&history), 0);
	assert_int_equal(stats_open(NULL, &stats), 0);
	write_page(history, stats, &facts, inputs, 4);
	assert_non_null(strstr(text, "<td>100%d%s.bin</td>"));
	assert_non_null(strstr(text, "<td>&lt;b&gt;$&#39;\\n\\377&#39;&quot;.bin</td>"));
	assert_non_null(strstr(text, "<td>standard input</td>"));
	assert_non_null(strstr(text, "<td>out &amp; &quot;in&quot;</td>"));
	stats_close(stats);
	history_close(history);
}

static void times_are_said_in_the_unit_that_fits(void **state)
{
	static const struct {
		double s;
		const char *said;
	} times[] = { { 0.1254, "0.125 s" }, { 2.345, "2.35 s" },   { 12.34, "12.3 s" },
		      { 59.4, "59.4 s" },    { 59.6, "1:00 min" },  { 65, "1:05 min" },
		      { 3599, "59:59 min" }, { 3600, "1:00:00 h" }, { 11405, "3:10:05 h" } };
	char said[32];

	(void)state;
	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		figures_time(times[i].s, said);
		assert_string_equal(said, times[i].said);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_of_a_terabyte_is_small),
		cmocka_unit_test(page_of_nothing_is_whole),
		cmocka_unit_test(page_says_why_nothing_is_known_of_stages_alone),
		cmocka_unit_test(page_of_a_sort_that_was_done_says_so),
		cmocka_unit_test(memory_is_one_number),
		cmocka_unit_test(lanes_that_did_nothing_are_left_out),
		cmocka_unit_test(names_cannot_break_the_page),
		cmocka_unit_test(times_are_said_in_the_unit_that_fits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
