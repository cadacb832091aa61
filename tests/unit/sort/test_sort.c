/*
 * test_sort - sorts that are called without a command line
 */
#include "src/sort/sort.h"

#include <limits.h>

#include "src/merge/merge.h"
#include "src/sort/setup.h"
#include "tests/support/io_fixture.h"
#include "tests/support/captured_messages.h"
#include "tests/support/open_input.h"
#include "tests/support/unit_test.h"

enum { N = 1000 };

static char input_path[512], output_path[512];
static struct key key;

static int start(void **state)
{
	static uint64_t numbers[N];
	int r = fixture_start(state);

	if (r < 0)
		return r;
	for (uint64_t i = 0; i < N; i++)
		numbers[i] = i * 7919 % N;
	strcpy(input_path, fixture_path("input"));
	strcpy(output_path, fixture_path("output"));
	write_file(input_path, numbers, sizeof numbers);
	return key_parse_type("u64", &key);
}

static struct sort_spec spec_of(const char *const *input)
{
	static const char *const directories[] = { fixture_directory };
	struct sort_spec spec = SORT_SPEC_DEFAULTS;

	spec.inputs = input;
	spec.n_inputs = 1;
	spec.record_nbytes = 8;
	spec.keys = &key;
	spec.n_keys = 1;
	spec.output_path = output_path;
	spec.memory_nbytes = 1 << 20;
	spec.n_threads = 2;
	spec.temp_dirs = directories;
	spec.n_temp_dirs = 1;
	return spec;
}

/* Another process writes to the input after it was opened. */
static int overwrite_input(void *context, const struct sort_spec *spec, const struct layout *layout,
			   struct input *input)
{
	const int fd = open(input_path, O_WRONLY);
	struct stat before, now;

	(void)context, (void)spec, (void)layout, (void)input;
	assert_int_equal(fstat(fd, &before), 0);
	do { /* until the clock has ticked */
		assert_int_equal(pwrite(fd, "", 1, 0), 1);
		assert_int_equal(fstat(fd, &now), 0);
	} while (now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
		 now.st_ctim.tv_nsec == before.st_ctim.tv_nsec);
	return close(fd);
}

#define FIXTURE_TEST(claim) TEST_WITH(claim, start, fixture_finish)

FIXTURE_TEST(input_that_changes_while_it_is_checked_is_not_vouched_for)
{
	const struct sort_observer writer = { .on_opened = overwrite_input };
	const char *const input = input_path;
	struct sort_spec spec = spec_of(&input);
	struct sort_summary summary;
	uint64_t disorder;

	spec.check_only = true;
	assert_int_equal(sort_check(&spec, "gsort -c", &writer, NULL, &summary, &disorder), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), "changed after it was read"));
}

static int end_it(void *context, const struct sort_spec *spec, const struct layout *layout,
		  struct input *input)
{
	assert_int_equal(spec->record_nbytes, 8);
	assert_int_equal(layout->record_nbytes, 8);
	assert_int_equal(input_total_nbytes(input), 8 * N);
	*(bool *)context = true;
	return -EDOM;
}

FIXTURE_TEST(observer_sees_the_inputs_and_may_end_the_sort)
{
	const char *const input = input_path;
	const struct sort_spec spec = spec_of(&input);
	bool was_asked = false;
	const struct sort_observer observer = { .context = &was_asked, .on_opened = end_it };
	struct sort_summary summary;

	assert_int_equal(sort_run(&spec, &observer, NULL, &summary), -EDOM);
	assert_true(was_asked);
	assert_int_equal(access(output_path, F_OK), -1);
}

/* Wrapped to fail after that many calls. */
static unsigned n_headers_left = UINT_MAX;

int __real_input_make_header(const struct input *input, const struct output_header_params *params,
			     struct output_header *ret_header);
int __wrap_input_make_header(const struct input *input, const struct output_header_params *params,
			     struct output_header *ret_header);
int __wrap_input_make_header(const struct input *input, const struct output_header_params *params,
			     struct output_header *ret_header)
{
	return n_headers_left-- == 0 ? (fail)(-EDOM, "no header") :
				       __real_input_make_header(input, params, ret_header);
}

/* Wrapped to report one record less than was written. */
static bool miscounts;

int __real_merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			       uint64_t memory_nbytes, const struct sink *sink,
			       struct merge_result *ret_result);
int __wrap_merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			       uint64_t memory_nbytes, const struct sink *sink,
			       struct merge_result *ret_result);
int __wrap_merge_in_partitions(const struct job *job, struct run *const *runs, uint32_t n_runs,
			       uint64_t memory_nbytes, const struct sink *sink,
			       struct merge_result *ret_result)
{
	const int r =
		__real_merge_in_partitions(job, runs, n_runs, memory_nbytes, sink, ret_result);

	ret_result->n_items -= miscounts;
	return r;
}

