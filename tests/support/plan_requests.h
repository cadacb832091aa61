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

__extension__ typedef unsigned __int128 wide;

void describe_requested(const struct device *device, struct device_info *ret_info);

/* Bytes that are used up; zeros behind them. */
struct choices {
	const unsigned char *bytes;
	size_t n;
};

struct plan_request choose_request(struct choices *choices, const struct device *device,
				   struct layout *layout);

/* The same, of the plans with this memory and with twice as much. */
const char *find_broken_twice(const struct plan_request *request);

void print_request(const struct plan_request *request);

/* Make a request of the bytes. NULL, or what does not hold of its plan. */
const char *try_plan(const unsigned char *bytes, size_t n);
