/*
 * pipe_threads - threads that feed a pipe to standard input, and drain one from standard output
 */
#pragma once

#include <pthread.h>

#include "tests/fault/test_files.h"

struct pipe_thread {
	pthread_t thread;
	int fd;
	struct byte_buffer bytes; /* to write; or read so far, with room for one more */
	size_t capacity;
};

/* Standard input becomes a pipe that gives the bytes. */
void pipe_thread_feed_stdin(struct pipe_thread *pipe_thread, struct byte_buffer bytes);

/* Standard output becomes one; of more bytes than `most` only one more is kept. */
void pipe_thread_drain_stdout(struct pipe_thread *pipe_thread, size_t max_nbytes);

/* Wait for the end; what was drained is to be freed. */
void pipe_thread_join(struct pipe_thread *pipe_thread);
