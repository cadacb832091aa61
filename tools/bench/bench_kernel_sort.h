/*
 * bench_kernel_sort - time sorting elements of 4, 8 and 16 bytes
 */
#pragma once

#include "tools/bench/gpu_timing.h"

/* Random elements, against CUB's radix and merge sorts. */
void bench_kernel_sort(const struct bench_options *options);

/* Every distribution, against random elements. */
void bench_kernel_distributions(const struct bench_options *options);
