/*
 * make_elements - make elements of items (see make_elements.h)
 */
#include "src/device/cpu/make_elements.h"

#include "src/record/record_hash.h"
#include "src/record/key_prefix.h"

/* Slices of a window are too short for the processor's own prefetcher. */
enum { PREFETCH_NBYTES = 4096 };

/*
 * Uses local copies, so that they stay in registers while elements are stored. Callers pass the
 * format and the number of steps as constants.
 */
__attribute__((always_inline)) static inline uint128_t
make_elements_loop(const struct make_elements_op *op, const struct key_prefix *prefix,
		   struct element_format format, uint32_t n_steps)
{
	const struct layout *layout = op->layout;
	const uint64_t item_nbytes = layout->item_nbytes, n = op->items.n;
	const uint64_t ahead_n = PREFETCH_NBYTES / item_nbytes + 1;
	const unsigned char *item = op->items.elements;
	struct digest digest = { .n_records = n };
	struct key_prefix local_prefix = *prefix;
	uint128_t differences = 0, first;

	local_prefix.n_steps = n_steps;
	first = n > 0 ? key_prefix_load(&local_prefix, item) : 0;
	for (uint64_t i = 0; i < n; i++, item += item_nbytes) {
		const uint128_t key = key_prefix_load(&local_prefix, item);

		if (i + ahead_n < n)
			__builtin_prefetch(item + ahead_n * item_nbytes);
		differences |= key ^ first;
		element_put(&format, op->elements, i, key, op->first_number + i);
		if (op->digest)
			digest.sum += hash_bytes(item + layout->body_offset, layout->body_nbytes);
	}
	if (op->digest)
		digest_add(op->digest, digest);
	return differences;
}

uint128_t cpu_make_elements(const struct make_elements_op *op)
{
	const struct element_format format = *op->format;
	struct element_format narrow = format;
	struct key_prefix prefix;

	narrow.element_nbytes = 8;
	key_prefix_make(&op->layout->item_keys, op->layout->item_nbytes, &prefix);
	if (prefix.n_steps > 1)
		return make_elements_loop(op, &prefix, format, prefix.n_steps);
	if (format.element_nbytes == 8)
		return make_elements_loop(op, &prefix, narrow, 1);
	return make_elements_loop(op, &prefix, format, 1);
}
