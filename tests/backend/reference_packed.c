/*
 * reference_packed - the bytes of packed elements, one after the other (src/record/delta_pack.h has
 * the format)
 */
#include <stdlib.h>
#include <string.h>

#include "tests/backend/reference.h"
#include "tests/support/elements.h"

enum { MINIBLOCK_N = 256 };

/* A miniblock: n elements from number `first` on, with differences of `width` bits. */
struct miniblock {
	const void *elements;
	uint32_t element_nbytes, first, n, width;
};

static encoded_key_t difference(const struct miniblock *miniblock, uint32_t i)
{
	const uint32_t at = miniblock->first + i;
	const encoded_key_t all = ~(encoded_key_t)0 >> (128 - 8 * miniblock->element_nbytes);

	if (i == 0)
		return 0;
	return (element_get(miniblock->elements, miniblock->element_nbytes, at) -
		element_get(miniblock->elements, miniblock->element_nbytes, at - 1)) &
	       all;
}

static uint32_t width_of(const struct miniblock *miniblock)
{
	const uint32_t full = 8 * miniblock->element_nbytes;
	uint32_t width = 0;

	for (uint32_t i = 0; i < miniblock->n; i++) {
		const encoded_key_t bits = difference(miniblock, i);

		while (width < full && bits >> width)
			width++;
	}
	return miniblock->element_nbytes > 4 && width > full - 8 ? full : width;
}

/* Returns the bytes that they take. */
static uint64_t set_bits(const struct miniblock *miniblock, unsigned char *to)
{
	for (uint32_t i = 0; i < miniblock->n; i++) {
		const encoded_key_t bits = difference(miniblock, i);

		for (uint32_t bit = 0; bit < miniblock->width;) {
			const uint32_t at = i * miniblock->width + bit;

			to[at / 8] |= (unsigned char)(bits >> bit << at % 8);
			bit += 8 - at % 8;
		}
	}
	return (miniblock->n + 7) / 8 * miniblock->width;
}

/* Into at most 2 * n * element_nbytes + 100 bytes, which are zero. Returns how many it took. */
static uint64_t pack_block(const void *elements, uint32_t n, uint32_t element_nbytes,
			   unsigned char *to)
{
	const uint32_t n_miniblocks = (n + MINIBLOCK_N - 1) / MINIBLOCK_N;
	uint64_t nbytes = (n_miniblocks * (element_nbytes + 1) + 31) / 32 * 32;

	for (uint32_t i = 0; i < n_miniblocks; i++) {
		struct miniblock miniblock = {
			.elements = elements,
			.element_nbytes = element_nbytes,
			.first = i * MINIBLOCK_N,
		};

		miniblock.n = n - miniblock.first;
		if (miniblock.n > MINIBLOCK_N)
			miniblock.n = MINIBLOCK_N;
		miniblock.width = width_of(&miniblock);
		memcpy(to + (size_t)i * element_nbytes,
		       (const char *)elements + (size_t)miniblock.first * element_nbytes,
		       element_nbytes);
		to[(size_t)n_miniblocks * element_nbytes + i] = (unsigned char)miniblock.width;
		nbytes += set_bits(&miniblock, to + nbytes);
	}
	return (nbytes + 16 + 31) / 32 * 32;
}

void plain_pack(const struct pack_op *op)
{
	const char *elements = op->elements;
	unsigned char *to = op->packed;

	for (uint64_t first = 0, i = 0; first < op->n; first += op->block_n, i++) {
		const uint64_t n_left = op->n - first;
		const uint32_t n = n_left < op->block_n ? (uint32_t)n_left : op->block_n;
		const size_t items_nbytes = (size_t)n * op->element_nbytes;
		const void *from = elements + first * op->element_nbytes;
		unsigned char *capacity = calloc(2, items_nbytes + 50);
		const uint64_t nbytes = pack_block(from, n, op->element_nbytes, capacity);

		op->ret_nbytes[i] = (uint32_t)(nbytes < items_nbytes ? nbytes : items_nbytes);
		memcpy(to, nbytes < items_nbytes ? (const void *)capacity : from,
		       op->ret_nbytes[i]);
		to += op->ret_nbytes[i];
		free(capacity);
	}
}
