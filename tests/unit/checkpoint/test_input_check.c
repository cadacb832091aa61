/*
 * test_input_check - inputs that differ from the runs are detected, whatever their times
 */
#include "src/checkpoint/checkpoint_state.h"

#include "tests/support/captured_messages.h"
#include "tests/support/open_input.h"
#include "tests/support/record_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/support/unit_test.h"

enum { N_RUNS = 3, RECORD_NBYTES = 24, N_RECORDS = 50000 };

static char path[2][32];
static unsigned char *records;
static struct checkpoint_run runs[N_RUNS];
static struct layout layout;
static const struct checkpoint_state runs_state = { .runs = runs, .n_runs = N_RUNS };
static struct job job = { .layout = &layout, .plan_request.n_threads = 3 };

/* Runs of about a third of the records each. */
static void describe_runs(void)
{
	static const uint64_t ends[] = { 0, 20001, 20002, N_RECORDS };
	void *items = malloc(N_RECORDS * layout.item_nbytes);

	assert_non_null(items);
	for (int i = 0; i < N_RUNS; i++) {
		const uint64_t n = ends[i + 1] - ends[i];
		const unsigned char *first = records + ends[i] * RECORD_NBYTES;
		struct digest digest = { 0 };

		if (layout.kind == LAYOUT_RECORDS)
			layout_project_records(&layout, first, n, ends[i], items, &digest);
		runs[i].origin =
			(struct run_origin){ { .read = digest }, n * RECORD_NBYTES, RECORD_NBYTES };
	}
	free(items);
}

static void write_part(const char *to, size_t offset, size_t nbytes)
{
	const int fd = open(to, O_WRONLY | O_TRUNC);

	assert_int_equal(write(fd, records + offset, nbytes), nbytes);
	close(fd);
}

/* The records in two files; the second one begins within a run. */
static void open_input(void)
{
	static const char *const paths[] = { path[0], path[1] };
	const size_t first_nbytes = 30000 * RECORD_NBYTES;

	write_part(path[0], 0, first_nbytes);
	write_part(path[1], first_nbytes, N_RECORDS * RECORD_NBYTES - first_nbytes);
	assert_int_equal(input_open(&syscalls_plain, paths, 2, RECORD_NBYTES, &job.input), 0);
}

static int start(void **state)
{
	(void)state;
	records = malloc(N_RECORDS * RECORD_NBYTES);
	if (!records)
		return -1;
	for (size_t i = 0; i < N_RECORDS * RECORD_NBYTES; i++)
		records[i] = (unsigned char)(i * 7 + i / 1000);
	for (int i = 0; i < 2; i++) {
		strcpy(path[i], "/tmp/gsort-test.XXXXXX");
		close(mkstemp(path[i]));
	}
	return 0;
}

static int finish(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		unlink(path[i]);
	free(records);
	return 0;
}

static void with_layout(struct layout_params request)
{
	request.record_nbytes = RECORD_NBYTES;
	layout = make_layout_of_keys(request, KEYS("3:u32"));
	describe_runs();
}

static int check(uint64_t *ret_first_record)
{
	struct input_change change = { 0 };
	int r;

	open_input();
	r = checkpoint_state_check_input(&runs_state, &job, NULL, &change);
	input_close(job.input);
	if (r == -EBADMSG) {
		assert_string_equal(change.path, path[0]);
		assert_string_equal(change.unit, "record");
		*ret_first_record = change.position;
	}
	return r;
}

TEST(inputs_that_are_the_same_are_fine)
{
	const struct layout_params requests[] = { { 0 },
						  { .argsort = true },
						  { .keys_only = true } };
	uint64_t bad;

	for (int i = 0; i < 3; i++) {
		with_layout(requests[i]);
		assert_int_equal(check(&bad), 0);
		layout_free(&layout);
	}
}

/* The first and the last byte of each run. */
TEST(byte_that_has_changed_is_found_in_its_run)
{
	static const size_t places[N_RUNS][2] = { { 0, 20001 },
						  { 20001, 20002 },
						  { 20002, N_RECORDS } };
	uint64_t bad;

	with_layout((struct layout_params){ 0 });
	for (size_t i = 0; i < N_RUNS; i++)
		for (int j = 0; j < 2; j++) {
			unsigned char *byte = &records[places[i][j] * RECORD_NBYTES - (j == 1)];

			*byte ^= 1;
			assert_int_equal(check(&bad), -EBADMSG);
			assert_int_equal(bad, places[i][0]);
			*byte ^= 1;
		}
	assert_int_equal(check(&bad), 0);
	layout_free(&layout);
}

TEST(unreadable_input_is_not_reported_as_changed)
{
	struct input_change change;
	int r;

	with_layout((struct layout_params){ 0 });
	open_input();
	assert_int_equal(truncate(path[1], 0), 0);
	captured_messages_reset(true);
	r = checkpoint_state_check_input(&runs_state, &job, NULL, &change);
	input_close(job.input);
	assert_true(r < 0);
	assert_int_not_equal(r, -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), path[1]));
	layout_free(&layout);
}

static int count_run(void *context, uint64_t position, const struct run_origin *origin,
		     struct input_change *ret_change)
{
	(void)position, (void)origin, (void)ret_change;
	++*(unsigned *)context;
	return 0;
}

/* The holes of a sparse file are not cached. */
TEST(runs_that_are_not_cached_are_checked_within_the_budget)
{
	unsigned n = 0;
	const struct input_check counter = { count_run, &n };
	const uint64_t run_nbytes = 48 << 20;

	with_layout((struct layout_params){ 0 });
	assert_int_equal(truncate(path[1], 0), 0);
	assert_int_equal(truncate(path[1], (off_t)(N_RUNS * run_nbytes)), 0);
	assert_int_equal(input_open(&syscalls_plain, (const char *const[]){ path[1] }, 1,
				    RECORD_NBYTES, &job.input),
			 0);
	for (size_t i = 0; i < N_RUNS; i++)
		runs[i].origin.nbytes = run_nbytes;
	assert_int_equal(checkpoint_state_check_input(&runs_state, &job, &counter, NULL), 0);
	assert_int_equal(n, 1);
	input_close(job.input);
	layout_free(&layout);
}

GROUP_FIXTURE(start, finish)
