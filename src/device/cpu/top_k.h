/*
 * top_k - select the elements that can be among the first
 */
#pragma once

#include "src/device/cpu/element_format.h"

struct top_k_op {
	const struct element_format *format;
	void *elements; /* n, in any order */
	uint64_t n;
	uint64_t limit;
};

/*
 * Move the elements so that the first `limit` in sorted order are among the first elements; return
 * how many these are: at least `limit`, or n. Elements that tie stay together. Allocates nothing.
 * Reentrant.
 */
uint64_t cpu_top_k(const struct top_k_op *op);
