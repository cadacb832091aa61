/*
 * bench_kernel_records - time what sorting records on a GPU consists of
 */
#pragma once

#include "tools/bench/gpu_timing.h"

/* Records of several sizes, random keys of 10 bytes: each step, against a copy on the device. */
void bench_kernel_records(const struct bench_options *options);
