/*
 * unique - keep the first of equal elements
 */
#pragma once

#include "src/device/backend.h"

struct unique_elements_op {
	void *elements; /* compacted in place */
	uint64_t n;
	uint32_t element_nbytes;
	const struct layout *layout; /* to digest dropped elements as records */
	uint64_t *ret_n;             /* elements left */
	struct digest *ret_dropped;  /* assigned */
};

void cpu_unique(const struct unique_elements_op *op);
