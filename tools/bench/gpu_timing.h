/*
 * gpu_timing - time what runs on a GPU, by its events
 *
 * Everything is in the default stream. Failures end the program with status 2.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BENCH_MAX_RUNS = 101 };

struct bench_options {
	unsigned n_runs;
	unsigned log2_n;         /* 0: the sizes of the benchmark */
	uint32_t element_nbytes; /* 0: all */
	bool compares_cub;       /* time CUB and Thrust as well */
};

/* End the program unless `error`, a cudaError_t that `what` has returned, is none. */
void bench_check_cuda(int error, const char *label);

void *bench_device_alloc(size_t nbytes); /* device memory, for cudaFree() */

/* What is timed: `prepare` (may be NULL) is not, `work` is. */
struct bench_task {
	void (*prepare)(void *context);
	int (*run)(void *context);
	void *context;
};

/* The median of n_runs, after one that warms up. */
float bench_median_ms(struct bench_task task, unsigned n_runs);

/* A line of a table: what took how long; how many times as fast as base_ms, unless that is 0. */
void bench_print_row(const char *label, uint32_t element_nbytes, uint64_t n, float ms,
		     float base_ms);
