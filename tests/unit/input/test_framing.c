/*
 * test_framing - headers and incomplete records are not part of the stream
 */
#include "tests/support/input_fixture.h"
#include "tests/support/unit_test.h"

static struct input *open_framed(const char *const *paths, size_t n, struct framing framing)
{
	struct input *input;

	framing.record_nbytes = INPUT_RECORD_NBYTES;
	assert_int_equal(input_open_endpoints(&faulty_calls, paths, NULL, n, &framing, &input), 0);
	return input;
}

static void assert_header(const struct input *input, const void *expected, size_t nbytes)
{
	const struct output_header_params params = { 0 };
	struct output_header header;

	assert_int_equal(input_make_header(input, &params, &header), 0);
	assert_int_equal(header.nbytes, nbytes);
	assert_memory_equal(header.bytes, expected, nbytes);
	assert_false(output_header_has_count(&header));
	output_header_free(&header);
}

/* The stream is the records of two files: input_bytes[10, 100) and input_bytes[210, 300). */
static void assert_framed(struct input *input)
{
	unsigned char buffer[180 + INPUT_RECORD_NBYTES];
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

DIRECTORY_TEST(headers_and_trailers_of_pipes_are_skipped)
{
	struct framing framing = { .skip_nbytes = 10 };

	faults.max_transfer_nbytes = 7;
	for (framing.partial = PARTIAL_KEEP; framing.partial <= PARTIAL_DROP; framing.partial++)
		for (int first_is_pipe = 0; first_is_pipe < 2; first_is_pipe++) {
			const char *const piped[] = { "-", write_input_part("b", 200, 101) };
			const char *const last_piped[] = { write_input_part("a", 0, 102), "-" };
			struct pipe_feed f = { .offset = first_is_pipe ? 0 : 200,
					       .nbytes = first_is_pipe ? 102 : 101 };
			struct input *input;

			start_stdin_feed(&f);
			input = open_framed(first_is_pipe ? piped : last_piped, 2, framing);
			assert_framed(input);
			assert_int_equal(input_trailer(input, 0).nbytes,
					 framing.partial == PARTIAL_KEEP ? 2 : 0);
			assert_int_equal(input_trailer(input, 1).nbytes,
					 framing.partial == PARTIAL_KEEP ? 1 : 0);
			if (framing.partial == PARTIAL_KEEP)
				assert_memory_equal(input_trailer(input, 0).data, input_bytes + 100,
						    2);
			input_close(input);
			end_stdin_feed(&f);
		}
}

DIRECTORY_TEST(short_pipes_are_refused)
{
	const char *const paths[] = { "-" };
	const struct framing framing = { .skip_nbytes = 10 };
	struct pipe_feed f = { .nbytes = 9 };
	struct input *input;

	start_stdin_feed(&f);
	input = open_framed(paths, 1, framing);
	assert_int_equal(assert_input_read_fails(input), -EINVAL);
	assert_non_null(strstr(captured_messages_error(), "standard input: has 9 bytes"));
	input_close(input);
	end_stdin_feed(&f);
}

DIRECTORY_TEST(header_of_a_pipe_that_cannot_be_read_is_an_error)
{
	const char *const paths[] = { "-" };
	const struct framing framing = { .skip_nbytes = 10, .format = FORMAT_RAW };
	struct pipe_feed f = { .nbytes = 100 };
	struct input *input;

	start_stdin_feed(&f);
	input = open_framed(paths, 1, framing);
	faults.transfer_errno = EIO;
	assert_int_equal(assert_input_read_fails(input), -EIO);
	assert_non_null(strstr(captured_messages_error(), "read"));
	input_close(input);
	end_stdin_feed(&f);
}

DIRECTORY_TEST(growing_trailer_is_an_error)
{
	const char *const paths[] = { write_input_part("a", 0, 102) };
	const struct framing framing = { .skip_nbytes = 10, .partial = PARTIAL_DROP };
	struct input *input = open_framed(paths, 1, framing);

	write_input_part("a", 0, 103);
	assert_int_equal(assert_input_read_fails(input), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), "102 bytes before, 103 now"));
	input_close(input);
}

GROUP_FIXTURE(fill_input_bytes, NULL)
