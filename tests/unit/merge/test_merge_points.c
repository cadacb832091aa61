/*
 * test_merge_points - a merge that is taken up at one of its points writes what is left
 */
#include "src/merge/partitions.h"

#include <errno.h>

#include "src/merge/checkpoint_hooks.h"
#include "tests/support/job_fixture.h"

enum {
	MOST_POINTS = 64,
	MOST_RANGES = 5,
	/* Such that ranges have windows enough for some points. */
	WINDOWS_NBYTES = 16 << 20,
	WINDOW_NBYTES = 64 << 10,
};

/* A point, copied. */
struct kept_point {
	code_t key, first, last;
	struct merge_result result;
};

struct kept_range {
	code_t key;
	uint64_t position;
	struct kept_point points[MOST_POINTS];
	size_t n_points;
};

/* An output that remembers the ranges and their points. */
struct pointed {
	struct output output; /* first: write_output() gets it */
	struct kept_range ranges[MOST_RANGES];
	uint32_t n_ranges;
};

static int note_ranges(void *context, const struct merge_range *ranges, uint32_t n)
{
	struct pointed *pointed = context;

	assert_in_range(n, 1, MOST_RANGES);
	assert_null(ranges[0].key);
	for (uint32_t i = 0; i < n; i++) {
		struct kept_range *kept = &pointed->ranges[i];

		*kept = (struct kept_range){ .position = ranges[i].position };
		if (i)
			memcpy(&kept->key, ranges[i].key, sizeof kept->key);
	}
	pointed->n_ranges = n;
	return 0;
}

/* By one thread for each range. */
static int note_point(void *context, uint32_t range, const struct merge_point *point)
{
	struct pointed *pointed = context;
	struct kept_range *in = &pointed->ranges[range];
	struct kept_point *kept = &in->points[in->n_points];

	if (in->n_points == MOST_POINTS)
		return 0;
	memcpy(&kept->key, point->key, sizeof kept->key);
	memcpy(&kept->first, point->first, sizeof kept->first);
	memcpy(&kept->last, point->last, sizeof kept->last);
	kept->result = point->result;
	in->n_points++;
	return 0;
}

/* ranges: NULL: from the beginning. */
static int merge_from(const struct merge_range *ranges, struct pointed *pointed,
		      struct merge_result *ret_result)
{
	const struct sink sink = {
		.context = pointed,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = layout.record_nbytes,
		.write = write_output,
		.cancel = cancel_output,
		.point = note_point,
		.note_ranges = note_ranges,
		.point_interval = n_all / 20,
		.ranges = ranges,
		.n_ranges = pointed->n_ranges,
	};

	pointed->output =
		(struct output){ .lock = PTHREAD_MUTEX_INITIALIZER, .fails_at = UINT64_MAX };
	return merge_in_ranges(&job, store.runs, (uint32_t)store.n, WINDOWS_NBYTES, &sink,
			       ret_result);
}

/* n_runs runs of n records with n_values different keys, every third of them resident. */
struct runs_shape {
	size_t n_runs, n;
	uint64_t n_values;
};

static void fill_runs(struct runs_shape shape)
{
	code_t *codes = malloc(shape.n * sizeof *codes);

	assert_non_null(codes);
	for (size_t k = 0; k < shape.n_runs; k++) {
		for (size_t i = 0; i < shape.n; i++)
			codes[i] = scramble(i, k) % shape.n_values;
		add_run(k % 3 == 2 ? RESIDENT : SPILLED, codes, shape.n);
	}
	free(codes);
}

/* All that went in, in other runs: sorted pieces of n_in_run, the last of them resident. */
static void divide_otherwise(size_t n_in_run)
{
	const size_t n = n_all;
	code_t *codes = malloc(n * sizeof *codes);

	assert_non_null(codes);
	memcpy(codes, all, n * sizeof *codes);
	n_all = 0;
	for (size_t i = 0; i < n; i += n_in_run)
		add_run(i + n_in_run < n ? SPILLED : RESIDENT, codes + i,
			n - i < n_in_run ? n - i : n_in_run);
	free(codes);
}

/* A merge gives the space of its runs back: others for the next, divided otherwise if may be. */
static void renew_runs(struct runs_shape shape, size_t i)
{
	run_store_free(&store);
	store = (struct run_store){ 0 };
	if (job.unique) {
		n_all = 0;
		fill_runs(shape);
	} else {
		divide_otherwise(n_all / 5 + i);
	}
}

/* The first of the merge's points that range i is to go on from, in turn, or its beginning. */
static const struct kept_point *choose_point(const struct kept_range *range, uint32_t i,
					     size_t turn)
{
	const size_t at = (turn + i) % (range->n_points + 1);

	return at < range->n_points ? &range->points[at] : NULL;
}

/* What each range has left is what it was. */
static void check_rest(const struct pointed *first, const struct pointed *again,
		       const struct merge_range *ranges, uint64_t n_items)
{
	uint64_t n_written = 0;

	for (uint32_t i = 0; i < first->n_ranges; i++) {
		const struct merge_point *start = ranges[i].start;
		const uint64_t end = i + 1 < first->n_ranges ? ranges[i + 1].position : n_items;
		const uint64_t at = ranges[i].position + (start ? start->result.n_items : 0);

		assert_memory_equal(first->output.records + at * layout.record_nbytes,
				    again->output.records + at * layout.record_nbytes,
				    (end - at) * layout.record_nbytes);
		n_written += at - ranges[i].position;
	}
	assert_int_equal(again->output.n_items, n_items - n_written);
}

