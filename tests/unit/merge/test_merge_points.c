/*
 * test_merge_points - a merge that is taken up at one of its points writes what is left
 */
#include "src/merge/partitions.h"

#include <errno.h>

#include "src/merge/checkpoint_hooks.h"
#include "tests/support/job_fixture.h"

enum {
	MAX_TEST_POINTS = 64,
	MAX_TEST_PARTITIONS = 5,
	/* Such that ranges have windows enough for some points. */
	WINDOWS_NBYTES = 16 << 20,
	WINDOW_NBYTES = 64 << 10,
};

/* A point, copied. */
struct logged_point {
	encoded_key_t key, first, last;
	struct merge_result result;
};

struct logged_partition {
	encoded_key_t key;
	uint64_t position;
	struct logged_point points[MAX_TEST_POINTS];
	size_t n_points;
};

/* An output that remembers the ranges and their points. */
struct partition_log {
	struct recorded_output output; /* first: write_output() gets it */
	struct logged_partition partitions[MAX_TEST_PARTITIONS];
	uint32_t n_partitions;
};

static int save_test_partitions(void *context, const struct partition_desc *partitions, uint32_t n)
{
	struct partition_log *point_log = context;

	assert_in_range(n, 1, MAX_TEST_PARTITIONS);
	assert_null(partitions[0].key);
	for (uint32_t i = 0; i < n; i++) {
		struct logged_partition *kept = &point_log->partitions[i];

		*kept = (struct logged_partition){ .position = partitions[i].position };
		if (i)
			memcpy(&kept->key, partitions[i].key, sizeof kept->key);
	}
	point_log->n_partitions = n;
	return 0;
}

/* By one thread for each range. */
static int save_test_point(void *context, uint32_t partition, const struct restore_point *point)
{
	struct partition_log *point_log = context;
	struct logged_partition *in = &point_log->partitions[partition];
	struct logged_point *kept = &in->points[in->n_points];

	if (in->n_points == MAX_TEST_POINTS)
		return 0;
	memcpy(&kept->key, point->key, sizeof kept->key);
	memcpy(&kept->first, point->first, sizeof kept->first);
	memcpy(&kept->last, point->last, sizeof kept->last);
	kept->result = point->result;
	in->n_points++;
	return 0;
}

/* ranges: NULL: from the beginning. */
static int merge_from(const struct partition_desc *partitions, struct partition_log *point_log,
		      struct merge_result *ret_result)
{
	const struct sink sink = {
		.context = point_log,
		.takes_records = true,
		.stage = STAGE_WRITE,
		.item_nbytes = layout.record_nbytes,
		.write = recorded_output_write,
		.cancel = recorded_output_cancel,
		.save_restore_point = save_test_point,
		.save_partitions = save_test_partitions,
		.restore_point_interval = fixture_n_keys / 20,
		.resume_partitions = partitions,
		.n_resume_partitions = point_log->n_partitions,
	};

	point_log->output = (struct recorded_output){ .lock = PTHREAD_MUTEX_INITIALIZER,
						      .failing_window = UINT64_MAX };
	return merge_in_partitions(&job, fixture_run_list.runs, (uint32_t)fixture_run_list.n,
				   WINDOWS_NBYTES, &sink, ret_result);
}

/* n_runs runs of n records with n_values different keys, every third of them resident. */
struct runs_shape {
	size_t n_runs, n;
	uint64_t n_values;
};

static void fill_runs(struct runs_shape shape)
{
	encoded_key_t *codes = malloc(shape.n * sizeof *codes);

	assert_non_null(codes);
	for (size_t k = 0; k < shape.n_runs; k++) {
		for (size_t i = 0; i < shape.n; i++)
			codes[i] = scramble(i, k) % shape.n_values;
		add_run(k % 3 == 2 ? TIER_RESIDENT : TIER_SPILLED, codes, shape.n);
	}
	free(codes);
}

