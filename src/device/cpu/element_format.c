/*
 * element_format.c - choose the format of elements, and make elements (see element_format.h)
 */
#include "src/device/cpu/element_format.h"

#include "src/device/cpu/cpu_sort.h"
#include "src/record/record_hash.h"

void element_sample_collect(const struct key_prefix *prefix, const unsigned char *items, uint64_t n,
			    struct element_sample *ret_sample)
{
	struct element_sample *sample = ret_sample;
	uint128_t scratch[ELEMENT_SAMPLE_N];

	sample->n = n < ELEMENT_SAMPLE_N ? (uint32_t)n : ELEMENT_SAMPLE_N;
	for (uint64_t i = 0; i < sample->n; i++)
		sample->prefixes[i] =
			key_prefix_load(prefix, items + i * n / sample->n * prefix->record_nbytes);
	cpu_sort(&(struct sort_elements_op){ .elements = sample->prefixes,
					     .n = sample->n,
					     .scratch = scratch,
					     .element_nbytes = sizeof(uint128_t) });
}

unsigned element_sample_common_bits(const struct element_sample *sample)
{
	return key_prefix_common_bits(sample->prefixes[0] ^ sample->prefixes[sample->n - 1]);
}

static bool sample_has_ties(const struct element_sample *sample,
			    const struct element_format *format)
{
	uint64_t elements[2];

	for (uint32_t i = 1; i < sample->n; i++) {
		element_put(format, elements, 0, sample->prefixes[i - 1], 0);
		element_put(format, elements, 1, sample->prefixes[i], 0);
		if (elements[0] == elements[1])
			return true;
	}
	return false;
}

struct element_format element_format_choose(const struct layout *layout,
					    const struct element_sample *sample,
					    unsigned common_bits, uint64_t n)
{
	const struct element_format narrow = {
		.element_nbytes = 8,
		.skipped_bits = common_bits < MAX_SKIPPED_BITS ? common_bits : MAX_SKIPPED_BITS,
		.number_bits = n > 1 ? 64 - (unsigned)__builtin_clzll(n - 1) : 1,
	};

	if (element_format_needs_tie_break(&narrow, &layout->item_keys) &&
	    sample_has_ties(sample, &narrow))
		return element_format_default(layout);
	return narrow;
}

/* How far ahead items are prefetched. Slices are too short for the hardware prefetcher. */
enum { PREFETCH_NBYTES = 4096 };

/*
 * Make the elements. The format and the prefix are local copies, so that they stay in registers
 * while elements are stored. Callers pass the format and n_steps as constants.
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
