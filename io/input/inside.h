/*
 * inside - what an input consists of; of input*.c only
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "io/file/mapping.h"
#include "io/input/input.h"
#include "io/input/source.h"

/* A source, its place in the stream, and what of it is kept apart. */
struct placed_source {
	struct source source;
	uint64_t position; /* known once it is started */
	void *tail;
	size_t tail_nbytes;
	struct mapping mapping; /* of what it contributes, if the input is mapped */
};

struct input {
	/* Set at creation. */
	struct framing framing;
	uint64_t total_nbytes;
	size_t n_sources;
	int cancel_fd; /* readable once input_cancel() was called; -1 without streams */

	unsigned char *header; /* of the first source */

	atomic_int r;        /* the first failure, or 0 */
	atomic_bool is_long; /* a serial input has filled somebody's whole buffer */

	pthread_mutex_t claim;
	/* Under the claim lock. */
	uint64_t next;  /* position that is given out next */
	size_t current; /* the source being read, in a serial input */

	/*
	 * Sources whose position is known: all, or in a serial input the current one and those
	 * before it. Changed under the claim lock, after the position.
	 */
	atomic_size_t n_started;

	struct source_table table;
	struct placed_source sources[];
};

/* Remember the first failure; every later reader gets it. */
void input_stop(struct input *input, int r);

/*
 * Of regular files: whose is the next part of nbytes, or what is left of the stream? The caller's;
 * returns how long it is.
 */
size_t input_claim(struct input *input, size_t nbytes, uint64_t *ret_position);
