/*
 * scratch.h - divide one allocation into several arrays
 *
 * A function allocates its arrays one after the other. Without memory it computes the size:
 *
 *	buffers->a = scratch_allocate(scratch, &nbytes, n * sizeof *buffers->a);
 *	buffers->b = scratch_allocate(scratch, &nbytes, m);
 *	return nbytes;
 */
#pragma once

#include <stddef.h>

/* The alignment of device memory (src/device/backend.h). */
enum { SCRATCH_ALIGNMENT = 256 };

/* Return nbytes at *offset and advance the offset, aligned. scratch NULL: only advance it. */
static inline void *scratch_allocate(char *scratch, size_t *offset, size_t nbytes)
{
	void *const block = scratch ? scratch + *offset : NULL;

	*offset += (nbytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
	return block;
}
