/*
 * test_input_mapped - a mapped input is the same stream, and detects changes of its files
 */
#include "io/input/input.h"

#include "tests/support/input_fixture.h"
#include "tests/support/unit_test.h"

/* Two files of data, with an empty one between them. */
static struct input *open_two(void)
{
	const char *paths[] = { write_input_part("a", 0, 900), write_input_part("b", 0, 0),
				write_input_part("c", 900, N - 900) };

	process_setup(); /* cmocka installs its own handler for each test */
	return open_input(paths, 3);
}

/* Claim the stream in parts of nbytes, and compare the mapped files with input_bytes. */
static void assert_claims(struct input *input, size_t nbytes)
{
	uint64_t position, expected = 0;
	size_t n;

	do {
		assert_int_equal(input_claim_mapped(input, nbytes, &position, &n), 0);
		assert_int_equal(position, expected);
		expected += n;
	} while (n > 0);
	assert_int_equal(expected, N);
	assert_memory_equal(input_mapped_file(input, 0), input_bytes, 900);
	assert_null(input_mapped_file(input, 1));
	assert_memory_equal(input_mapped_file(input, 2), input_bytes + 900, N - 900);
	assert_int_equal(input_check_mapped(input), 0);
}

DIRECTORY_TEST(mapped_files_are_in_place)
{
	static const size_t sizes[] = { INPUT_RECORD_NBYTES, 300, 900, N - INPUT_RECORD_NBYTES, N };

	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
		struct input *input = open_two();

		assert_int_equal(input_map(input), 1);
		assert_claims(input, sizes[i]);
		input_close(input);
	}
}

DIRECTORY_TEST(mapped_input_can_be_read)
{
	struct input *input = open_two();

	assert_int_equal(input_map(input), 1);
	assert_stream(input, 300, N);
	input_close(input);
}

DIRECTORY_TEST(headers_are_not_part_of_it)
{
	const struct framing framing = { .record_nbytes = INPUT_RECORD_NBYTES,
					 .skip_nbytes = 10,
					 .partial = PARTIAL_DROP };
	const char *path = write_input_part("a", 0, 10 + 300 + 2);
	struct input *input;

	assert_int_equal(input_open_endpoints(&faulty_calls, &path, NULL, 1, &framing, &input), 0);
	assert_int_equal(input_map(input), 1);
	assert_int_equal(input_file_extent(input, 0).nbytes, 300);
	assert_memory_equal(input_mapped_file(input, 0), input_bytes + 10, 300);
	input_close(input);
}

DIRECTORY_TEST(unmappable_input_is_read)
{
	const char *many[INPUT_MAX_MAPPED + 1];
	struct input *input;
	int ends[2];

	for (int i = 0; i <= INPUT_MAX_MAPPED; i++)
		many[i] = write_input_part("a", 0, 300);
	input = open_input(many, INPUT_MAX_MAPPED + 1);
	assert_int_equal(input_map(input), 0);
	assert_null(input_mapped_file(input, 0));
	input_close(input);

	assert_int_equal(pipe(ends), 0);
	close(ends[1]);
	replace_stdin(ends[0]);
	input = open_input((const char *[]){ many[0], "-" }, 2);
	assert_int_equal(input_map(input), 0);
	input_close(input);
	restore_stdin();
	assert_false(captured_messages_has_error());
}

DIRECTORY_TEST(a_file_that_grows_is_named)
{
	struct input *input = open_two();
	uint64_t position;
	size_t n;

	assert_int_equal(input_map(input), 1);
	assert_int_equal(input_claim_mapped(input, 600, &position, &n), 0);
	write_input_part("a", 0, 903);
	assert_int_equal(input_claim_mapped(input, 600, &position, &n), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), fixture_path("a")));
	assert_non_null(strstr(captured_messages_error(), "903"));
	assert_int_equal(input_claim_mapped(input, 600, &position, &n), -EBUSY);
	input_close(input);
}

DIRECTORY_TEST(a_file_that_is_cut_is_named)
{
	struct input *input = open_two();
	const volatile unsigned char *seen;

	assert_int_equal(input_map(input), 1);
	assert_int_equal(truncate(fixture_path("c"), 0), 0);
	assert_int_equal(input_check_mapped(input), 0);
	seen = input_mapped_file(input, 2);
	assert_int_equal(seen[0], 0);
	assert_int_equal(input_check_mapped(input), -EBUSY);
	assert_non_null(strstr(captured_messages_error(), fixture_path("c")));
	assert_non_null(strstr(captured_messages_error(), "changed"));
	input_close(input);
}

/* Simulate a disk failure: the size is unchanged. */
DIRECTORY_TEST(a_file_that_was_unreadable_is_named)
{
	struct input *input = open_two();
	const volatile unsigned char *seen;

	assert_int_equal(input_map(input), 1);
	assert_int_equal(truncate(fixture_path("c"), 0), 0);
	seen = input_mapped_file(input, 2);
	assert_int_equal(seen[0], 0);
	write_input_part("c", 900, N - 900);
	assert_int_equal(input_check_mapped(input), -EIO);
	assert_non_null(strstr(captured_messages_error(), fixture_path("c")));
	input_close(input);
}

GROUP_FIXTURE(fill_input_bytes, NULL)
