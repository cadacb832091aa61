/*
 * test_framing - headers and incomplete records are no part of the stream
 */
#include "tests/support/input_fixture.h"

static bool has_no_memory;

void *__real_calloc(size_t n, size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes);
void *__wrap_calloc(size_t n, size_t nbytes)
{
	return has_no_memory ? NULL : __real_calloc(n, nbytes);
}

static struct input *open_framed(const char *const *paths, size_t n, struct framing framing)
{
	struct input *input;

	framing.record_nbytes = R;
	assert_int_equal(input_open_framed(&faulty_calls, paths, n, &framing, &input), 0);
	return input;
}

static void assert_header(const struct input *input, const void *expected, size_t nbytes)
{
	const struct header_wish wish = { 0 };
	struct header header;

	assert_int_equal(input_make_header(input, &wish, &header), 0);
	assert_int_equal(header.nbytes, nbytes);
	assert_memory_equal(header.bytes, expected, nbytes);
	assert_false(header_counts(&header));
	header_free(&header);
}

static void refuse_framed(const char *path, struct framing framing)
{
	struct input *input;

	messages_reset(true);
	framing.record_nbytes = R;
	assert_int_equal(input_open_framed(&faulty_calls, &path, 1, &framing, &input), -EINVAL);
	assert_non_null(strstr(messages_last(), path));
}

/* The stream is the records of two files: input_bytes[10, 100) and input_bytes[210, 300). */
static void assert_framed(struct input *input)
{
	unsigned char buffer[180 + R];
	uint64_t position;
	size_t done = 0, n;

	do {
		assert_int_equal(input_read(input, buffer + done, 21, &position, &n), 0);
		assert_int_equal(position, done);
		done += n;
	} while (n == 21);
	assert_int_equal(done, 180);
	assert_memory_equal(buffer, input_bytes + 10, 90);
	assert_memory_equal(buffer + 90, input_bytes + 210, 90);
	assert_header(input, input_bytes, 10);
}

static void headers_and_tails_are_no_part_of_the_stream(void **state)
{
	const char *const paths[] = { part("a", 0, 102), part("b", 200, 101) };
	const struct framing framing = { .skip_nbytes = 10, .partial = PARTIAL_KEEP };
	unsigned char buffer[90];
	struct input *input;

	(void)state;
	faults.most_nbytes = 7;
	input = open_framed(paths, 2, framing);
	assert_int_equal(input_total_nbytes(input), 180);
	assert_framed(input);
	assert_int_equal(input_read_at(input, 45, buffer, 90), 0);
	assert_memory_equal(buffer, input_bytes + 55, 45);
	assert_memory_equal(buffer + 45, input_bytes + 210, 45);
	assert_int_equal(input_tail(input, 0).nbytes, 2);
	assert_memory_equal(input_tail(input, 0).data, input_bytes + 100, 2);
	assert_int_equal(input_tail(input, 1).nbytes, 1);
	assert_memory_equal(input_tail(input, 1).data, input_bytes + 300, 1);
	input_close(input);
}

static void headers_and_tails_of_pipes_are_none_either(void **state)
{
	struct framing framing = { .skip_nbytes = 10 };

	(void)state;
	faults.most_nbytes = 7;
	for (framing.partial = PARTIAL_KEEP; framing.partial <= PARTIAL_DROP; framing.partial++)
		for (int first_is_pipe = 0; first_is_pipe < 2; first_is_pipe++) {
			const char *const piped[] = { "-", part("b", 200, 101) };
			const char *const last_piped[] = { part("a", 0, 102), "-" };
			struct feed f = { .from = first_is_pipe ? 0 : 200,
					  .nbytes = first_is_pipe ? 102 : 101 };
			struct input *input;

			start_feed_of_stdin(&f);
			input = open_framed(first_is_pipe ? piped : last_piped, 2, framing);
			assert_framed(input);
			assert_int_equal(input_tail(input, 0).nbytes,
					 framing.partial == PARTIAL_KEEP ? 2 : 0);
			assert_int_equal(input_tail(input, 1).nbytes,
					 framing.partial == PARTIAL_KEEP ? 1 : 0);
			if (framing.partial == PARTIAL_KEEP)
				assert_memory_equal(input_tail(input, 0).data, input_bytes + 100,
						    2);
			input_close(input);
			end_feed_of_stdin(&f);
		}
}

