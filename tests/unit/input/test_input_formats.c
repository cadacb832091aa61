/*
 * test_input_formats - inputs whose format is known when their content is read; probing a pipe
 */
#include <zstd.h>

#include "io/codec/zst.h"
#include "tests/support/input_fixture.h"
#include "tests/support/unit_test.h"

static const char xz[] = "\xfd\x37zXZ\0\0\4.............";
enum { XZ_NBYTES = 21 };

/* Make standard input a pipe with these bytes. */
static void fill_stdin(const void *bytes, size_t nbytes)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], bytes, nbytes), nbytes);
	close(ends[1]);
	replace_stdin(ends[0]);
}

static unsigned n_allocations, failing_allocation; /* counted from 1; 0: none */

void *__real_malloc(size_t nbytes);
void *__wrap_malloc(size_t nbytes);
void *__wrap_malloc(size_t nbytes)
{
	return ++n_allocations == failing_allocation ? NULL : __real_malloc(nbytes);
}

/* Whichever allocation fails. */
DIRECTORY_TEST(unprobed_pipe_is_not_taken_for_records)
{
	const char *const path = "-";
	char record[INPUT_RECORD_NBYTES];
	unsigned failing = 0;

	do {
		struct input *input;
		uint64_t position;
		size_t n;
		int r;

		fill_stdin(xz, XZ_NBYTES);
		input = open_input(&path, 1);
		n_allocations = 0;
		failing_allocation = ++failing;
		r = input_read(input, record, INPUT_RECORD_NBYTES, &position, &n);
		failing_allocation = 0;
		assert_int_equal(r, n_allocations < failing ? -EINVAL : -ENOMEM);
		input_close(input);
		restore_stdin();
	} while (n_allocations >= failing);
	assert_true(failing > 2);
}

DIRECTORY_TEST(skippable_frames_without_content_are_refused_in_the_end)
{
	static uint32_t numbers[3000] = { 0x184d2a50, sizeof numbers - 8 };
	struct input *input;

	fill_stdin(numbers, sizeof numbers);
	input = open_input((const char *const[]){ "-" }, 1);
	captured_messages_reset(true);
	assert_int_equal(assert_input_read_fails(input), -EBADMSG);
	assert_non_null(strstr(captured_messages_error(), "has no content"));
	input_close(input);
	restore_stdin();
}

DIRECTORY_TEST(probing_loses_nothing)
{
	struct pipe_feed f = { .nbytes = N };
	struct input *input;

	for (size_t nbytes = INPUT_RECORD_NBYTES; nbytes < 2 * N;
	     nbytes = nbytes * 3 + INPUT_RECORD_NBYTES) {
		start_stdin_feed(&f);
		input = open_input((const char *const[]){ "-" }, 1);
		assert_true(input_memory_nbytes(input, 1, true) > 1 << 20);
		assert_int_equal(input_probe_pipe(input, true), 0);
		assert_true(input_memory_nbytes(input, 1, true) < 1 << 20);
		assert_stream(input, nbytes, N);
		input_close(input);
		end_stdin_feed(&f);
	}
}

/* The writer of the second pipe may wait until the first pipe has been read. */
DIRECTORY_TEST(only_one_pipe_is_probed)
{
	const char *const paths[] = { fixture_path("first"), fixture_path("second") };
	struct pipe_feed f = { .fifo = paths[0], .nbytes = 90 };
	struct input *input;

	assert_int_equal(mkfifo(paths[0], 0600), 0);
	assert_int_equal(mkfifo(paths[1], 0600), 0);
	start_pipe_feed(&f);
	input = open_input(paths, 2);
	assert_int_equal(input_probe_pipe(input, false), 0); /* does not open */
	assert_int_equal(input_probe_pipe(input, true), 0);
	assert_true(input_memory_nbytes(input, 1, true) >
		    1 << 20); /* the second may be compressed */
	pthread_join(f.thread, NULL);
	input_close(input);
}

/* An indexed file has a size, but a pipe behind it makes the input a stream. */
DIRECTORY_TEST(compressed_file_with_an_index_is_read_before_a_pipe)
{
	const char *const paths[] = { fixture_path("indexed.zst"), "-" };
	struct zst_index index = { 0 };
	unsigned char stored[400], *table;
	size_t n = ZSTD_compress(stored, 200, input_bytes, 90, 1), table_nbytes;
	struct input *input;

	assert_int_equal(zst_index_add(&index, (uint32_t)n, 90), 0);
	assert_int_equal(zst_index_format(&index, &table, &table_nbytes), 0);
	memcpy(stored + n, table, table_nbytes);
	write_file(paths[0], stored, n + table_nbytes);
	fill_stdin(input_bytes + 90, 120);
	input = open_input(paths, 2);
	/* Each reader has its own decoder. */
	assert_true(input_memory_nbytes(input, 2, false) > input_memory_nbytes(input, 1, false));
	assert_stream(input, 30, 210);
	input_close(input);
	restore_stdin();
	zst_index_free(&index);
	free(table);
}

GROUP_FIXTURE(fill_input_bytes, NULL)
