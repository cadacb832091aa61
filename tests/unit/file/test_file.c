/*
 * test_file - transfers are complete or an error, whatever the system calls do
 */
#include "io/file/file.h"

#include <pthread.h>
#include <sys/resource.h>

#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { N = 1000 };

static struct file open_file(const char *name, int flags)
{
	struct file file;

	assert_int_equal(file_open(&faulty_calls, AT_FDCWD, fixture_path(name), flags, 0600, &file),
			 0);
	return file;
}

DIRECTORY_TEST(end_of_file_is_reported)
{
	unsigned char buffer[N] = { 0 };
	struct file file = open_file("f", O_RDWR | O_CREAT);

	assert_int_equal(file_write_at(&file, 0, buffer, N), 0);
	assert_int_equal(file_read_at(&file, 1, buffer, N), -ENODATA);
	assert_int_equal(file_read_at(&file, N, buffer, 0), 0);
	faults.transfer_errno = EIO;
	assert_int_equal(file_read_at(&file, 0, buffer, N), -EIO);
	assert_int_equal(file_write_at(&file, 0, buffer, N), -EIO);
	file_close(&file);
}

TEST(only_a_limited_process_gets_the_hint_of_its_limit)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	assert_int_equal(*size_limit_hint(-EFBIG).text == '\0', limit.rlim_cur == RLIM_INFINITY);
	assert_string_equal(size_limit_hint(-ENOSPC).text, "");
}

DIRECTORY_TEST(closing_twice_closes_once)
{
	struct file file = open_file("f", O_RDWR | O_CREAT);
	const int fd = file.fd;

	assert_int_equal(file_close(&file), 0);
	assert_int_equal(dup2(STDERR_FILENO, fd), fd); /* owned by another thread now */
	assert_int_equal(file_close(&file), 0);
	assert_int_equal(close(fd), 0);
}

struct slow_writer {
	int fd;
	const unsigned char *data;
	size_t nbytes;
};

/* Writes to a pipe in two parts. */
static void *slow_writer(void *arg)
{
	const struct slow_writer *d = arg;

	for (size_t position = 0; position < d->nbytes; position += 100) {
		usleep(1000);
		if (write(d->fd, d->data + position, 100) != 100)
			abort();
	}
	close(d->fd);
	return NULL;
}

DIRECTORY_TEST(stream_is_read_until_full_or_ended)
{
	unsigned char data[N], back[N];
	struct slow_writer d = { .data = data, .nbytes = N };
	struct file file = { .calls = &faulty_calls };
	pthread_t writer;
	size_t n;
	int ends[2];

	fill_pattern(data, N, 2);
	assert_int_equal(pipe2(ends, O_NONBLOCK), 0); /* like an inherited descriptor */
	file.fd = ends[0];
	d.fd = ends[1];
	assert_int_equal(pthread_create(&writer, NULL, slow_writer, &d), 0);
	assert_int_equal(file_read_next(&file, back, 700, -1, &n), 0);
	assert_int_equal(n, 700);
	assert_int_equal(file_read_next(&file, back + 700, 700, -1, &n), 0);
	assert_int_equal(n, 300);
	assert_memory_equal(back, data, N);
	assert_true(faults.n_transfers < 100); /* polled, not retried in a loop */
	pthread_join(writer, NULL);
	file_close(&file);
}

DIRECTORY_TEST(cancelled_read_returns)
{
	int ends[2], cancel[2];
	struct file file = { .calls = &faulty_calls };
	char byte;
	size_t n = 42;

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(pipe(cancel), 0);
	file.fd = ends[0];
	assert_int_equal(write(cancel[1], "x", 1), 1);
	assert_int_equal(file_read_next(&file, &byte, 1, cancel[0], &n), -ECANCELED);
	assert_int_equal(n, 42);
	for (int i = 0; i < 2; i++) {
		close(ends[i]);
		close(cancel[i]);
	}
}

DIRECTORY_TEST(space_is_preallocated_and_punched)
{
	const size_t nbytes = 1 << 20;
	struct file file = open_file("f", O_RDWR | O_CREAT);
	struct stat status;
	uint64_t size;

	assert_int_equal(file_preallocate(&file, 0, nbytes), 0);
	assert_int_equal(file_size(&file, &size), 0);
	assert_int_equal(size, nbytes);
	assert_int_equal(file_punch_hole(&file, nbytes / 2, nbytes / 2), 0);
	assert_int_equal(fstat(file.fd, &status), 0);
	assert_int_equal(status.st_size, nbytes);
	assert_true((size_t)status.st_blocks * 512 < nbytes * 3 / 4);
	assert_int_equal(file_truncate(&file, 10), 0);
	assert_int_equal(file_size(&file, &size), 0);
	assert_int_equal(size, 10);
	file_close(&file);
}
