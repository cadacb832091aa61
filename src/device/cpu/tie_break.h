/*
 * tie_break - order elements with equal prefixes by the rest of their keys
 */
#pragma once

#include "src/device/cpu/element_format.h"
#include "src/device/cpu/item_lookup.h"

struct tie_break_op {
	const struct key_fields *keys;
	const struct item_lookup *items;
	const struct element_format *format;
	void *elements; /* n, sorted */
	uint64_t n;
	/* For narrow elements: space for wide_buffer_n wide ones, aligned to 16 bytes. */
	uint128_t *wide_buffer;
	uint64_t wide_buffer_n;
	void *sort_scratch; /* cpu_sort_scratch_nbytes(n, 16) */
	void *scratch;      /* tie_break_scratch_nbytes(n) */
};

/* Return the scratch for n elements, aligned to 16 bytes. */
size_t tie_break_scratch_nbytes(uint64_t n);

/*
 * Sort elements that tie by the rest of the key, and equal keys by their number. Only the numbers
 * of the elements remain. Returns false if the space was too small; the order is then undefined.
 * Allocates nothing. Reentrant.
 */
bool cpu_break_ties(const struct tie_break_op *op);
