/*
 * pipe_threads - threads that feed a pipe to standard input, and drain one from standard output
 */
#include "tests/fault/pipe_threads.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/fault/fault_points.h"

static void *feed(void *argument)
{
	struct pump *pump = argument;
	const char *data = pump->bytes.data;
	ssize_t n;

	points_exempt_thread();
	for (size_t i = 0; i < pump->bytes.nbytes; i += (size_t)n) {
		n = write(pump->fd, data + i, pump->bytes.nbytes - i);
		if (n < 0)
			break; /* it was refused: nobody reads any more */
	}
	close(pump->fd);
	return NULL;
}

static void *drain(void *argument)
{
	struct pump *pump = argument;
	char *data = pump->bytes.data;
	ssize_t n;

	points_exempt_thread();
	while ((n = read(pump->fd, data + pump->bytes.nbytes,
			 pump->capacity - pump->bytes.nbytes)) > 0)
		pump->bytes.nbytes += (size_t)n;
	close(pump->fd);
	return NULL;
}

void pump_feed(struct pump *pump, struct bytes bytes)
{
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	dup2(ends[0], STDIN_FILENO);
	close(ends[0]);
	*pump = (struct pump){ .fd = ends[1], .bytes = bytes };
	must(pthread_create(&pump->thread, NULL, feed, pump) == 0, "thread");
}

void pump_drain(struct pump *pump, size_t most)
{
	int ends[2];

	must(pipe2(ends, O_CLOEXEC) == 0, "pipe");
	dup2(ends[1], STDOUT_FILENO);
	close(ends[1]);
	*pump = (struct pump){ .fd = ends[0], .capacity = most + 1 };
	pump->bytes.data = malloc(pump->capacity);
	must(pump->bytes.data && pthread_create(&pump->thread, NULL, drain, pump) == 0, "thread");
}

void pump_end(struct pump *pump)
{
	pthread_join(pump->thread, NULL);
}
