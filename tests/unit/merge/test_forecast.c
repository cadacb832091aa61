/*
 * test_forecast.c - blocks come in the order of their first keys, in windows that end at splitters
 */
#include "src/merge/window.h"

#include "tests/support/job_fixture.h"
#include "tests/support/reference_sort.h"
#include "tests/support/unit_test.h"

enum { BLOCK = 4 };

static int start(void **state)
{
	const int r = fixture_start(state);

	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	return r;
}

static int finish(void **state)
{
	job_stop();
	return fixture_finish(state);
}

/* Add a run of blocks with the given first keys, each with BLOCK items. */
static void add_blocks(const encoded_key_t *first_keys, size_t n)
{
	encoded_key_t codes[64 * BLOCK] = { 0 };

	for (size_t i = 0; i < n * BLOCK; i++)
		codes[i] = first_keys[i / BLOCK];
	run_list_add(&fixture_run_list, make_spilled_run_in_blocks(codes, n * BLOCK, BLOCK));
}

#define ADD_BLOCKS(...)                                                                            \
	add_blocks((const encoded_key_t[]){ __VA_ARGS__ },                                         \
		   sizeof((encoded_key_t[]){ __VA_ARGS__ }) / sizeof(encoded_key_t))

static struct forecast *open_forecast(void)
{
	const struct item_loader loader = { .layout = &layout };
	struct forecast *forecast;

	assert_int_equal(forecast_open(fixture_run_list.runs, (uint32_t)fixture_run_list.n, &loader,
				       &forecast),
			 0);
	return forecast;
}

/*
 * Check how many blocks of the first two runs the next window takes, and that it ends at (key,
 * run).
 */
static void assert_window(struct forecast *forecast, uint64_t quota, uint64_t n_first,
			  uint64_t n_second, encoded_key_t key, uint32_t run)
{
	uint64_t n_taken[2];
	struct splitter splitter;

	assert_true(forecast_next_window(forecast, quota, n_taken, &splitter));
	assert_int_equal(n_taken[0], n_first);
	assert_int_equal(n_taken[1], n_second);
	assert_memory_equal(splitter.key, &key, sizeof key);
	assert_int_equal(splitter.run, run);
}

