/*
 * block_unpack - the blocks of spilled runs that a device unpacks together (see block_unpack.h)
 */
#include "src/merge/block_unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

/* Which block of which run it is. */
struct unpack_origin {
	const struct run *run;
	uint64_t block;
};

void block_unpack_free(struct block_unpack *unpack)
{
	free(unpack->blocks);
	free(unpack->origins);
}

void block_unpack_reset(struct block_unpack *unpack)
{
	unpack->n_blocks = 0;
	unpack->damaged_block = UINT32_MAX;
}

/* Room for n more. */
static int reserve(struct block_unpack *unpack, uint64_t n)
{
	const size_t n_needed = unpack->n_blocks + n;
	struct packed_block *blocks;
	struct unpack_origin *origins;

	if (n_needed <= unpack->n_allocated)
		return 0;
	blocks = realloc(unpack->blocks, 2 * n_needed * sizeof *blocks);
	if (blocks)
		unpack->blocks = blocks;
	origins = realloc(unpack->origins, 2 * n_needed * sizeof *origins);
	if (origins)
		unpack->origins = origins;
	if (!blocks || !origins)
		return fail(-ENOMEM, "no memory for a list of %zu blocks", 2 * n_needed);
	unpack->n_allocated = (uint32_t)(2 * n_needed);
	return 0;
}

int block_unpack_add(struct block_unpack *unpack, const struct run *run, uint64_t first, uint64_t n,
		     const char *packed, char *elements, uint32_t element_nbytes)
{
	int r = reserve(unpack, n);

	if (r < 0)
		return r;
	for (uint64_t i = first; i < first + n; i++) {
		const struct packed_block block = {
			.packed = packed,
			.elements = elements,
			.packed_nbytes = (uint32_t)run_packed_nbytes(run, i, 1),
			.n = (uint32_t)(run_block_start(run, i + 1) - run_block_start(run, i)),
		};

		unpack->origins[unpack->n_blocks] = (struct unpack_origin){ run, i };
		unpack->blocks[unpack->n_blocks++] = block;
		packed += block.packed_nbytes;
		elements += (size_t)block.n * element_nbytes;
	}
	return 0;
}

int block_unpack_queue(struct block_unpack *unpack, const struct job *job,
		       struct device_queue *queue)
{
	if (unpack->n_blocks == 0)
		return 0;
	return device_queue_unpack(queue, &(struct unpack_op){
						  .blocks = unpack->blocks,
						  .n_blocks = unpack->n_blocks,
						  .element_nbytes = job->layout->element_nbytes,
						  .ret_damaged = &unpack->damaged_block,
					  });
}

int block_unpack_check(const struct block_unpack *unpack)
{
	const struct unpack_origin *origin;

	if (unpack->damaged_block == UINT32_MAX)
		return 0;
	origin = &unpack->origins[unpack->damaged_block];
	return run_fail_packed(origin->run, origin->block);
}
