/*
 * plan_requests.h - plan requests from arbitrary bytes, and the invariants of plans
 *
 * The unit test takes the bytes from a generator, the fuzzer makes them. Sizes up to 2^64 - 1 of
 * all magnitudes, and those near powers of two, are equally likely. The sizes of a plan are
 * computed again here with 128 bits, which detects overflow.
 */
#pragma once

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "src/plan/plan.h"

__extension__ typedef unsigned __int128 wide_uint;

void get_requested_info(const struct device *device, struct device_info *ret_info);

/* Bytes to consume, followed by zeros. */
struct fuzz_data {
	const unsigned char *bytes;
	size_t n;
};

struct plan_request fuzz_data_take_request(struct fuzz_data *data, const struct device *device,
					   struct layout *layout);

/* Compare the plans with this memory and with twice as much. NULL, or the violated invariant. */
const char *find_doubled_memory_defect(const struct plan_request *request);

void print_request(const struct plan_request *request);

/* Plan for a request made from the bytes. NULL, or the violated invariant. */
const char *find_fuzzed_plan_defect(const unsigned char *bytes, size_t n);
