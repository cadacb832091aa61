/*
 * make_elements - the elements of items
 */
#pragma once

#include "src/device/backend.h"
#include "src/device/cpu/element_format.h"

struct make_elements_op {
	const struct layout *layout;
	const struct element_format *format;
	struct slice items;
	uint64_t first_number; /* of the first of them */
	void *elements;
	struct digest *digest; /* added to: that of the items' bodies; may be NULL */
};

/* Returns the bits in which the prefixes of the keys are not all the same. */
uint128_t cpu_make_elements(const struct make_elements_op *op);
