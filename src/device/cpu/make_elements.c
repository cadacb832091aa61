/*
 * make_elements - the elements of items (see make_elements.h)
 */
#include "src/device/cpu/make_elements.h"

#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"

/* The slices of a window are short: the processor's prefetcher comes to know them too late. */
enum { AHEAD_NBYTES = 4096 };

/*
 * Works on copies whose addresses nobody has, so that they can stay in registers while elements are
 * stored; the form and the number of steps are constants where it is called.
 */
__attribute__((always_inline)) static inline uint128_t index_items(const struct index_op *op,
								   const struct key_prefix *prefix,
								   struct element_form form,
								   uint32_t n_steps)
{
	const struct layout *layout = op->layout;
	const uint64_t item_nbytes = layout->item_nbytes, n = op->items.n;
	const uint64_t ahead_n = AHEAD_NBYTES / item_nbytes + 1;
	const unsigned char *item = op->items.elements;
	struct digest digest = { .n_records = n };
	struct key_prefix own = *prefix;
	uint128_t differences = 0, first;

	own.n_steps = n_steps;
	first = n > 0 ? key_prefix_load(&own, item) : 0;
	for (uint64_t i = 0; i < n; i++, item += item_nbytes) {
		const uint128_t key = key_prefix_load(&own, item);

		if (i + ahead_n < n)
			__builtin_prefetch(item + ahead_n * item_nbytes);
		differences |= key ^ first;
		element_put(&form, op->elements, i, key, op->first_number + i);
		if (op->digest)
			digest.sum += hash_bytes(item + layout->body_offset, layout->body_nbytes);
	}
	if (op->digest)
		digest_add(op->digest, digest);
	return differences;
}

uint128_t cpu_index(const struct index_op *op)
{
	const struct element_form form = *op->form;
	struct element_form narrow = form;
	struct key_prefix prefix;

	narrow.element_nbytes = 8;
	key_prefix_make(&op->layout->item_keys, op->layout->item_nbytes, &prefix);
	if (prefix.n_steps > 1)
		return index_items(op, &prefix, form, prefix.n_steps);
	if (form.element_nbytes == 8)
		return index_items(op, &prefix, narrow, 1);
	return index_items(op, &prefix, form, 1);
}