/* All that went in, in other runs: sorted pieces of n_in_run, the last of them resident. */
static void split_runs_differently(size_t n_in_run)
{
	const size_t n = fixture_n_keys;
	encoded_key_t *codes = malloc(n * sizeof *codes);

	assert_non_null(codes);
	memcpy(codes, fixture_keys, n * sizeof *codes);
	fixture_n_keys = 0;
	for (size_t i = 0; i < n; i += n_in_run)
		add_run(i + n_in_run < n ? TIER_SPILLED : TIER_RESIDENT, codes + i,
			n - i < n_in_run ? n - i : n_in_run);
	free(codes);
}

/* A merge gives the space of its runs back: others for the next, divided otherwise if may be. */
static void renew_runs(struct runs_shape shape, size_t i)
{
	run_list_free(&fixture_run_list);
	fixture_run_list = (struct run_list){ 0 };
	if (job.unique) {
		fixture_n_keys = 0;
		fill_runs(shape);
	} else {
		split_runs_differently(fixture_n_keys / 5 + i);
	}
}

/* The first of the merge's points that range i is to go on from, in turn, or its beginning. */
static const struct logged_point *choose_point(const struct logged_partition *partition, uint32_t i,
					       size_t turn)
{
	const size_t at = (turn + i) % (partition->n_points + 1);

	return at < partition->n_points ? &partition->points[at] : NULL;
}

/* What each range has left is what it was. */
static void check_remainder(const struct partition_log *first, const struct partition_log *again,
			    const struct partition_desc *partitions, uint64_t n_items)
{
	uint64_t n_written = 0;

	for (uint32_t i = 0; i < first->n_partitions; i++) {
		const struct restore_point *start = partitions[i].restore_point;
		const uint64_t end = i + 1 < first->n_partitions ? partitions[i + 1].position :
								   n_items;
		const uint64_t at = partitions[i].position + (start ? start->result.n_items : 0);

		assert_memory_equal(first->output.records + at * layout.record_nbytes,
				    again->output.records + at * layout.record_nbytes,
				    (end - at) * layout.record_nbytes);
		n_written += at - partitions[i].position;
	}
	assert_int_equal(again->output.n_items, n_items - n_written);
}

static void resume_merge(const struct partition_log *first, size_t turn,
			 const struct merge_result *whole)
{
	static struct partition_log again;
	struct partition_desc partitions[MAX_TEST_PARTITIONS];
	struct restore_point starts[MAX_TEST_PARTITIONS];
	struct merge_result remainder;

	for (uint32_t i = 0; i < first->n_partitions; i++) {
		const struct logged_partition *partition = &first->partitions[i];
		const struct logged_point *kept = choose_point(partition, i, turn);

		partitions[i] = (struct partition_desc){ i ? &partition->key : NULL,
							 partition->position, NULL };
		if (!kept)
			continue;
		starts[i] = (struct restore_point){ &kept->key, &kept->first, &kept->last,
						    kept->result };
		partitions[i].restore_point = &starts[i];
	}
	again.n_partitions = first->n_partitions;
	assert_int_equal(merge_from(partitions, &again, &remainder), 0);
	assert_int_equal(remainder.n_items, whole->n_items);
	check_remainder(first, &again, partitions, whole->n_items);
	assert_true(digest_equal(remainder.totals.written, whole->totals.written));
	assert_true(digest_equal(remainder.totals.dropped, whole->totals.dropped));
	assert_int_equal(remainder.n_disorders, 0);
	free(again.output.records);
}

