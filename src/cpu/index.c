/*
 * index - the elements of items (see index.h)
 */
#include "src/cpu/index.h"

#include "src/cpu/hash.h"
#include "src/cpu/key_prefix.h"

/* The slices of a window are short: the processor's prefetcher comes to know them too late. */
enum { AHEAD_NBYTES = 4096 };

uint128_t cpu_index(const struct index_op *op)
{
	const struct layout *layout = op->layout;
	const uint64_t ahead_n = AHEAD_NBYTES / layout->item_nbytes + 1;
	const unsigned char *item = op->items.elements;
	uint128_t differences = 0, first = 0;
	struct digest digest = { .n_records = op->items.n };
	struct key_prefix prefix;

	key_prefix_make(&layout->item_keys, layout->item_nbytes, &prefix);
	if (op->items.n > 0)
		first = key_prefix_load(&prefix, item);
	for (uint64_t i = 0; i < op->items.n; i++, item += layout->item_nbytes) {
		const uint128_t key = key_prefix_load(&prefix, item);

		if (i + ahead_n < op->items.n)
			__builtin_prefetch(item + ahead_n * layout->item_nbytes);
		differences |= key ^ first;
		element_put(op->form, op->elements, i, key, op->first_number + i);
		if (op->digest)
			digest.sum += hash_bytes(item + layout->body_offset, layout->body_nbytes);
	}
	if (op->digest)
		digest_add(op->digest, digest);
	return differences;
}
