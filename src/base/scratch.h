/*
 * scratch - one piece of memory, divided
 *
 * A function takes part after part; called without memory it says how much that will be:
 *
 *	room->a = scratch_allocate(scratch, &nbytes, n * sizeof *room->a);
 *	room->b = scratch_allocate(scratch, &nbytes, m);
 *	return nbytes;
 */
#pragma once

#include <stddef.h>

/* As device memory is aligned (src/device/backend.h). */
enum { SCRATCH_ALIGNMENT = 256 };

/* The next nbytes from *offset on, aligned, of the scratch or, if that is NULL, of nothing. */
static inline void *scratch_allocate(char *scratch, size_t *offset, size_t nbytes)
{
	void *const block = scratch ? scratch + *offset : NULL;

	*offset += (nbytes + SCRATCH_ALIGNMENT - 1) / SCRATCH_ALIGNMENT * SCRATCH_ALIGNMENT;
	return block;
}
