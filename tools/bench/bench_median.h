/*
 * bench_median - the time that stands for several
 */
#pragma once

#include <stdint.h>

/* Of n >= 1 times, which are put in order. */
double bench_median_ns(uint64_t *times_ns, unsigned n);
