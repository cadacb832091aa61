/*
 * test_integrity - the last line of defence: what nothing in a right program sets off
 */
#include "io/output/output.h"
#include "src/sort/integrity.h"

#include "tests/support/job_fixture.h"

enum { N = 1000 };

static struct account account;

static int start(void **state)
{
	static code_t codes[N];
	const char *path;
	int r = fixture_start(state);

	if (r < 0)
		return r;
	job_start("u64", false, MEMORY_UNIFIED);
	job.plan.n_lanes = 2;
	for (uint64_t i = 0; i < N; i++)
		codes[i] = 3 * i + 1000;
	remember_input(codes, N);
	path = path_of("input");
	write_file(path, codes, 0);
	account = (struct account){ .ledger = { .read = digest_codes(all, N),
						.written = digest_codes(all, N) },
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
	messages_reset(true);
	assert_int_equal(account_check(&account, &job), -EIO);
	assert_non_null(strstr(messages_last(), message));
}

static void what_is_written_is_what_was_read(void **state)
{
	(void)state;
	assert_int_equal(account_check(&account, &job), 0);
	account.ledger.read.sum++;
	assert_check_fails("internal error: read 1000 records");
	account.ledger.dropped = (struct digest){ .sum = 1 };
	assert_int_equal(account_check(&account, &job), 0);
	account.ledger.read.n_records++;
	assert_check_fails("internal error: read 1001 records");
	account.ledger.dropped.n_records++;
	assert_int_equal(account_check(&account, &job), 0);
	account.result.n_disorders = 1;
	assert_check_fails("1 records of the result are out of order");
}

static void what_is_counted_is_what_was_read(void **state)
{
	(void)state;
	layout.intake.has_count = true;
	account.result.n_counted = N - 1;
	assert_check_fails("but counted 999");
	job.limit = 10; /* what is beyond it is not counted */
	assert_int_equal(account_check(&account, &job), 0);
	job.limit = UINT64_MAX;
	account.result.n_counted = N;
	assert_int_equal(account_check(&account, &job), 0);
}

/* Records that changed under a mapping are the user's doing, and no internal error. */
static void what_is_referred_to_may_have_changed(void **state)
{
	(void)state;
	layout.kind = LAYOUT_REFERENCES;
	assert_int_equal(account_check(&account, &job), 0);
	account.ledger.read.sum++;
	assert_int_equal(account_check(&account, &job), -EBUSY);
	account.ledger.read.sum--;
	account.result.n_disorders = 1;
	assert_int_equal(account_check(&account, &job), -EBUSY);
}

static int read_output(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	return output_read_at(context, position, buffer, nbytes);
}

/* Write the codes, and read them back with --verify. */
static int verify_all(void)
{
	void *records = items_of(all, N, false);
	struct output *output;
	int r;

	messages_reset(true);
	assert_int_equal(
		output_open(&faulty_calls, path_of("output"), OUTPUT_SIZE_UNKNOWN, &output), 0);
	assert_int_equal(output_write_at(output, 0, records, N * layout.record_nbytes), 0);
	r = account_verify(&account, &job, read_output, output, "output");
	output_abort(output);
	free(records);
	return r;
}

static void assert_verify_fails(void)
{
	assert_int_equal(verify_all(), -EIO);
	assert_non_null(strstr(messages_last(), "what was read back is not what was written"));
}

static void write_that_exchanges_records_is_seen_when_it_is_read_back(void **state)
{
	const code_t first = all[500];

	(void)state;
	assert_int_equal(verify_all(), 0);
	all[500] = all[501];
	all[501] = first;
	assert_verify_fails();
	/* Also the first two. */
	all[501] = all[500];
	all[500] = first;
	all[0] = all[1] + 1;
	account.ledger.written = digest_codes(all, N);
	assert_verify_fails();
}

/* In order, but another record. */
static void write_that_changes_a_record_is_seen_when_it_is_read_back(void **state)
{
	(void)state;
	all[500]++;
	assert_verify_fails();
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, start, finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(what_is_written_is_what_was_read),
		FIXTURE(what_is_counted_is_what_was_read),
		FIXTURE(what_is_referred_to_may_have_changed),
		FIXTURE(write_that_exchanges_records_is_seen_when_it_is_read_back),
		FIXTURE(write_that_changes_a_record_is_seen_when_it_is_read_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
