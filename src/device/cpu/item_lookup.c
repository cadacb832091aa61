/*
 * item_lookup - find items by number in several slices (see item_lookup.h)
 */
#include "src/device/cpu/item_lookup.h"

/* Return the smallest bucket size with at most two buckets per slice. */
static unsigned choose_bucket_shift(uint64_t n, uint32_t n_parts)
{
	unsigned shift = 0;

	while (n >> shift > 2 * (uint64_t)n_parts)
		shift++;
	return shift;
}

void item_lookup_init(const struct slice *slices, uint32_t k, uint64_t item_nbytes,
		      struct item_lookup_entry *entries, uint32_t *buckets,
		      struct item_lookup *ret_lookup)
{
	struct item_lookup lookup = { .entries = entries,
				      .buckets = buckets,
				      .item_nbytes = item_nbytes };
	uint32_t entry = 0;

	for (uint32_t i = 0; i < k; i++) {
		if (slices[i].n == 0)
			continue;
		entries[lookup.n_entries++] = (struct item_lookup_entry){
			.items = slices[i].elements,
			.start = lookup.n,
			.end = lookup.n + slices[i].n,
		};
		lookup.n += slices[i].n;
	}
	lookup.bucket_shift = choose_bucket_shift(lookup.n, lookup.n_entries);
	for (uint64_t start = 0; start < lookup.n; start += UINT64_C(1) << lookup.bucket_shift) {
		while (start >= entries[entry].end)
			entry++;
		*buckets++ = entry;
	}
	*ret_lookup = lookup;
}
