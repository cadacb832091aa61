/*
 * timed_threads - the same work on several threads at once, against the clock
 *
 * Cores share caches and memory, so one thread alone would flatter what is measured. The time is
 * processor time of the slowest thread, so that other programs on the machine disturb less.
 *
 * What fails ends the program, after a message.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "tools/bench/bench_options.h"

/*
 * Run `run` for each of n workers, of context_nbytes each, on a thread of its own; returns the time
 * of the slowest.
 */
uint64_t bench_threads_run(void (*run)(void *context), void *contexts, size_t context_nbytes,
			   unsigned n);

/* A row of the table: each thread took so long for n units, request->nbytes in all. */
void bench_threads_print(const struct bench_common_options *options, const char *label,
			 const char *unit, uint64_t n, double elapsed_ns);

/* Memory that has been touched; zeros. */
void *bench_map_memory(size_t nbytes);