/* Assert that a sort fails without an output. */
static void assert_sort_fails(bool verify, int expected, const char *said)
{
	const struct sort_observer no_observer = { 0 };
	const char *const input = input_path;
	struct sort_spec spec = spec_of(&input);
	struct sort_summary summary;

	spec.verify = verify;
	assert_int_equal(sort_run(&spec, &no_observer, NULL, &summary), expected);
	assert_non_null(strstr(captured_messages_error(), said));
	assert_int_equal(access(output_path, F_OK), -1);
}

/* The first call makes the header of the plan. */
FIXTURE_TEST(output_without_its_header_is_refused)
{
	n_headers_left = 1;
	assert_sort_fails(false, -EDOM, "no header");
	n_headers_left = UINT_MAX;
}

FIXTURE_TEST(output_with_a_wrong_number_of_records_is_refused)
{
	miscounts = true;
	assert_sort_fails(false, -EIO, "has 999 of 1000 records; the output was not written");
	miscounts = false;
}

/* Wrapped to read other numbers back. Number i is at position 8 * i. */
static const struct wrong_number {
	uint64_t position, number;
} * wrong_numbers;

enum { N_WRONG = 2 };

int __real_sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes);
int __wrap_sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes);
int __wrap_sort_output_read_at(void *context, uint64_t position, void *buffer, size_t nbytes)
{
	const int r = __real_sort_output_read_at(context, position, buffer, nbytes);

	for (int i = 0; i < N_WRONG; i++)
		if (wrong_numbers[i].position - position < nbytes)
			memcpy((char *)buffer + (wrong_numbers[i].position - position),
			       &wrong_numbers[i].number, 8);
	return r;
}

FIXTURE_TEST(output_that_is_read_back_with_other_records_is_refused)
{
	static const struct wrong_number exchanged[N_WRONG] = { { 4000, 501 }, { 4008, 500 } },
					 repeated[N_WRONG] = { { 0, 1 }, { 8, 1 } };

	wrong_numbers = exchanged;
	assert_sort_fails(true, -EIO, "data read back differs from the data written");
	wrong_numbers = repeated;
	assert_sort_fails(true, -EIO, "data read back differs from the data written");
}

static uint64_t min_block_nbytes; /* of a checkpoint */

uint64_t __wrap_checkpoint_block_nbytes(const struct checkpoint *checkpoint);
uint64_t __wrap_checkpoint_block_nbytes(const struct checkpoint *checkpoint)
{
	assert_non_null(checkpoint);
	return min_block_nbytes;
}

/* Return the memory in the message, in MiB. */
static uint64_t stated_memory_mib(void)
{
	const char *number = strstr(captured_messages_error(), "-S of at least ");

	assert_non_null(number);
	return strtoull(number + strlen("-S of at least "), NULL, 10);
}

/* Plan to resume with that memory. Returns the memory that the message requires, in MiB, or 0. */
static uint64_t plan_to_resume(unsigned n_threads, uint64_t memory_mib)
{
	const struct sort_observer no_observer = { 0 };
	const char *const input = input_path;
	struct sort_spec spec = spec_of(&input);
	struct setup setup = { .spec = &spec,
			       .checkpoint = (void *)input_path,
			       .explain_only = true };
	struct resolved_spec resolved;
	struct job job = { 0 };
	int r;

	spec.memory_nbytes = memory_mib << 20;
	spec.n_threads = n_threads;
	captured_messages_reset(true);
	assert_int_equal(setup_open_inputs(&spec, &no_observer, &resolved, &job), 0);
	r = setup_open(&setup, &job);
	assert_true(r == 0 || r == -E2BIG);
	setup_close(&job);
	setup_close_inputs(&resolved, &job);
	return r == 0 ? 0 : stated_memory_mib();
}

FIXTURE_TEST(too_little_memory_to_resume_is_reported)
{
	assert_int_equal(truncate(input_path, 64 << 20), 0);
	min_block_nbytes = 0;
	assert_int_equal(plan_to_resume(2, 1), 0);
	min_block_nbytes = 16 << 20;
	assert_true(plan_to_resume(2, 1) > 1);
	assert_non_null(strstr(captured_messages_error(), "checkpoint with blocks of 16 MiB"));
}

FIXTURE_TEST(reported_memory_to_resume_is_the_minimum)
{
	unsigned n_refused = 0;

	assert_int_equal(truncate(input_path, 1 << 30), 0);
	for (unsigned n_threads = 1; n_threads <= 64; n_threads *= 4)
		for (uint64_t mib = 1; mib <= 16; mib *= 2) {
			uint64_t enough;

			min_block_nbytes = mib << 20;
			enough = plan_to_resume(n_threads, 1);
			if (!enough)
				continue;
			assert_int_equal(plan_to_resume(n_threads, enough), 0);
			assert_int_equal(plan_to_resume(n_threads, enough - 1), enough);
			n_refused++;
		}
	assert_true(n_refused > 4);
}
