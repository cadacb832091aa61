/*
 * input_fixture.c - files and pipes of known bytes (see input_fixture.h)
 */
#include "tests/support/input_fixture.h"
#include "tests/support/open_input.h"

unsigned char input_bytes[N];

int fill_input_bytes(void **state)
{
	(void)state;
	fill_pattern(input_bytes, sizeof input_bytes, 1);
	return 0;
}

const char *write_input_part(const char *name, size_t offset, size_t nbytes)
{
	write_file(fixture_path(name), input_bytes + offset, nbytes);
	return fixture_path(name);
}

struct input *open_input(const char *const *paths, size_t n)
{
	struct input *input;

	assert_int_equal(input_open(&faulty_calls, paths, n, INPUT_RECORD_NBYTES, &input), 0);
	return input;
}

int assert_input_open_fails(const char *path)
{
	struct input *input;
	const int r = input_open(&faulty_calls, &path, 1, INPUT_RECORD_NBYTES, &input);

	assert_true(r < 0);
	assert_true(captured_messages_has_error());
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

int assert_input_read_fails(struct input *input)
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

/* Make `fd` standard input until restore_stdin(), and close it. */
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

void *feed_pipe_thread(void *arg)
{
	const struct pipe_feed *feed = arg;
	const int fd = feed->fifo ? open(feed->fifo, O_WRONLY) : feed->fd;

	for (size_t done = 0; done < feed->nbytes;) {
		const size_t n = feed->nbytes - done < 100 ? feed->nbytes - done : 100;

		usleep(500);
		if (write(fd, input_bytes + feed->offset + done, n) != (ssize_t)n)
			abort();
		done += n;
	}
	close(fd);
	return NULL;
}

void start_pipe_feed(struct pipe_feed *feed)
{
	assert_int_equal(pthread_create(&feed->thread, NULL, feed_pipe_thread, feed), 0);
}

void start_stdin_feed(struct pipe_feed *feed)
{
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	feed->fd = ends[1];
	replace_stdin(ends[0]);
	start_pipe_feed(feed);
}

void end_stdin_feed(struct pipe_feed *feed)
{
	pthread_join(feed->thread, NULL);
	restore_stdin();
}
