/*
 * block_unpack - the blocks of spilled runs that a device unpacks together (see block_unpack.h)
 */
#include "src/merge/block_unpack.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "src/base/diagnostics.h"

/* Which block of which run it is. */
struct unpacking_origin {
	const struct run *run;
	uint64_t block;
};

void unpacking_free(struct unpacking *unpacking)
{
	free(unpacking->blocks);
	free(unpacking->origins);
}

void unpacking_restart(struct unpacking *unpacking)
{
	unpacking->n_blocks = 0;
	unpacking->damaged = UINT32_MAX;
}

/* Room for n more. */
static int reserve(struct unpacking *unpacking, uint64_t n)
{
	const size_t n_needed = unpacking->n_blocks + n;
	struct packed_block *blocks;
	struct unpacking_origin *origins;

	if (n_needed <= unpacking->n_allocated)
		return 0;
	blocks = realloc(unpacking->blocks, 2 * n_needed * sizeof *blocks);
	if (blocks)
		unpacking->blocks = blocks;
	origins = realloc(unpacking->origins, 2 * n_needed * sizeof *origins);
	if (origins)
		unpacking->origins = origins;
	if (!blocks || !origins)
		return fail(-ENOMEM, "no memory for a list of %zu blocks", 2 * n_needed);
	unpacking->n_allocated = (uint32_t)(2 * n_needed);
	return 0;
}

int unpacking_add(struct unpacking *unpacking, const struct run *run, uint64_t first, uint64_t n,
		  const char *packed, char *elements, uint32_t element_nbytes)
{
	int r = reserve(unpacking, n);

	if (r < 0)
		return r;
	for (uint64_t i = first; i < first + n; i++) {
		const struct packed_block block = {
			.packed = packed,
			.elements = elements,
			.packed_nbytes = (uint32_t)run_packed_nbytes(run, i, 1),
			.n = (uint32_t)(run_block_start(run, i + 1) - run_block_start(run, i)),
		};

		unpacking->origins[unpacking->n_blocks] = (struct unpacking_origin){ run, i };
		unpacking->blocks[unpacking->n_blocks++] = block;
		packed += block.packed_nbytes;
		elements += (size_t)block.n * element_nbytes;
	}
	return 0;
}

int unpacking_queue(struct unpacking *unpacking, const struct job *job, struct lane *lane)
{
	if (unpacking->n_blocks == 0)
		return 0;
	return lane_unpack(lane, &(struct unpack_op){
					 .blocks = unpacking->blocks,
					 .n_blocks = unpacking->n_blocks,
					 .element_nbytes = job->layout->element_nbytes,
					 .ret_damaged = &unpacking->damaged,
				 });
}

int unpacking_check(const struct unpacking *unpacking)
{
	const struct unpacking_origin *origin;

	if (unpacking->damaged == UINT32_MAX)
		return 0;
	origin = &unpacking->origins[unpacking->damaged];
	return run_fail_packed(origin->run, origin->block);
}