static void take_up(const struct pointed *first, size_t turn, const struct merge_result *whole)
{
	static struct pointed again;
	struct merge_range ranges[MOST_RANGES];
	struct merge_point starts[MOST_RANGES];
	struct merge_result rest;

	for (uint32_t i = 0; i < first->n_ranges; i++) {
		const struct kept_range *range = &first->ranges[i];
		const struct kept_point *kept = choose_point(range, i, turn);

		ranges[i] = (struct merge_range){ i ? &range->key : NULL, range->position, NULL };
		if (!kept)
			continue;
		starts[i] =
			(struct merge_point){ &kept->key, &kept->first, &kept->last, kept->result };
		ranges[i].start = &starts[i];
	}
	again.n_ranges = first->n_ranges;
	assert_int_equal(merge_from(ranges, &again, &rest), 0);
	assert_int_equal(rest.n_items, whole->n_items);
	check_rest(first, &again, ranges, whole->n_items);
	assert_true(digest_equal(rest.ledger.written, whole->ledger.written));
	assert_true(digest_equal(rest.ledger.dropped, whole->ledger.dropped));
	assert_int_equal(rest.n_disorders, 0);
	free(again.output.records);
}

/* Merge once, then from the points of all ranges. */
static void check_points(struct runs_shape shape, uint32_t n_ranges)
{
	static struct pointed first;
	struct merge_result whole;
	size_t most = 0;

	job.request.n_ranges = job.plan.n_ranges = n_ranges;
	fill_runs(shape);
	assert_int_equal(merge_from(NULL, &first, &whole), 0);
	assert_int_equal(first.n_ranges, n_ranges);
	for (uint32_t i = 0; i < n_ranges; i++)
		if (first.ranges[i].n_points > most)
			most = first.ranges[i].n_points;
	assert_true(most >= 5);
	for (size_t turn = 0; turn <= most; turn++) {
		renew_runs(shape, turn);
		take_up(&first, turn, &whole);
	}
	free(first.output.records);
}

static void start(bool unique)
{
	fixture_start(NULL);
	job_start("u64", unique, MEMORY_UNIFIED);
	job.plan.window_nbytes = WINDOW_NBYTES;
}

static int stop(void **state)
{
	job_stop();
	store = (struct run_store){ 0 };
	return fixture_finish(state);
}

static void merge_goes_on_from_any_point(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 40000, UINT64_MAX }, 1);
}

static void equal_records_are_on_one_side_of_a_point(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 40000, 300 }, 1);
}

/* Windows of a merge that is taken up end within the equals of the point, too. */
static void equals_of_a_point_that_fill_windows_are_all_written(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 40000, 20 }, 1);
}

static void single_value_has_no_point(void **state)
{
	static struct pointed pointed;
	struct merge_result result;

	(void)state;
	start(false);
	fill_runs((struct runs_shape){ 6, 40000, 1 });
	assert_int_equal(merge_from(NULL, &pointed, &result), 0);
	assert_int_equal(pointed.ranges[0].n_points, 0);
	free(pointed.output.records);
}

static void dropped_equals_are_counted_once(void **state)
{
	(void)state;
	start(true);
	check_points((struct runs_shape){ 6, 40000, 100000 }, 1);
}

static void each_range_goes_on_from_its_own_point(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 100000, UINT64_MAX }, 3);
}

static void ranges_that_are_noted_divide_no_key(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 100000, 300 }, 4);
}

/* What the merge says to whoever keeps runs. */
struct refusal {
	uint64_t position, n_noted, n_items;
};

static int note_refusal(void *context, uint64_t position, uint64_t n_noted, uint64_t n_items)
{
	*(struct refusal *)context = (struct refusal){ position, n_noted, n_items };
	return -EDOM;
}

/* A record more in front of the second than there was. */
static void range_that_has_another_length_is_refused(void **state)
{
	const struct runs_shape shape = { 6, 40000, UINT64_MAX };
	static struct pointed first;
	struct refusal refusal = { 0 };
	const struct keeper keeper = { .context = &refusal, .refuse = note_refusal };
	struct merge_range ranges[2];
	struct merge_result result;

	(void)state;
	start(false);
	job.request.n_ranges = job.plan.n_ranges = 2;
	fill_runs(shape);
	assert_int_equal(merge_from(NULL, &first, &result), 0);
	assert_int_equal(first.n_ranges, 2);
	free(first.output.records);
	renew_runs(shape, 0);
	for (uint32_t i = 0; i < 2; i++)
		ranges[i] = (struct merge_range){ i ? &first.ranges[i].key : NULL,
						  first.ranges[i].position + i, NULL };
	job.keeper = &keeper;
	assert_int_equal(merge_from(ranges, &first, &result), -EDOM);
	assert_int_equal(refusal.position, 0);
	assert_int_equal(refusal.n_items, ranges[1].position - 1);
	assert_int_equal(refusal.n_noted, ranges[1].position);
	free(first.output.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(merge_goes_on_from_any_point, stop),
		cmocka_unit_test_teardown(equal_records_are_on_one_side_of_a_point, stop),
		cmocka_unit_test_teardown(equals_of_a_point_that_fill_windows_are_all_written,
					  stop),
		cmocka_unit_test_teardown(single_value_has_no_point, stop),
		cmocka_unit_test_teardown(dropped_equals_are_counted_once, stop),
		cmocka_unit_test_teardown(each_range_goes_on_from_its_own_point, stop),
		cmocka_unit_test_teardown(ranges_that_are_noted_divide_no_key, stop),
		cmocka_unit_test_teardown(range_that_has_another_length_is_refused, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
