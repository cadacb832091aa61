/*
 * input_fixture.h - files and pipes of known bytes, and checks of input streams
 */
#pragma once

#include <pthread.h>

#include "io/input/input.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { INPUT_RECORD_NBYTES = 3, N = 3000 };

extern unsigned char input_bytes[N];

/* Fill input_bytes with a pattern: the setup of a group of tests. */
int fill_input_bytes(void **state);

/* Write input_bytes[offset, offset + nbytes) to a file in the directory and return its path. */
const char *write_input_part(const char *name, size_t offset, size_t nbytes);

struct input *open_input(const char *const *paths, size_t n);

int assert_input_open_fails(const char *path);

/* Assert that the stream, read nbytes at a time, is input_bytes[0, total_nbytes). */
void assert_stream(struct input *input, size_t nbytes, size_t total_nbytes);

/* Assert that each read fails with the same error, and return it. */
int assert_input_read_fails(struct input *input);

void replace_stdin(int fd);

void restore_stdin(void);

struct pipe_feed {
	pthread_t thread;
	int fd;
	const char *fifo; /* to open first; NULL: fd */
	size_t offset, nbytes;
};

void *feed_pipe_thread(void *arg);

void start_pipe_feed(struct pipe_feed *feed);

/* Make standard input a pipe that the feed writes to. */
void start_stdin_feed(struct pipe_feed *feed);

void end_stdin_feed(struct pipe_feed *feed);
