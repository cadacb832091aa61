/*
 * test_output_in_place.c - pipes, devices and standard output
 */
#include <sys/resource.h>

#include "src/base/thread.h"
#include "tests/support/output_fixture.h"
#include "tests/support/unit_test.h"

/* Read a FIFO to its end, slowly, and compare. */
DIRECTORY_TEST(pipe_holds_more_than_usual)
{
	const char *path = fixture_path("fifo");
	struct output *output;
	int fd;

	assert_int_equal(mkfifo(path, 0600), 0);
	fd = open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(fcntl(fd, F_SETPIPE_SZ, 1 << 16), 1 << 16);
	output = open_output(path, N);
	assert_int_equal(fcntl(fd, F_GETPIPE_SZ), 1 << 20);
	output_abort(output);
	close(fd);
}

DIRECTORY_TEST(null_device_takes_writers_in_any_order)
{
	struct output *output = open_output("/dev/null", N);

	assert_false(output_is_ordered(output));
	assert_int_equal(output_write_at(output, N - 1, output_bytes, 1), 0);
	output_cancel(output);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -ECANCELED);

	output = open_output("/dev/null", N);
	assert_int_equal(write_with_threads(output), 0);
	assert_int_equal(output_commit(output, OUTPUT_SYNC_ALL), 0);
}

DIRECTORY_TEST(cancel_wakes_waiting_writers)
{
	struct output *output = open_output("/dev/full", N);
	struct output_writer writer = { .output = output, .first = 1, .stride = N };

	assert_int_equal(thread_start(write_strided, &writer, 0, &writer.thread), 0);
	usleep(10000);
	output_cancel(output);
	pthread_join(writer.thread, NULL);
	assert_int_equal(writer.r, -ECANCELED);
	assert_int_equal(output_write_at(output, 0, output_bytes, 1), -ECANCELED);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), -ECANCELED);
	assert_false(captured_messages_has_error());
}

/* Write with `fd` as standard output, at its position, and commit or abort. */
static void write_to_stdout(int fd, bool commit, bool expect_ordered)
{
	const int saved = dup(STDOUT_FILENO);
	struct output *output;
	bool is_ordered, is_atomic;
	int r = 0;

	fflush(stdout);
	dup2(fd, STDOUT_FILENO);
	output = open_output(NULL, 2 * N);
	is_ordered = output_is_ordered(output);
	is_atomic = output_is_atomic(output);
	r = write_with_threads(output);
	if (commit)
		r = output_commit(output, OUTPUT_UNSYNCED);
	else
		output_abort(output);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(r, 0);
	assert_int_equal(is_ordered, expect_ordered);
	assert_false(is_atomic);
}

/* Writes of odd sizes from odd addresses. */
DIRECTORY_TEST(standard_output_keeps_o_direct)
{
	const int fd = open(fixture_path("f"), O_RDWR | O_CREAT | O_DIRECT, 0600);

	if (fd < 0)
		skip();
	write_to_stdout(fd, true, false);
	assert_true(fcntl(fd, F_GETFL) & O_DIRECT);
	write_to_stdout(fd, false, false);
	assert_true(fcntl(fd, F_GETFL) & O_DIRECT);
	close(fd);
	assert_true(file_contains(fixture_path("f"), output_bytes, N));
}

DIRECTORY_TEST(aborted_standard_output_gives_space_back)
{
	const char *path = fixture_path("f");
	const int fd = open(path, O_RDWR | O_CREAT, 0600);

	assert_int_equal(write(fd, "a", 1), 1);
	write_to_stdout(fd, false, false);
	close(fd);
	assert_true(file_contains(path, "a", 1));
}

/* Open a file like `> file`; its size is set later. */
static struct output *open_for_writing(const char *path, uint64_t nbytes)
{
	const int fd = open(path, O_WRONLY | O_CREAT, 0600);
	const struct endpoint endpoint = { .kind = ENDPOINT_DESCRIPTOR, .fd = fd };
	struct output *output;

	assert_int_equal(output_open_endpoint(&faulty_calls, path, endpoint, OUTPUT_SIZE_UNKNOWN,
					      &output),
			 0);
	close(fd);
	output_update_expected_size(output, nbytes);
	return output;
}

enum { DIVIDED = 24 << 20, LONG_IN_PLACE_NBYTES = 1 << 20 };

static unsigned char divided_data[DIVIDED];

/* Write both halves alternately. Returns how much was written through mappings. */
static uint64_t write_halves(struct output *output)
{
	struct file_writer_stats stats = { 0 };

	output_set_n_writers(output, 4);
	for (size_t at = 0; at < DIVIDED / 2; at += LONG_IN_PLACE_NBYTES)
		for (size_t half = at; half < DIVIDED; half += DIVIDED / 2)
			assert_int_equal(output_write_at(output, half, divided_data + half,
							 LONG_IN_PLACE_NBYTES),
					 0);
	output_add_io_stats(output, &stats);
	return stats.mmap_nbytes;
}

