/*
 * input_fixture - files and pipes whose bytes are known (see input_fixture.h)
 */
#include "tests/support/input_fixture.h"

unsigned char input_bytes[N];

const char *part(const char *name, size_t from, size_t nbytes)
{
	write_file(path_of(name), input_bytes + from, nbytes);
	return path_of(name);
}

struct input *open_input(const char *const *paths, size_t n)
{
	struct input *input;

	assert_int_equal(input_open(&faulty_calls, paths, n, R, &input), 0);
	return input;
}

int open_refused(const char *path)
{
	struct input *input;
	const int r = input_open(&faulty_calls, &path, 1, R, &input);

	assert_true(r < 0);
	assert_true(messages_failed());
	return r;
}

void assert_stream(struct input *input, size_t nbytes, size_t total_nbytes)
{
	unsigned char *buffer = guarded_alloc(nbytes);
	uint64_t position, expected = 0;
	size_t n;

	do {
		assert_int_equal(input_read(input, buffer, nbytes, &position, &n), 0);
		assert_int_equal(position, expected);
		assert_true(n == nbytes || position + n == total_nbytes);
		assert_memory_equal(buffer, input_bytes + position, n);
		expected += n;
	} while (n == nbytes);
	assert_int_equal(expected, total_nbytes);
	assert_int_equal(input_read(input, buffer, nbytes, &position, &n), 0);
	assert_int_equal(n, 0);
	guarded_free(buffer, nbytes);
}

int read_refused(struct input *input)
{
	unsigned char buffer[300];
	uint64_t position;
	size_t n = 1;
	int r = 0;

	while (r == 0 && n > 0)
		r = input_read(input, buffer, sizeof buffer, &position, &n);
	assert_true(r < 0);
	assert_int_equal(input_read(input, buffer, sizeof buffer, &position, &n), r);
	return r;
}

/* Standard input is `fd`, which is closed, until restore_stdin(). */
static int saved_stdin = -1;

void replace_stdin(int fd)
{
	assert_true(fd >= 0);
	saved_stdin = dup(STDIN_FILENO);
	dup2(fd, STDIN_FILENO);
	close(fd);
}

void restore_stdin(void)
{
	dup2(saved_stdin, STDIN_FILENO);
	close(saved_stdin);
}

void *feed(void *arg)
{
	const struct feed *f = arg;
	const int fd = f->fifo ? open(f->fifo, O_WRONLY) : f->fd;

	for (size_t done = 0; done < f->nbytes;) {
		const size_t n = f->nbytes - done < 100 ? f->nbytes - done : 100;

		usleep(500);
		if (write(fd, input_bytes + f->from + done, n) != (ssize_t)n)
			abort();
		done += n;
	}
	close(fd);
	return NULL;
}

void start_feed(struct feed *f)
{
	assert_int_equal(pthread_create(&f->thread, NULL, feed, f), 0);
}

void start_feed_of_stdin(struct feed *f)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	f->fd = ends[1];
	replace_stdin(ends[0]);
	start_feed(f);
}

void end_feed_of_stdin(struct feed *f)
{
	pthread_join(f->thread, NULL);
	restore_stdin();
}