static void assert_last_window(struct forecast *forecast, uint64_t quota, uint64_t n_first,
			       uint64_t n_second)
{
	uint64_t n_taken[2];
	struct splitter splitter;

	assert_false(forecast_next_window(forecast, quota, n_taken, &splitter));
	assert_int_equal(n_taken[0], n_first);
	assert_int_equal(n_taken[1], n_second);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

/* The example of forecasting. */
FIXTURE_TEST(blocks_are_taken_in_the_order_of_their_first_keys)
{
	struct forecast *forecast;

	ADD_BLOCKS(1, 8, 9);
	ADD_BLOCKS(2, 3, 8);
	forecast = open_forecast();
	assert_window(forecast, BLOCK, 1, 0, 2, 1);
	assert_window(forecast, BLOCK, 0, 1, 3, 1);
	assert_window(forecast, BLOCK, 0, 1, 8, 0);
	assert_window(forecast, BLOCK, 1, 0, 8, 1);
	assert_window(forecast, BLOCK, 0, 1, 9, 0);
	assert_last_window(forecast, BLOCK, 1, 0);
	forecast_close(forecast);
}

FIXTURE_TEST(equal_keys_are_taken_from_the_earlier_run_first)
{
	struct forecast *forecast;

	ADD_BLOCKS(5, 5, 5);
	ADD_BLOCKS(5, 5);
	forecast = open_forecast();
	assert_window(forecast, 2 * BLOCK, 2, 0, 5, 0);
	assert_window(forecast, 2 * BLOCK, 1, 1, 5, 1);
	assert_last_window(forecast, 2 * BLOCK, 0, 1);
	forecast_close(forecast);
}

FIXTURE_TEST(window_keeps_within_its_quota_but_takes_a_block)
{
	struct forecast *forecast;

	ADD_BLOCKS(1, 3, 5, 7);
	ADD_BLOCKS(2, 4, 6, 8);
	forecast = open_forecast();
	assert_window(forecast, 0, 1, 0, 2, 1);
	assert_window(forecast, 3 * BLOCK - 1, 1, 1, 4, 1);
	assert_window(forecast, 3 * BLOCK, 1, 2, 7, 0);
	assert_last_window(forecast, 1000, 1, 1);
	forecast_close(forecast);
}

FIXTURE_TEST(one_run_with_all_small_keys_goes_first)
{
	struct forecast *forecast;

	ADD_BLOCKS(100, 101, 102);
	ADD_BLOCKS(1, 2, 3, 4);
	forecast = open_forecast();
	assert_window(forecast, 4 * BLOCK, 0, 4, 100, 0);
	assert_last_window(forecast, 4 * BLOCK, 3, 0);
	forecast_close(forecast);
}

FIXTURE_TEST(empty_runs_take_no_part)
{
	struct forecast *forecast;

	add_blocks(NULL, 0);
	ADD_BLOCKS(1, 2);
	forecast = open_forecast();
	assert_window(forecast, BLOCK, 0, 1, 2, 1);
	assert_last_window(forecast, BLOCK, 0, 1);
	assert_last_window(forecast, BLOCK, 0, 0);
	forecast_close(forecast);
}

FIXTURE_TEST(no_runs_make_one_empty_window)
{
	struct forecast *forecast = open_forecast();
	uint64_t n_taken[1];
	struct splitter splitter;

	assert_false(forecast_next_window(forecast, BLOCK, n_taken, &splitter));
	forecast_close(forecast);
	forecast_close(NULL);
}

/* Take all blocks one by one: keys never go down, and every block comes once. */
FIXTURE_TEST(many_runs_are_taken_in_order)
{
	enum { N_RUNS = 33, N_BLOCKS = 20 };
	struct forecast *forecast;
	struct splitter splitter;
	uint64_t n_taken[N_RUNS], n_blocks[N_RUNS] = { 0 };
	encoded_key_t last = 0;
	bool more;

	for (uint64_t run = 0; run < N_RUNS; run++) {
		encoded_key_t keys[N_BLOCKS];

		for (uint64_t i = 0; i < N_BLOCKS; i++)
			keys[i] = scramble(i, run) % 50;
		reference_sort_16(keys, N_BLOCKS);
		add_blocks(keys, N_BLOCKS);
	}
	forecast = open_forecast();
	do {
		more = forecast_next_window(forecast, BLOCK, n_taken, &splitter);
		for (uint64_t run = 0; run < N_RUNS; run++) {
			if (!n_taken[run])
				continue;
			assert_int_equal(n_taken[run], 1);
			assert_true(run_first_key(fixture_run_list.runs[run], n_blocks[run]) >=
				    last);
			last = run_first_key(fixture_run_list.runs[run], n_blocks[run]);
			n_blocks[run]++;
		}
	} while (more);
	for (uint64_t run = 0; run < N_RUNS; run++)
		assert_int_equal(n_blocks[run], N_BLOCKS);
	forecast_close(forecast);
}

/* Whole keys of blocks; load number fails_at, from 1, fails. */
struct failing_loads {
	uint64_t fails_at, n_loads;
};

static int load_or_fail(void *context, struct run *run, uint64_t block, void *item)
{
	struct failing_loads *volumes = context;

	(void)run;
	memset(item, (int)block, layout.item_nbytes);
	return ++volumes->n_loads == volumes->fails_at ? -EIO : 0;
}

/* Take all windows of runs that tie. Returns 0 or the error. */
static int take_all_windows(struct failing_loads *volumes)
{
	const struct item_loader loader = { &layout, load_or_fail, volumes };
	struct forecast *forecast;
	struct splitter splitter;
	uint64_t n_taken[2];
	int r = forecast_open(fixture_run_list.runs, (uint32_t)fixture_run_list.n, &loader,
			      &forecast);

	if (r < 0)
		return r;
	do
		r = forecast_next_window(forecast, 2 * BLOCK, n_taken, &splitter);
	while (r == 1);
	forecast_close(forecast);
	return r;
}

FIXTURE_TEST(failed_key_load_is_an_error)
{
	struct failing_loads none = { 0 };

	ADD_BLOCKS(5, 5, 5, 5);
	ADD_BLOCKS(5, 5, 5, 5);
	layout.kind = LAYOUT_RECORDS;
	layout.item_keys.key_nbytes = 2 * sizeof(encoded_key_t);
	layout.item_nbytes = 2 * sizeof(encoded_key_t);
	assert_int_equal(take_all_windows(&none), 0);
	assert_true(none.n_loads > 0);
	for (uint64_t i = 1; i <= none.n_loads; i++)
		assert_int_equal(take_all_windows(&(struct failing_loads){ .fails_at = i }), -EIO);
}

/* Whole keys that alternate between the blocks of two runs. */
static int load_alternately(void *context, struct run *run, uint64_t block, void *item)
{
	(void)context;
	memset(item, (int)(2 * block + (run == fixture_run_list.runs[1])),
	       2 * sizeof(encoded_key_t));
	return 0;
}

FIXTURE_TEST(blocks_that_tie_in_memory_are_taken_in_the_order_of_whole_keys)
{
	struct key_field field = { .nbytes = 2 * sizeof(encoded_key_t) };
	struct layout records = { .kind = LAYOUT_RECORDS,
				  .item_nbytes = field.nbytes,
				  .item_keys = { &field, 1, 2 * sizeof(encoded_key_t) } };
	const struct item_loader loader = { &records, load_alternately, NULL };
	struct forecast *forecast;
	struct splitter splitter;
	uint64_t n_taken[2];

	ADD_BLOCKS(5, 5, 5);
	ADD_BLOCKS(5, 5, 5);
	assert_int_equal(forecast_open(fixture_run_list.runs, 2, &loader, &forecast), 0);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(forecast_next_window(forecast, BLOCK, n_taken, &splitter), i < 5);
		assert_int_equal(n_taken[i % 2], 1);
		assert_int_equal(n_taken[1 - i % 2], 0);
	}
	forecast_close(forecast);
}
