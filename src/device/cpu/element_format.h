/*
 * element_format.h - the bits of the key and the record number that an element holds
 *
 *	narrow	64 bits   [ key bits, after the skipped ones ][ number, as many bits as n needs ]
 *	wide	128 bits  [ 12 bytes of key                  ][ number, 4 bytes                 ]
 *
 * Narrow elements sort in a third of the time. They are used if the whole key fits, or if the
 * elements of a sample are all different. Leading bits that all keys share (in text, small
 * integers, dates) carry no information and are skipped. Their number is estimated from the sample
 * and verified when all elements are made.
 *
 * A misleading sample only costs time, because ties are broken later.
 */
#pragma once

#include "src/device/backend.h"
#include "src/record/key_prefix.h"

enum { ELEMENT_SAMPLE_N = 128, MAX_SKIPPED_BITS = 64 };

struct element_format {
	uint32_t element_nbytes;
	unsigned skipped_bits; /* leading bits that all keys share */
	unsigned number_bits;  /* lowest bits of the element */
};

/* Sorted prefixes of evenly spaced keys. */
struct element_sample {
	uint128_t prefixes[ELEMENT_SAMPLE_N];
	uint32_t n;
};

/* Collect a sample of n > 0 items. */
void element_sample_collect(const struct key_prefix *prefix, const unsigned char *items, uint64_t n,
			    struct element_sample *ret_sample);

/* Return the number of leading bits that all keys of a sample share. */
unsigned element_sample_common_bits(const struct element_sample *sample);

/* Choose the format for n items whose keys share the first common_bits. */
struct element_format element_format_choose(const struct layout *layout,
					    const struct element_sample *sample,
					    unsigned common_bits, uint64_t n);

/* Return the format that is correct for any keys. */
static inline struct element_format element_format_default(const struct layout *layout)
{
	return (struct element_format){ .element_nbytes = layout->element_nbytes,
					.number_bits = 8 * RECORD_NUMBER_NBYTES };
}

/* Return the number of leading whole bytes of the key that are equal in elements that tie. */
static inline uint32_t element_format_tied_nbytes(const struct element_format *format)
{
	const uint32_t n_bits =
		format->skipped_bits + 8 * format->element_nbytes - format->number_bits;

	return n_bits < 8 * KEY_PREFIX_NBYTES ? n_bits / 8 : KEY_PREFIX_NBYTES;
}

/* Return whether elements with different keys can tie. */
static inline bool element_format_needs_tie_break(const struct element_format *format,
						  const struct key_fields *keys)
{
	return element_format_tied_nbytes(format) < keys->key_nbytes;
}

/* Assign element i: the key bits of the prefix, and the number. */
static inline void element_put(const struct element_format *format, void *elements, uint64_t i,
			       uint128_t prefix, uint64_t number)
{
	if (format->element_nbytes == 8) {
		const uint64_t key = (uint64_t)(prefix << format->skipped_bits >> 64);

		((uint64_t *)elements)[i] = key >> format->number_bits << format->number_bits |
					    number;
	} else {
		((uint128_t *)elements)[i] = prefix >> format->number_bits << format->number_bits |
					     number;
	}
}

/* Return the key bits of element i, without its number. */
static inline uint128_t element_key(const struct element_format *format, const void *elements,
				    uint64_t i)
{
	if (format->element_nbytes == 8)
		return ((const uint64_t *)elements)[i] >> format->number_bits;
	return ((const uint128_t *)elements)[i] >> format->number_bits;
}

static inline uint32_t element_number(const struct element_format *format, const void *elements,
				      uint64_t i)
{
	const uint64_t low = load_8((const unsigned char *)elements + i * format->element_nbytes);

	return (uint32_t)(low & ((UINT64_C(1) << format->number_bits) - 1));
}

/* Set the number of element i and clear its key bits. */
static inline void element_set_number(const struct element_format *format, void *elements,
				      uint64_t i, uint32_t number)
{
	if (format->element_nbytes == 8)
		((uint64_t *)elements)[i] = number;
	else
		((uint128_t *)elements)[i] = number;
}

struct make_elements_op {
	const struct layout *layout;
	const struct element_format *format;
	struct slice items;
	uint64_t first_number; /* number of the first item */
	void *elements;
	struct digest *digest; /* of the bodies of the items, added to; may be NULL */
};

/* Make the elements. Returns the bits in which the prefixes of the keys differ. */
uint128_t cpu_make_elements(const struct make_elements_op *op);