DIRECTORY_TEST(file_that_is_open_for_writing_only_may_be_mapped)
{
	const char *path = fixture_path("f");
	struct output *output = open_for_writing(path, DIVIDED);

	fill_pattern(divided_data, DIVIDED, 1);
	assert_true(write_halves(output) > 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(path, divided_data, DIVIDED));

	/* Like `1<>`: the file had that size before, and nothing was preallocated. */
	fill_pattern(divided_data, DIVIDED, 2);
	output = open_for_writing(path, DIVIDED);
	assert_int_equal(write_halves(output), 0);
	assert_int_equal(output_commit(output, OUTPUT_UNSYNCED), 0);
	assert_true(file_contains(path, divided_data, DIVIDED));
}

/* With and without a known size. */
DIRECTORY_TEST(failed_output_in_place_is_truncated)
{
	static const uint64_t nbytes[] = { N, OUTPUT_SIZE_UNKNOWN };
	const char *path = fixture_path("f");
	struct output *output;
	int fd;

	for (size_t i = 0; i < 2; i++) {
		write_file(path, "", 0);
		output = open_for_writing(path, nbytes[i]);
		assert_int_equal(output_write_at(output, 0, output_bytes, N / 2), 0);
		output_abort(output);
		assert_true(file_contains(path, "", 0));
	}
	/* A message through a standard error that shares the position stays. */
	write_file(path, "", 0);
	fd = open(path, O_WRONLY);
	assert_int_equal(
		output_open_endpoint(&faulty_calls, path,
				     (struct endpoint){ .kind = ENDPOINT_DESCRIPTOR, .fd = fd }, N,
				     &output),
		0);
	assert_int_equal(output_write_at(output, 0, output_bytes, N), 0);
	assert_int_equal(write(fd, "error\n", 6), 6);
	output_abort(output);
	close(fd);
	assert_true(file_contains(path, "error\n", 6));
	/* Bytes behind the output stay. */
	write_file(path, "abc", 3);
	output = open_for_writing(path, OUTPUT_SIZE_UNKNOWN);
	assert_int_equal(output_write_at(output, 0, "x", 1), 0);
	output_abort(output);
	assert_true(file_contains(path, "xbc", 3));
}

/* Open a file of six bytes, to append or overwrite, with a size above the limit. */
static int open_too_large(int flags)
{
	const int fd = open(fixture_path("f"), flags);
	const struct endpoint endpoint = { .kind = ENDPOINT_DESCRIPTOR, .fd = fd };
	struct rlimit before, small;
	struct output *output;
	int r;

	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 6 + N - 1;
	lseek(fd, 0, flags & O_APPEND ? SEEK_END : SEEK_SET);
	setrlimit(RLIMIT_FSIZE, &small);
	r = output_open_endpoint(&faulty_calls, "f", endpoint, flags & O_APPEND ? N : N + 6,
				 &output);
	setrlimit(RLIMIT_FSIZE, &before);
	close(fd);
	if (r == 0)
		output_abort(output);
	return r;
}

DIRECTORY_TEST(size_limit_in_place_is_checked_first)
{
	write_file(fixture_path("f"), "older\n", 6);
	assert_int_equal(open_too_large(O_WRONLY | O_APPEND), -EFBIG);
	assert_non_null(strstr(captured_messages_error(), "10000 bytes are needed; the limit"));
	assert_int_equal(open_too_large(O_RDWR), -EFBIG);
	assert_true(file_contains(fixture_path("f"), "older\n", 6));
}

DIRECTORY_TEST(failed_write_names_the_place_in_the_file)
{
	static const int flags[] = { O_WRONLY, O_WRONLY | O_APPEND };

	for (size_t i = 0; i < 2; i++) {
		struct endpoint endpoint = { .kind = ENDPOINT_DESCRIPTOR };
		struct output *output;

		write_file(fixture_path("f"), "older\n", 6);
		endpoint.fd = open(fixture_path("f"), flags[i]);
		lseek(endpoint.fd, 0, SEEK_END);
		assert_int_equal(output_open_endpoint(&faulty_calls, "f", endpoint, N, &output), 0);
		assert_int_equal(output_write_at(output, 0, output_bytes, 100), 0);
		faults.transfer_errno = EIO;
		assert_int_equal(output_write_at(output, 100, output_bytes, 100), -EIO);
		assert_non_null(strstr(captured_messages_error(), "write of 100 bytes at 106:"));
		faults.transfer_errno = 0;
		output_abort(output);
		close(endpoint.fd);
		captured_messages_reset(true);
	}
}

DIRECTORY_TEST(terminal_is_refused)
{
	const int terminal = posix_openpt(O_RDWR | O_NOCTTY), saved = dup(STDOUT_FILENO);
	struct output *output;
	int r;

	if (terminal < 0)
		skip();
	fflush(stdout);
	dup2(terminal, STDOUT_FILENO);
	r = output_open(&faulty_calls, NULL, N, &output);
	dup2(saved, STDOUT_FILENO);
	close(saved);
	assert_int_equal(r, 0);
	assert_int_equal(output_refuse_terminal(output), -ENOTTY);
	output_abort(output);
	close(terminal);
}

GROUP_FIXTURE(fill_output_bytes, NULL)
