/*
 * item_lookup - slices of items, numbered through (see item_lookup.h)
 */
#include "src/device/cpu/item_lookup.h"

/* The smallest buckets of which there are not more than two for each part. */
static unsigned choose_shift(uint64_t n, uint32_t n_parts)
{
	unsigned shift = 0;

	while (n >> shift > 2 * (uint64_t)n_parts)
		shift++;
	return shift;
}

void sequence_make(const struct slice *slices, uint32_t k, uint64_t item_nbytes,
		   struct sequence_part *parts, uint32_t *buckets, struct sequence *ret_sequence)
{
	struct sequence sequence = { .parts = parts,
				     .buckets = buckets,
				     .item_nbytes = item_nbytes };
	uint32_t part = 0;

	for (uint32_t i = 0; i < k; i++) {
		if (slices[i].n == 0)
			continue;
		parts[sequence.n_parts++] = (struct sequence_part){
			.items = slices[i].elements,
			.start = sequence.n,
			.end = sequence.n + slices[i].n,
		};
		sequence.n += slices[i].n;
	}
	sequence.bucket_shift = choose_shift(sequence.n, sequence.n_parts);
	for (uint64_t start = 0; start < sequence.n;
	     start += UINT64_C(1) << sequence.bucket_shift) {
		while (start >= parts[part].end)
			part++;
		*buckets++ = part;
	}
	*ret_sequence = sequence;
}
