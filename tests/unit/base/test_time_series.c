/*
 * test_time_series - nothing is lost when bins become wider
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "src/base/time_series.h"

#include <cmocka.h>

#define MS UINT64_C(1000000)

static struct history *open_history(void)
{
	struct history *history;

	assert_int_equal(history_open(&history), 0);
	return history;
}

static uint64_t sum(const uint64_t *bins)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < HISTORY_BINS; i++)
		all += bins[i];
	return all;
}

static void add(struct history *history, uint64_t begin, uint64_t end, uint64_t nbytes)
{
	history_add(history, &(struct history_piece){ .stage = STAGE_SORT,
						      .begin_ns = history->begin_ns + begin,
						      .end_ns = history->begin_ns + end,
						      .nbytes = nbytes });
}

static void piece_is_spread_over_its_time(void **state)
{
	struct history *history = open_history();
	const uint64_t bin = history->bin_ns;

	(void)state;
	add(history, bin / 2, 5 * bin / 2, 400);
	assert_int_equal(history->host.busy_ns[STAGE_SORT][0], bin / 2);
	assert_int_equal(history->host.busy_ns[STAGE_SORT][1], bin);
	assert_int_equal(history->host.busy_ns[STAGE_SORT][2], bin / 2);
	assert_int_equal(history->nbytes[STAGE_SORT][1], 200);
	assert_int_equal(sum(history->nbytes[STAGE_SORT]), 400);
	assert_int_equal(history_n_bins(history), 3);
	history_close(history);
}

static void long_sort_takes_no_more_bins_and_loses_nothing(void **state)
{
	struct history *history = open_history();
	uint64_t busy = 0;

	(void)state;
	for (uint64_t i = 0; i < 100000; i++) {
		add(history, i * 10 * MS, i * 10 * MS + 7 * MS, 3);
		busy += 7 * MS;
	}
	assert_true(history_n_bins(history) > HISTORY_BINS / 3);
	assert_true(history_n_bins(history) <= HISTORY_BINS);
	assert_int_equal(sum(history->nbytes[STAGE_SORT]), 300000);
	assert_int_equal(sum(history->host.busy_ns[STAGE_SORT]), busy);
	assert_true(history->end_ns - history->begin_ns <= history->bin_ns * HISTORY_BINS);
	for (uint32_t i = 0; i + 1 < history_n_bins(history); i++) {
		assert_true(history->host.busy_ns[STAGE_SORT][i] > history->bin_ns / 100 * 69);
		assert_true(history->host.busy_ns[STAGE_SORT][i] < history->bin_ns / 100 * 71);
	}
	history_close(history);
}

static void gauges_keep_the_most_that_was_seen(void **state)
{
	struct history *history = open_history();
	const uint64_t begin = history->begin_ns;

	(void)state;
	history_look(history, begin, &(struct history_gauges){ 5, 3, 1 });
	history_look(history, begin + 1, &(struct history_gauges){ 4, 4, 2 });
	history_look(history, begin + 100000 * MS, &(struct history_gauges){ 1, 1, 9 });
	assert_int_equal(history->gauges[0].memory_nbytes, 5);
	assert_int_equal(history->gauges[0].temporary_nbytes, 4);
	assert_int_equal(history->gauges[history_n_bins(history) - 1].written_nbytes, 9);
	history_close(history);
}

/* The lanes of a device that are not told apart still move bytes. */
static void lanes_are_told_apart_up_to_a_number(void **state)
{
	struct history *history = open_history();

	(void)state;
	for (uint32_t lane = 0; lane < 2 * HISTORY_LANES; lane++)
		history_add(history, &(struct history_piece){ .stage = STAGE_MERGE,
							      .begin_ns = history->begin_ns,
							      .end_ns = history->begin_ns + MS,
							      .nbytes = 1,
							      .is_of_lane = true,
							      .lane = lane });
	assert_int_equal(history->n_lanes, HISTORY_LANES);
	assert_int_equal(sum(history->lanes[HISTORY_LANES - 1].busy_ns[STAGE_MERGE]), MS);
	assert_int_equal(sum(history->host.busy_ns[STAGE_MERGE]), 0);
	assert_int_equal(sum(history->nbytes[STAGE_MERGE]), 2 * HISTORY_LANES);
	history_close(history);
}

static void what_began_before_it_is_cut(void **state)
{
	struct history *history = open_history();

	(void)state;
	history_add(history, &(struct history_piece){ .stage = STAGE_READ,
						      .begin_ns = history->begin_ns - 50 * MS,
						      .end_ns = history->begin_ns + MS });
	assert_int_equal(sum(history->host.busy_ns[STAGE_READ]), MS);
	history_close(history);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(piece_is_spread_over_its_time),
		cmocka_unit_test(long_sort_takes_no_more_bins_and_loses_nothing),
		cmocka_unit_test(gauges_keep_the_most_that_was_seen),
		cmocka_unit_test(lanes_are_told_apart_up_to_a_number),
		cmocka_unit_test(what_began_before_it_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
