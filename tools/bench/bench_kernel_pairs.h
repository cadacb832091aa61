/*
 * bench_kernel_pairs - time sorting pairs of a u64 key and 8 bytes that it carries along
 */
#pragma once

#include "tools/bench/gpu_timing.h"

/* Random keys, against CUB's radix and merge sorts. */
void bench_kernel_pairs(const struct bench_options *options);
