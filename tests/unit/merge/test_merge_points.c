/*
 * test_merge_points - a merge that is taken up at one of its points writes what is left
 */
#include "src/merge/merge.h"

#include "tests/support/job_fixture.h"

enum { MOST_POINTS = 64 };

/* A point, copied. */
struct kept_point {
	code_t key, last;
	struct merge_result result;
};

/* An output that remembers the points. */
struct pointed {
	struct output output; /* first: write_output() gets it */
	struct kept_point points[MOST_POINTS];
	size_t n_points;
};

static int note_point(void *context, const struct merge_point *point)
{
	struct pointed *pointed = context;
	struct kept_point *kept = &pointed->points[pointed->n_points];

	if (pointed->n_points == MOST_POINTS)
		return 0;
	memcpy(&kept->key, point->key, sizeof kept->key);
	memcpy(&kept->last, point->last, sizeof kept->last);
	kept->result = point->result;
	pointed->n_points++;
	return 0;
}

static void merge_from(const struct merge_point *start, struct pointed *pointed,
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
		.point_interval = n_all / 20,
		.start = start,
	};

	pointed->output =
		(struct output){ .lock = PTHREAD_MUTEX_INITIALIZER, .fails_at = UINT64_MAX };
	assert_int_equal(merge_runs(&job, store.runs, (uint32_t)store.n, 0, &sink, ret_result), 0);
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

/* Merge once, then from each point. */
static void check_points(struct runs_shape shape)
{
	static struct pointed first, again;
	struct merge_result whole, rest;

	first.n_points = 0;
	fill_runs(shape);
	merge_from(NULL, &first, &whole);
	assert_true(first.n_points >= 5);
	for (size_t i = 0; i < first.n_points; i++) {
		const struct kept_point *kept = &first.points[i];
		const struct merge_point start = { &kept->key, &kept->last, kept->result };
		const size_t nbytes = kept->result.n_items * layout.record_nbytes;

		again.n_points = 0;
		renew_runs(shape, i);
		merge_from(&start, &again, &rest);
		assert_int_equal(rest.n_items, whole.n_items);
		assert_int_equal(again.output.n_items, whole.n_items - kept->result.n_items);
		assert_memory_equal(first.output.records + nbytes, again.output.records + nbytes,
				    whole.n_items * layout.record_nbytes - nbytes);
		assert_true(digest_equal(rest.ledger.written, whole.ledger.written));
		assert_true(digest_equal(rest.ledger.dropped, whole.ledger.dropped));
		assert_int_equal(rest.n_disorders, 0);
		free(again.output.records);
	}
	free(first.output.records);
}

static void start(bool unique)
{
	fixture_start(NULL);
	job_start("u64", unique, MEMORY_UNIFIED);
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
	check_points((struct runs_shape){ 6, 40000, UINT64_MAX });
}

static void equal_records_are_on_one_side_of_a_point(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 40000, 300 });
}

/* Windows of a merge that is taken up end within the equals of the point, too. */
static void equals_of_a_point_that_fill_windows_are_all_written(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 40000, 20 });
}

static void single_value_has_no_point(void **state)
{
	static struct pointed pointed;
	struct merge_result result;

	(void)state;
	start(false);
	fill_runs((struct runs_shape){ 6, 40000, 1 });
	pointed.n_points = 0;
	merge_from(NULL, &pointed, &result);
	assert_int_equal(pointed.n_points, 0);
	free(pointed.output.records);
}

static void dropped_equals_are_counted_once(void **state)
{
	(void)state;
	start(true);
	check_points((struct runs_shape){ 6, 40000, 100000 });
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
