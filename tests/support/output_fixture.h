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

enum { N = 10000, OUTPUT_WRITE_NBYTES = 100 };

extern unsigned char output_bytes[N];

struct output *open_output(const char *path, uint64_t expected_nbytes);

struct output_writer {
	pthread_t thread;
	struct output *output;
	uint64_t first, stride; /* writes the pieces first, first + n, ... */
	int r;
};

void *write_strided(void *arg);

/* Its permissions. */
mode_t get_permissions(const char *path);

/* Returns the worst that a writer was told. */
int write_with_threads(struct output *output);
