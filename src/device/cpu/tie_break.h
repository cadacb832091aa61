/*
 * tie_break - put elements that tie in the order of the rest of their keys
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
	/* For narrow elements: room for wide_buffer_n wide ones, aligned to 16 bytes. */
	uint128_t *wide_buffer;
	uint64_t wide_buffer_n;
	void *sort_scratch; /* cpu_sort_scratch_nbytes(n, 16) */
	void *scratch;      /* tie_break_scratch_nbytes(n) */
};

/* Bytes of the scratch that n elements take; aligned to 16. */
size_t tie_break_scratch_nbytes(uint64_t n);

/*
 * Sort elements that tie by the rest of the key, and those of equal keys by their number. What is
 * left of the elements is their numbers. False if there was not room enough: the order is then any.
 * No allocation; any number of calls at the same time.
 */
bool cpu_break_ties(const struct tie_break_op *op);