/* Merge once, then from the points of all ranges. */
static void check_points(struct runs_shape shape, uint32_t n_partitions)
{
	static struct partition_log first;
	struct merge_result whole;
	size_t max = 0;

	job.plan_request.n_partitions = job.plan.n_partitions = n_partitions;
	fill_runs(shape);
	assert_int_equal(merge_from(NULL, &first, &whole), 0);
	assert_int_equal(first.n_partitions, n_partitions);
	for (uint32_t i = 0; i < n_partitions; i++)
		if (first.partitions[i].n_points > max)
			max = first.partitions[i].n_points;
	assert_true(max >= 5);
	for (size_t turn = 0; turn <= max; turn++) {
		renew_runs(shape, turn);
		resume_merge(&first, turn, &whole);
	}
	free(first.output.records);
}

static void start(bool unique)
{
	fixture_start(NULL);
	job_start("u64", unique, FIXTURE_UNIFIED_MEMORY);
	job.plan.window_nbytes = WINDOW_NBYTES;
}

static int stop(void **state)
{
	job_stop();
	fixture_run_list = (struct run_list){ 0 };
	return fixture_finish(state);
}

static void merge_resumes_from_any_point(void **state)
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
	static struct partition_log point_log;
	struct merge_result result;

	(void)state;
	start(false);
	fill_runs((struct runs_shape){ 6, 40000, 1 });
	assert_int_equal(merge_from(NULL, &point_log, &result), 0);
	assert_int_equal(point_log.partitions[0].n_points, 0);
	free(point_log.output.records);
}

static void dropped_equals_are_counted_once(void **state)
{
	(void)state;
	start(true);
	check_points((struct runs_shape){ 6, 40000, 100000 }, 1);
}

static void each_partition_resumes_from_its_point(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 100000, UINT64_MAX }, 3);
}

static void recorded_partitions_split_no_key(void **state)
{
	(void)state;
	start(false);
	check_points((struct runs_shape){ 6, 100000, 300 }, 4);
}

/* What the merge says to whoever keeps runs. */
struct refusal {
	uint64_t position, n_recorded, n_items;
};

static int record_mismatch(void *context, uint64_t position, uint64_t n_recorded, uint64_t n_items)
{
	*(struct refusal *)context = (struct refusal){ position, n_recorded, n_items };
	return -EDOM;
}

/* A record more in front of the second than there was. */
static void partition_of_another_length_is_refused(void **state)
{
	const struct runs_shape shape = { 6, 40000, UINT64_MAX };
	static struct partition_log first;
	struct refusal refusal = { 0 };
	const struct checkpoint_hooks hooks = { .context = &refusal,
						.report_mismatch = record_mismatch };
	struct partition_desc partitions[2];
	struct merge_result result;

	(void)state;
	start(false);
	job.plan_request.n_partitions = job.plan.n_partitions = 2;
	fill_runs(shape);
	assert_int_equal(merge_from(NULL, &first, &result), 0);
	assert_int_equal(first.n_partitions, 2);
	free(first.output.records);
	renew_runs(shape, 0);
	for (uint32_t i = 0; i < 2; i++)
		partitions[i] = (struct partition_desc){ i ? &first.partitions[i].key : NULL,
							 first.partitions[i].position + i, NULL };
	job.checkpoint_hooks = &hooks;
	assert_int_equal(merge_from(partitions, &first, &result), -EDOM);
	assert_int_equal(refusal.position, 0);
	assert_int_equal(refusal.n_items, partitions[1].position - 1);
	assert_int_equal(refusal.n_recorded, partitions[1].position);
	free(first.output.records);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(merge_resumes_from_any_point, stop),
		cmocka_unit_test_teardown(equal_records_are_on_one_side_of_a_point, stop),
		cmocka_unit_test_teardown(equals_of_a_point_that_fill_windows_are_all_written,
					  stop),
		cmocka_unit_test_teardown(single_value_has_no_point, stop),
		cmocka_unit_test_teardown(dropped_equals_are_counted_once, stop),
		cmocka_unit_test_teardown(each_partition_resumes_from_its_point, stop),
		cmocka_unit_test_teardown(recorded_partitions_split_no_key, stop),
		cmocka_unit_test_teardown(partition_of_another_length_is_refused, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
