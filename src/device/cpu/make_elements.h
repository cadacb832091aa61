/*
 * make_elements - make elements of items
 */
#pragma once

#include "src/device/backend.h"
#include "src/device/cpu/element_format.h"

struct make_elements_op {
	const struct layout *layout;
	const struct element_format *format;
	struct slice items;
	uint64_t first_number; /* number of the first item */
	void *elements;
	struct digest *digest; /* of the bodies of the items, added to; may be NULL */
};

/* Make the elements. Returns the bits in which the prefixes of the keys differ. */
uint128_t cpu_make_elements(const struct make_elements_op *op);