static void files_that_are_framed_otherwise_are_refused(void **state)
{
	const struct framing longer = { .skip_nbytes = 10, .partial = PARTIAL_DROP };
	const struct framing whole = { .skip_nbytes = 10 };
	const char *const paths[] = { part("empty_body", 0, 10) };
	struct input *input;

	(void)state;
	refuse_framed(part("short", 0, 9), longer);
	assert_non_null(strstr(messages_last(), "9 bytes"));
	refuse_framed(part("empty", 0, 0), longer);
	refuse_framed(part("odd", 0, 102), whole);
	assert_non_null(strstr(messages_last(), "92 bytes behind the header"));
	input = open_framed(paths, 1, whole);
	assert_int_equal(input_total_nbytes(input), 0);
	assert_header(input, input_bytes, 10);
	input_close(input);
}

static void header_without_memory_is_an_error(void **state)
{
	const char *const paths[] = { part("a", 0, 10) };
	const struct header_wish wish = { 0 };
	struct input *input = open_framed(paths, 1, (struct framing){ .skip_nbytes = 10 });
	struct header header = { 0 };

	(void)state;
	has_no_memory = true;
	assert_int_equal(input_make_header(input, &wish, &header), -ENOMEM);
	has_no_memory = false;
	input_close(input);
}

static void short_pipes_are_refused(void **state)
{
	const char *const paths[] = { "-" };
	const struct framing framing = { .skip_nbytes = 10 };
	struct feed f = { .nbytes = 9 };
	struct input *input;

	(void)state;
	start_feed_of_stdin(&f);
	input = open_framed(paths, 1, framing);
	assert_int_equal(read_refused(input), -EINVAL);
	assert_non_null(strstr(messages_last(), "standard input: 9 bytes"));
	input_close(input);
	end_feed_of_stdin(&f);
}

static void header_of_a_pipe_that_cannot_be_read_is_an_error(void **state)
{
	const char *const paths[] = { "-" };
	const struct framing framing = { .skip_nbytes = 10, .format = FORMAT_RAW };
	struct feed f = { .nbytes = 100 };
	struct input *input;

	(void)state;
	start_feed_of_stdin(&f);
	input = open_framed(paths, 1, framing);
	faults.transfer_errno = EIO;
	assert_int_equal(read_refused(input), -EIO);
	assert_non_null(strstr(messages_last(), "read"));
	input_close(input);
	end_feed_of_stdin(&f);
}

static void growing_tail_is_an_error(void **state)
{
	const char *const paths[] = { part("a", 0, 102) };
	const struct framing framing = { .skip_nbytes = 10, .partial = PARTIAL_DROP };
	struct input *input = open_framed(paths, 1, framing);

	(void)state;
	part("a", 0, 103);
	assert_int_equal(read_refused(input), -EBUSY);
	assert_non_null(strstr(messages_last(), "102 bytes at first, 103 now"));
	input_close(input);
}

int main(void)
{
#define FIXTURE(name) cmocka_unit_test_setup_teardown(name, fixture_start, fixture_finish)
	const struct CMUnitTest tests[] = {
		FIXTURE(headers_and_tails_are_no_part_of_the_stream),
		FIXTURE(headers_and_tails_of_pipes_are_none_either),
		FIXTURE(files_that_are_framed_otherwise_are_refused),
		FIXTURE(header_without_memory_is_an_error),
		FIXTURE(short_pipes_are_refused),
		FIXTURE(header_of_a_pipe_that_cannot_be_read_is_an_error),
		FIXTURE(growing_tail_is_an_error),
	};

	fill_pattern(input_bytes, sizeof input_bytes, 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
