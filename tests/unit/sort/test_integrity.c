/*
 * test_integrity - the checks of the output, which a correct program never fails
 */
#include "src/sort/sort_internal.h"

#include "tests/support/io_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

enum { N = 1000 };

static struct integrity integrity;
static struct layout layout;
static struct job job;

static int start(void **state)
{
	const struct digest digest = { .sum = 42, .n_records = N };
	const char *path;
	int r = fixture_start(state);

	if (r < 0)
		return r;
	path = fixture_path("input");
	write_file(path, "", 0);
	layout = (struct layout){ .record_nbytes = 8 };
	job = (struct job){ .layout = &layout, .limit = UINT64_MAX };
	integrity = (struct integrity){ .totals = { .read = digest, .written = digest },
					.result.n_items = N };
	return input_open(&faulty_calls, &path, 1, layout.record_nbytes, &job.input);
}

static int finish(void **state)
{
	input_close(job.input);
	return fixture_finish(state);
}

static void assert_check_fails(const char *message)
{
	captured_messages_reset(true);
	assert_int_equal(integrity_check(&integrity, &job), -EIO);
	assert_non_null(strstr(captured_messages_error(), message));
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, finish)

FIXTURE_TEST(what_is_written_is_what_was_read)
{
	assert_int_equal(integrity_check(&integrity, &job), 0);
	integrity.totals.read.sum++;
	assert_check_fails("internal error: read 1000 records");
	integrity.totals.dropped = (struct digest){ .sum = 1 };
	assert_int_equal(integrity_check(&integrity, &job), 0);
	integrity.totals.read.n_records++;
	assert_check_fails("internal error: read 1001 records");
	integrity.totals.dropped.n_records++;
	assert_int_equal(integrity_check(&integrity, &job), 0);
	integrity.result.n_disorders = 1;
	assert_check_fails("1 records of the output are out of order");
}

FIXTURE_TEST(what_is_counted_is_what_was_read)
{
	layout.projection.has_count = true;
	integrity.result.n_counted = N - 1;
	assert_check_fails("but counted 999");
	job.limit = 10; /* limited: the number of items is not checked */
	assert_int_equal(integrity_check(&integrity, &job), 0);
	job.limit = UINT64_MAX;
	integrity.result.n_counted = N;
	assert_int_equal(integrity_check(&integrity, &job), 0);
}

/* Mapped records that changed are not an internal error. */
FIXTURE_TEST(indirect_records_may_have_changed)
{
	layout.kind = LAYOUT_INDIRECT;
	assert_int_equal(integrity_check(&integrity, &job), 0);
	integrity.totals.read.sum++;
	assert_int_equal(integrity_check(&integrity, &job), -EBUSY);
	integrity.totals.read.sum--;
	integrity.result.n_disorders = 1;
	assert_int_equal(integrity_check(&integrity, &job), -EBUSY);
}
