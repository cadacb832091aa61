/*
 * test_integrity - the checks of the output, which a correct program never fails
 */
#include "io/output/output.h"
#include "src/sort/sort_internal.h"

#include "tests/support/job_fixture.h"
#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

enum { N = 1000 };

static struct integrity integrity;

static int start(void **state)
{
	static encoded_key_t codes[N];
	const char *path;
	int r = fixture_start(state);

	if (r < 0)
		return r;
	job_start("u64", false, FIXTURE_UNIFIED_MEMORY);
	job.plan.n_queues = 2;
	for (uint64_t i = 0; i < N; i++)
		codes[i] = 3 * i + 1000;
	fixture_add_keys(codes, N);
	path = fixture_path("input");
	write_file(path, codes, 0);
	integrity =
		(struct integrity){ .totals = { .read = digest_encoded_keys(fixture_keys, N),
						.written = digest_encoded_keys(fixture_keys, N) },
				    .result.n_items = N };
	return input_open(&faulty_calls, &path, 1, layout.record_nbytes, &job.input);
}

static int finish(void **state)
{
	struct input *input = job.input;

	job_stop();
	input_close(input);
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

static int read_output(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	return output_read_at(context, position, buffer, nbytes);
}

/* Write the keys and verify them. */
static int verify_all(void)
{
	void *records = fixture_make_items(fixture_keys, N, false);
	struct output *output;
	int r;

	captured_messages_reset(true);
	assert_int_equal(output_open(&faulty_calls, fixture_path("output"), OUTPUT_SIZE_UNKNOWN,
				     &output),
			 0);
	assert_int_equal(output_write_at(output, 0, records, N * layout.record_nbytes), 0);
	r = integrity_verify(&integrity, &job, read_output, output, "output");
	output_abort(output);
	free(records);
	return r;
}

static void assert_verify_fails(void)
{
	assert_int_equal(verify_all(), -EIO);
	assert_non_null(
		strstr(captured_messages_error(), "data read back differs from the data written"));
}

FIXTURE_TEST(write_that_exchanges_records_is_seen_when_it_is_read_back)
{
	const encoded_key_t first = fixture_keys[500];

	assert_int_equal(verify_all(), 0);
	fixture_keys[500] = fixture_keys[501];
	fixture_keys[501] = first;
	assert_verify_fails();
	/* So that the first two records are equal, too. */
	fixture_keys[501] = fixture_keys[500];
	fixture_keys[500] = first;
	fixture_keys[0] = fixture_keys[1] + 1;
	integrity.totals.written = digest_encoded_keys(fixture_keys, N);
	assert_verify_fails();
}
