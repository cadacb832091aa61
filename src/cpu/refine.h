/*
 * refine - put elements that tie in the order of the rest of their keys
 */
#pragma once

#include "src/cpu/sequence.h"

struct refine_op {
	const struct key_fields *keys;
	const struct sequence *items;
	uint128_t *elements; /* sorted: 12 bytes of key, 4 of the item's number */
	uint64_t n;
	void *scratch; /* refine_scratch_nbytes(n) */
};

/* Aligned to 16 bytes. */
size_t refine_scratch_nbytes(uint64_t n);

/*
 * Sort elements whose first 12 bytes of the key are equal by the rest of it, and those of equal
 * keys by their number. What is left of the elements is their number, in the low 4 bytes. No
 * allocation; any number of calls at the same time.
 */
void cpu_refine(const struct refine_op *op);
