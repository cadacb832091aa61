/*
 * input_fixture - files and pipes whose bytes are known, and streams that must hold them
 */
#pragma once

#include <pthread.h>

#include "io/input/input.h"
#include "tests/support/guarded.h"
#include "tests/support/io_fixture.h"
#include "tests/support/unit_test.h"

enum { INPUT_RECORD_NBYTES = 3, N = 3000 };

extern unsigned char input_bytes[N];

/* Fills input_bytes with a pattern: the setup of a group of tests. */
int fill_input_bytes(void **state);

/* Writes input_bytes[from, from + nbytes) to a file of the directory and returns its path. */
const char *write_input_part(const char *name, size_t offset, size_t nbytes);

struct input *open_input(const char *const *paths, size_t n);

int assert_input_open_fails(const char *path);

/* The whole stream in parts of nbytes is input_bytes[0, total_nbytes). */
void assert_stream(struct input *input, size_t nbytes, size_t total_nbytes);

/* An error comes, however often it is asked for. */
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

/* Standard input is a pipe that is fed. */
void start_stdin_feed(struct pipe_feed *feed);

void end_stdin_feed(struct pipe_feed *feed);
