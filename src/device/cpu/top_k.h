/*
 * top_k - the elements that can be among the first
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
 * Move elements, so that the first limit of them all, once sorted, are among the first so many as
 * it returns: at least `limit`, or n. Elements that tie stay together. No allocation; any number of
 * calls at the same time.
 */
uint64_t cpu_top_k(const struct top_k_op *op);
