/*
 * test_window_order.c - neighbours in two windows are compared, whatever the back end reports
 */
#include "src/merge/window.h"

#include "tests/support/job_fixture.h"
#include "tests/support/unit_test.h"

static struct window_order order;

static int start_with_unique(void **state, bool unique)
{
	int r = fixture_start(state);

	if (r < 0)
		return r;
	job_start("u64", unique, FIXTURE_UNIFIED_MEMORY);
	order = (struct window_order){ .job = &job };
	return window_order_open(&order);
}

static int start(void **state)
{
	return start_with_unique(state, false);
}

static int start_unique(void **state)
{
	return start_with_unique(state, true);
}

static int finish(void **state)
{
	window_order_close(&order);
	job_stop();
	return fixture_finish(state);
}

/*
 * Assign a window of 10 items between two keys, with n_disorders in it. Returns all disorders so
 * far.
 */
static uint64_t assign_window(uint64_t number, encoded_key_t first, encoded_key_t last,
			      uint64_t n_disorders)
{
	const struct window window = {
		.number = number,
		.first = &first,
		.last = &last,
		.result = { .n = 10, .n_disorders = n_disorders },
	};
	uint64_t position;

	assert_int_equal(window_order_assign(&order, &window, &position), 0);
	assert_int_equal(position, 10 * number);
	return order.result.n_disorders;
}

TEST_WITH(windows_out_of_order_are_seen, start, finish)
{
	assert_int_equal(assign_window(0, 100, 200, 0), 0);
	assert_int_equal(assign_window(1, 200, 300, 0), 0);
	assert_int_equal(assign_window(2, 299, 400, 0), 1);
	assert_int_equal(assign_window(3, 401, 500, 2), 3);
	assert_int_equal(assign_window(4, (encoded_key_t)1 << 100, (encoded_key_t)2 << 100, 0), 3);
	assert_int_equal(assign_window(5, 501, 600, 0), 4);
}

TEST_WITH(equal_neighbours_of_unique_windows_are_seen, start_unique, finish)
{
	assert_int_equal(assign_window(0, 100, 200, 0), 0);
	assert_int_equal(assign_window(1, 201, 300, 0), 0);
	assert_int_equal(assign_window(2, 300, 400, 0), 1);
	assert_int_equal(assign_window(3, 399, 500, 0), 2);
}

/* The next window is compared with the one before the empty one. */
TEST_WITH(empty_window_does_not_hide_disorder, start, finish)
{
	const struct window empty = { .number = 1 };
	uint64_t position;

	assert_int_equal(assign_window(0, 100, 200, 0), 0);
	assert_int_equal(window_order_assign(&order, &empty, &position), 0);
	order.result.n_items += 10; /* assign_window() counts windows */
	assert_int_equal(assign_window(2, 199, 300, 0), 1);
}
