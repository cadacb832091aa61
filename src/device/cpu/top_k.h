/*
 * top_k - the elements that can be among the first
 */
#pragma once

#include "src/device/cpu/element_format.h"

struct select_op {
	const struct element_form *form;
	void *elements; /* n, in any order */
	uint64_t n;
	uint64_t limit;
};

/*
 * Move elements, so that the first limit of them all, once sorted, are among the first so many as
 * it returns: at least `limit`, or n. Elements that tie stay together. No allocation; any number of
 * calls at the same time.
 */
uint64_t cpu_select(const struct select_op *op);
