/*
 * element_format - the part of the key that an element holds (see element_format.h)
 */
#include "src/device/cpu/element_format.h"

#include "src/device/cpu/cpu_sort.h"

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
