/*
 * cut_and_sample - find where a splitter cuts sorted slices, and sample slices
 */
#include "src/device/cpu/cut_and_sample.h"

/*
 * A binary search that halves n instead of a range with two ends. The comparison only moves
 * `first`, which needs no branch; half of the branches would be mispredicted.
 */
#define BOUND_DEFINE(suffix, type)                                                                 \
	/* The number of elements smaller than key (or not larger, if equal_before). */            \
	static uint64_t bound_##suffix(const type *elements, uint64_t n, type key,                 \
				       bool equal_before)                                          \
	{                                                                                          \
		const type *first = elements;                                                      \
                                                                                                   \
		while (n > 0) {                                                                    \
			const uint64_t half = (n + 1) / 2;                                         \
			const type element = first[half - 1];                                      \
			const bool before = (element < key) | (equal_before & (element == key));   \
                                                                                                   \
			first += before ? half : 0;                                                \
			n -= half;                                                                 \
		}                                                                                  \
		return (uint64_t)(first - elements);                                               \
	}

BOUND_DEFINE(4, uint32_t)
BOUND_DEFINE(8, uint64_t)
BOUND_DEFINE(16, uint128_t)

uint64_t cpu_cut_slice(const struct slice *slice, uint32_t element_nbytes, encoded_key_t key,
		       bool equal_before)
{
	switch (element_nbytes) {
	case 4:
		return bound_4(slice->elements, slice->n, (uint32_t)key, equal_before);
	case 8:
		return bound_8(slice->elements, slice->n, (uint64_t)key, equal_before);
	default:
		return bound_16(slice->elements, slice->n, key, equal_before);
	}
}

/*
 * Halve n, as above. Items are far apart and their keys may be long, so memory accesses take most
 * of the time.
 */
static uint64_t cut_items(const struct layout *layout, const struct slice *slice, const void *key,
			  bool equal_before)
{
	uint64_t first = 0, end = slice->n;

	while (first < end) {
		const uint64_t middle = first + (end - first) / 2;
		const unsigned char *item =
			(const unsigned char *)slice->elements + middle * layout->item_nbytes;

		if (key_compare_normalised(&layout->item_keys, item, key) < equal_before)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

void cpu_cut_items(const struct cut_op *op)
{
	for (uint32_t i = 0; i < op->k; i++)
		op->ret_cuts[i] = cut_items(op->layout, &op->slices[i], op->key, i < op->slice);
}

void cpu_cut_elements(const struct cut_op *op)
{
	const encoded_key_t key = layout_get_key_prefix(op->layout, op->key);

	for (uint32_t i = 0; i < op->k; i++)
		op->ret_cuts[i] = cpu_cut_slice(&op->slices[i], op->layout->element_nbytes, key,
						i < op->slice);
}

void cpu_sample_items(const struct sample_op *op)
{
	const struct layout *layout = op->layout;
	const unsigned char *items = op->items;
	encoded_key_t *key = op->ret_keys;

	for (uint64_t i = 0; i < op->n; i += op->stride)
		*key++ = layout_key_prefix(&layout->item_keys, items + i * layout->item_nbytes);
}

void cpu_sample_elements(const struct sample_op *op)
{
	encoded_key_t *key = op->ret_keys;

	for (uint64_t i = 0; i < op->n; i += op->stride)
		*key++ = element_get(op->items, op->layout->element_nbytes, i);
}
