/*
 * test_time_series - merging bins loses nothing
 */

#include "src/base/time_series.h"
#include "tests/support/unit_test.h"

#define MS UINT64_C(1000000)

static struct time_series *open_series(void)
{
	struct time_series *series;

	assert_int_equal(time_series_open(&series), 0);
	return series;
}

static uint64_t sum(const uint64_t *bins)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < TIME_SERIES_BINS; i++)
		all += bins[i];
	return all;
}

static void add(struct time_series *series, uint64_t begin, uint64_t end, uint64_t nbytes)
{
	time_series_add(series, STAGE_SORT, 0, series->begin_ns + begin, series->begin_ns + end,
			nbytes);
}

TEST(event_is_spread_over_its_bins)
{
	struct time_series *series = open_series();
	const uint64_t bin = series->bin_ns;

	add(series, bin / 2, 5 * bin / 2, 400);
	assert_int_equal(series->host.busy_ns[STAGE_SORT][0], bin / 2);
	assert_int_equal(series->host.busy_ns[STAGE_SORT][1], bin);
	assert_int_equal(series->host.busy_ns[STAGE_SORT][2], bin / 2);
	assert_int_equal(series->nbytes[STAGE_SORT][1], 200);
	assert_int_equal(sum(series->nbytes[STAGE_SORT]), 400);
	assert_int_equal(time_series_n_bins(series), 3);
	time_series_close(series);
}

TEST(long_sort_merges_bins_without_loss)
{
	struct time_series *series = open_series();
	uint64_t busy = 0;

	time_series_add(series, STAGE_SORT + 1, 0, series->begin_ns, series->begin_ns + MS, 1);
	for (uint64_t i = 0; i < 100000; i++) {
		add(series, i * 10 * MS, i * 10 * MS + 7 * MS, 3);
		busy += 7 * MS;
	}
	assert_true(time_series_n_bins(series) > TIME_SERIES_BINS / 3);
	assert_true(time_series_n_bins(series) <= TIME_SERIES_BINS);
	assert_int_equal(sum(series->nbytes[STAGE_SORT]), 300000);
	assert_int_equal(sum(series->host.busy_ns[STAGE_SORT]), busy);
	assert_true(series->end_ns - series->begin_ns <= series->bin_ns * TIME_SERIES_BINS);
	for (uint32_t i = 0; i + 1 < time_series_n_bins(series); i++) {
		assert_true(series->host.busy_ns[STAGE_SORT][i] > series->bin_ns / 100 * 69);
		assert_true(series->host.busy_ns[STAGE_SORT][i] < series->bin_ns / 100 * 71);
	}
	time_series_close(series);
}

TEST(gauges_keep_the_maximum)
{
	struct time_series *series = open_series();
	const uint64_t begin = series->begin_ns;

	time_series_sample(series, begin, &(struct time_series_gauges){ 5, 3, 1 });
	time_series_sample(series, begin + 1, &(struct time_series_gauges){ 4, 4, 2 });
	time_series_sample(series, begin + series->bin_ns, &(struct time_series_gauges){ 8, 1, 1 });
	time_series_sample(series, begin + 100000 * MS, &(struct time_series_gauges){ 1, 1, 9 });
	assert_int_equal(series->gauges[0].memory_nbytes, 8);
	assert_int_equal(series->gauges[0].temporary_nbytes, 4);
	assert_int_equal(series->gauges[time_series_n_bins(series) - 1].written_nbytes, 9);
	time_series_close(series);
}

/* Queues that are not distinguished still count bytes. */
TEST(queues_are_separate_up_to_a_limit)
{
	struct time_series *series = open_series();

	for (uint32_t queue = 0; queue < 2 * TIME_SERIES_MAX_QUEUES; queue++)
		time_series_add(series, STAGE_MERGE, queue + 1, series->begin_ns,
				series->begin_ns + MS, 1);
	assert_int_equal(series->n_queues, TIME_SERIES_MAX_QUEUES);
	assert_int_equal(sum(series->queues[TIME_SERIES_MAX_QUEUES - 1].busy_ns[STAGE_MERGE]), MS);
	assert_int_equal(sum(series->host.busy_ns[STAGE_MERGE]), 0);
	assert_int_equal(sum(series->nbytes[STAGE_MERGE]), 2 * TIME_SERIES_MAX_QUEUES);
	time_series_close(series);
}

TEST(earlier_begin_is_clamped)
{
	struct time_series *series = open_series();

	time_series_add(series, STAGE_READ, 0, series->begin_ns - 50 * MS, series->begin_ns + MS,
			0);
	assert_int_equal(sum(series->host.busy_ns[STAGE_READ]), MS);
	time_series_close(series);
}
