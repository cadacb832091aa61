/*
 * pipe_threads.h - threads that feed standard input and drain standard output through pipes
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

/* Make standard input a pipe with these bytes. */
void pipe_thread_feed_stdin(struct pipe_thread *pipe_thread, struct byte_buffer bytes);

/* Make standard output a pipe. Its bytes are kept, up to max_nbytes + 1. */
void pipe_thread_drain_stdout(struct pipe_thread *pipe_thread, size_t max_nbytes);

/* Wait for the thread. The caller frees bytes.data after draining. */
void pipe_thread_join(struct pipe_thread *pipe_thread);
