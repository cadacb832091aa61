/*
 * pack - pack sorted elements into stored blocks, and unpack them (see pack.h)
 */
#include "src/device/cpu/pack.h"

#include <string.h>

#include "src/record/delta_pack.h"

/* Pack a block; return its size. */
static uint32_t pack_block(const void *elements, uint32_t n, uint32_t element_nbytes, void *packed)
{
	const size_t nbytes = (size_t)n * element_nbytes;
	const size_t packed_nbytes = delta_encode(elements, n, element_nbytes, packed, nbytes - 1);

	if (packed_nbytes)
		return (uint32_t)packed_nbytes;
	memcpy(packed, elements, nbytes);
	return (uint32_t)nbytes;
}

void cpu_pack(const struct pack_op *op)
{
	const char *elements = op->elements;
	char *packed = op->packed;
	uint32_t *ret_nbytes = op->ret_nbytes;

	for (uint64_t first = 0; first < op->n; first += op->block_n, ret_nbytes++) {
		const uint64_t n_left = op->n - first;
		const uint32_t n = n_left < op->block_n ? (uint32_t)n_left : op->block_n;

		*ret_nbytes = pack_block(elements + first * op->element_nbytes, n,
					 op->element_nbytes, packed);
		packed += *ret_nbytes;
	}
}

static int unpack_block(const struct packed_block *block, uint32_t element_nbytes)
{
	const size_t nbytes = (size_t)block->n * element_nbytes;

	if (block->packed_nbytes != nbytes)
		return delta_decode(block->packed, block->packed_nbytes, block->elements, block->n,
				    element_nbytes);
	memcpy(block->elements, block->packed, nbytes);
	return 0;
}

void cpu_unpack(const struct unpack_op *op)
{
	uint32_t damaged = UINT32_MAX;

	for (uint32_t i = 0; i < op->n_blocks; i++)
		if (unpack_block(&op->blocks[i], op->element_nbytes) < 0 && damaged == UINT32_MAX)
			damaged = i;
	*op->ret_damaged = damaged;
}
