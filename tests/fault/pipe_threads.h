/*
 * pipe_threads - threads that feed a pipe to standard input, and drain one from standard output
 */
#pragma once

#include <pthread.h>

#include "tests/fault/test_files.h"

struct pump {
	pthread_t thread;
	int fd;
	struct bytes bytes; /* to write; or read so far, with room for one more */
	size_t capacity;
};

/* Standard input becomes a pipe that gives the bytes. */
void pump_feed(struct pump *pump, struct bytes bytes);

/* Standard output becomes one; of more bytes than `most` only one more is kept. */
void pump_drain(struct pump *pump, size_t most);

/* Wait for the end; what was drained is to be freed. */
void pump_end(struct pump *pump);
