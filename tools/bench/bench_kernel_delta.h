/*
 * bench_kernel_delta - time packing sorted codes, and unpacking them
 */
#pragma once

#include "tools/bench/gpu_timing.h"

/* Random codes, as many as take 8 MiB (a window) and 1 GiB, in blocks of 1 MiB. */
void bench_kernel_delta(const struct bench_options *options);
