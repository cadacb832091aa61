/*
 * cut - where a splitter cuts sorted slices, and samples of a slice
 */
#include "src/cpu/cut.h"

/*
 * The number of elements of the slice that are smaller than `key`; or not larger, if
 * `equal_before`. The invariant: elements below lo come before the splitter, those from hi on
 * do not.
 */
static uint64_t bound(const struct slice *slice, uint32_t element_nbytes, code_t key,
		      bool equal_before)
{
	uint64_t lo = 0;
	uint64_t hi = slice->n;

	while (lo < hi) {
		const uint64_t middle = lo + (hi - lo) / 2;
		const code_t element = element_get(slice->elements, element_nbytes, middle);

		if (element < key || (equal_before && element == key))
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

void cpu_cut(const struct cut_op *op)
{
	for (uint32_t i = 0; i < op->k; i++)
		op->ret_cuts[i] = bound(&op->slices[i], op->element_nbytes, op->key, i < op->slice);
}

void cpu_sample(const struct sample_op *op)
{
	uint64_t n_keys = 0;

	for (uint64_t i = 0; i < op->n; i += op->stride)
		op->ret_keys[n_keys++] = element_get(op->elements, op->element_nbytes, i);
}
