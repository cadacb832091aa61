/*
 * pipe_threads.c - threads that feed standard input and drain standard output (see pipe_threads.h)
 */
#include "tests/fault/pipe_threads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fault/fault_points.h"

static void *feed_pipe(void *argument)
{
	struct pipe_thread *pipe_thread = argument;
	const char *data = pipe_thread->bytes.data;
	ssize_t n;

	fault_points_exempt_thread();
	for (size_t i = 0; i < pipe_thread->bytes.nbytes; i += (size_t)n) {
		n = write(pipe_thread->fd, data + i, pipe_thread->bytes.nbytes - i);
		if (n < 0)
			break; /* the reader has ended */
	}
	close(pipe_thread->fd);
	return NULL;
}

static void *drain_pipe(void *argument)
{
	struct pipe_thread *pipe_thread = argument;
	char *data = pipe_thread->bytes.data;
	ssize_t n;

	fault_points_exempt_thread();
	while ((n = read(pipe_thread->fd, data + pipe_thread->bytes.nbytes,
			 pipe_thread->capacity - pipe_thread->bytes.nbytes)) > 0)
		pipe_thread->bytes.nbytes += (size_t)n;
	close(pipe_thread->fd);
	return NULL;
}

void pipe_thread_feed_stdin(struct pipe_thread *pipe_thread, struct byte_buffer bytes)
{
	int ends[2];

	require(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	*pipe_thread = (struct pipe_thread){ .fd = ends[1], .bytes = bytes };
	require(pthread_create(&pipe_thread->thread, NULL, feed_pipe, pipe_thread) == 0, "thread");
}

void pipe_thread_drain_stdout(struct pipe_thread *pipe_thread, size_t max_nbytes)
{
	int ends[2];

	require(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	*pipe_thread = (struct pipe_thread){ .fd = ends[0], .capacity = max_nbytes + 1 };
	pipe_thread->bytes.data = malloc(pipe_thread->capacity);
	require(pipe_thread->bytes.data &&
			pthread_create(&pipe_thread->thread, NULL, drain_pipe, pipe_thread) == 0,
		"thread");
}

void pipe_thread_join(struct pipe_thread *pipe_thread)
{
	pthread_join(pipe_thread->thread, NULL);
}
