/*
 * output_fixture.h - outputs that threads write known bytes to, in any order
 */
#pragma once

#include <pthread.h>

#include "io/output/output.h"
#include "src/base/thread.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { N = 10000, OUTPUT_WRITE_NBYTES = 100 };

extern unsigned char output_bytes[N];

/* Fill output_bytes with a pattern: the setup of a group of tests. */
int fill_output_bytes(void **state);

struct output *open_output(const char *path, uint64_t expected_nbytes);

struct output_writer {
	pthread_t thread;
	struct output *output;
	uint64_t first, stride; /* writes the pieces first, first + n, ... */
	int r;
};

void *write_strided(void *arg);

/* Return the permissions of the file. */
mode_t get_permissions(const char *path);

/* Write output_bytes with several threads. Returns the worst result of a thread. */
int write_with_threads(struct output *output);
