/*
 * plan_requests - any bytes as a request for a plan, and what must hold of every plan
 *
 * For the unit test, which draws the bytes from a generator, and for the fuzzer, which makes them
 * up. Sizes are taken so that all magnitudes and the neighbourhoods of powers of two are as likely,
 * up to 2^64 - 1. What is planned is computed again here with 128 bits, so that a number that has
 * wrapped around cannot hide.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "src/plan/plan.h"

__extension__ typedef unsigned __int128 wide_uint;

void get_requested_info(const struct device *device, struct device_info *ret_info);

/* Bytes that are used up; zeros behind them. */
struct fuzz_data {
	const unsigned char *bytes;
	size_t n;
};

struct plan_request fuzz_data_take_request(struct fuzz_data *data, const struct device *device,
					   struct layout *layout);

/* The same, of the plans with this memory and with twice as much. */
const char *find_doubled_memory_defect(const struct plan_request *request);

void print_request(const struct plan_request *request);

/* Make a request of the bytes. NULL, or what does not hold of its plan. */
const char *find_fuzzed_plan_defect(const unsigned char *bytes, size_t n);
