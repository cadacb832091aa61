/*
 * elements.h - guarded arrays of elements for the tests of the CPU kernels
 */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "src/record/layout.h"
#include "tests/support/guarded.h"
#include "tests/support/reference_sort.h"
#include "tools/gen/gen.h"

static const uint32_t element_sizes[] = { 4, 8, 16 };
enum { N_ELEMENT_SIZES = 3 };

/* All distributions of gen.h, and one more. */
enum { ELEMENTS_ALL_ONES = GEN_NAN + 1, N_DISTS };

/* Make n elements in a guarded buffer, for guarded_elements_free(). */
static inline void *guarded_elements_make(uint32_t element_nbytes, int dist, uint64_t n,
					  uint64_t seed)
{
	const struct key key = { .nbytes = element_nbytes, .kind = KEY_UNSIGNED };
	void *elements = guarded_alloc(n * element_nbytes);
	struct layout layout;
	struct gen gen;

	if (dist == ELEMENTS_ALL_ONES)
		return memset(elements, 0xff, n * element_nbytes);
	layout_make_key_only(&key, &layout);
	gen_init(&layout, (enum gen_dist)dist, n, seed, &gen);
	gen_fill(&gen.set, 0, n, elements);
	return elements;
}

static inline void guarded_elements_free(void *elements, uint32_t element_nbytes, uint64_t n)
{
	guarded_free(elements, n * element_nbytes);
}
