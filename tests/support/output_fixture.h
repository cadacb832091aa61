/*
 * output_fixture - outputs to which known bytes are written, by threads in any order
 */
#pragma once

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include "io/output/output.h"
#include "src/base/thread.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"

#include <cmocka.h> /* last: it makes a macro of fail */

enum { N = 10000, PIECE = 100 };

static unsigned char data[N];

static inline struct output *open_output(const char *path, uint64_t expected_nbytes)
{
	struct output *output;

	assert_int_equal(output_open(&faulty_calls, path, expected_nbytes, &output), 0);
	return output;
}

struct writer {
	pthread_t thread;
	struct output *output;
	uint64_t first, n; /* writes the pieces first, first + n, ... */
	int r;
};

static inline void *write_pieces(void *arg)
{
	struct writer *w = arg;

	for (uint64_t at = w->first * PIECE; at < N && w->r == 0; at += w->n * PIECE) {
		usleep((unsigned)(at * 7919 % 300)); /* so that the turns are mixed */
		w->r = output_write_at(w->output, at, data + at, PIECE);
	}
	return NULL;
}

/* Returns the worst that a writer was told. */
static inline int write_by_threads(struct output *output)
{
	struct writer writers[4];
	int r = 0;

	for (unsigned i = 0; i < 4; i++) {
		writers[i] = (struct writer){ .output = output, .first = i, .n = 4 };
		assert_int_equal(thread_start(write_pieces, &writers[i], 0, &writers[i].thread), 0);
	}
	for (unsigned i = 0; i < 4; i++) {
		pthread_join(writers[i].thread, NULL);
		r = writers[i].r < r ? writers[i].r : r;
	}
	return r;
}
