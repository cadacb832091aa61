/*
 * gather.h - find items by number in several slices, and copy items in their order
 */
#pragma once

#include "src/device/backend.h"
#include "src/device/cpu/element_format.h"

/*
 * --- items by number ---
 *
 *	slices     | a a a a a |   b b | c c c c |
 *	numbers      0 1 2 3 4   5 6   7 8 9 10
 *	buckets      0       0       2       2		the slice of every fourth number
 *
 * To find the slice of a number, start at its bucket's slice and go forward. There are about as
 * many buckets as slices, so visiting all numbers takes a constant number of steps per number on
 * average, whatever the lengths of the slices.
 */

/* A slice that is not empty. */
struct item_lookup_entry {
	const unsigned char *items;
	uint64_t start, end; /* numbers */
};

struct item_lookup {
	const struct item_lookup_entry *entries;
	const uint32_t *buckets;
	uint32_t n_entries;
	unsigned bucket_shift; /* number >> bucket_shift is its bucket */
	uint64_t item_nbytes;
	uint64_t n;
};

/* Return the number of buckets that item_lookup_init() needs for k slices, beside k entries. */
static inline uint64_t item_lookup_n_buckets(uint32_t k)
{
	return 2 * (uint64_t)k + 1;
}

/* Initialise a lookup. It refers to both arrays, which must outlive it. */
void item_lookup_init(const struct slice *slices, uint32_t k, uint64_t item_nbytes,
		      struct item_lookup_entry *entries, uint32_t *buckets,
		      struct item_lookup *ret_lookup);

/* Return the item of a number below n. */
static inline const unsigned char *item_lookup_get(const struct item_lookup *lookup,
						   uint64_t number)
{
	const struct item_lookup_entry *entry = lookup->entries;

	if (lookup->n_entries > 1) {
		entry += lookup->buckets[number >> lookup->bucket_shift];
		while (number >= entry->end)
			entry++;
	}
	return entry->items + (number - entry->start) * lookup->item_nbytes;
}

/* --- gather --- */

struct gather_op {
	const struct layout *layout;
	const struct item_lookup *items;
	/* n, in the desired order; NULL: the items are already in order. */
	const void *elements;
	uint64_t n;
	uint64_t n_ordered;                  /* the first elements; the rest is after the limit */
	const struct element_format *format; /* format of the elements */
	void *out;
	bool for_output, unique;
	bool scattered; /* hint: consecutive items are not adjacent in memory */
	/*
	 * Another thread may be writing the items. All results are then computed from `out`, and
	 * equal keys out of the order of their numbers count as disorder. This requires elements,
	 * scattered, and whole items; nothing is dropped or counted.
	 */
	bool may_change;
	uint64_t limit;
	/* Once requested, a gather of scattered items returns early, and ret is not set. */
	const struct cancellation *cancellation;
	void *ret_first, *ret_last; /* item_nbytes; may be NULL */
	struct sort_op_result *ret;
};

/* See sort_op and merge_op. `out` does not overlap the other arrays. */
void cpu_gather(const struct gather_op *op);
