/*
 * bench_device - time what runs on a GPU, by its events
 *
 * Everything is in the default stream. Failures end the program with status 2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_RUNS_MAX = 101 };

struct bench_options {
	unsigned n_runs;
	unsigned log2_n;         /* 0: the sizes of the benchmark */
	uint32_t element_nbytes; /* 0: all */
	bool references;         /* time CUB and Thrust as well */
};

/* End the program unless `error`, a cudaError_t that `what` has returned, is none. */
void bench_check(int error, const char *what);

void *bench_alloc(size_t nbytes); /* device memory, for cudaFree() */

/* What is timed: `prepare` (may be NULL) is not, `work` is. */
struct bench_timed {
	void (*prepare)(void *context);
	int (*work)(void *context);
	void *context;
};

/* The median of n_runs, after one that warms up. */
float bench_median_ms(struct bench_timed timed, unsigned n_runs);

/* A line of a table: what took how long; how many times as fast as base_ms, unless that is 0. */
void bench_print_row(const char *what, uint32_t element_nbytes, uint64_t n, float ms,
		     float base_ms);
