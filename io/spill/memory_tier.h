/*
 * memory_tier.h - extents of bytes in host memory, up to a limit
 *
 * The memory of a spill (spill.h) works like a file: extents are stored at offsets that are not
 * reused, read as a whole or in parts, and discarded in parts.
 *
 *	offsets   0         12K   20K                 36K
 *	          [ extent 0 ] gap [ extent 1 ........ ] gap ...
 *	              |                 |
 *	memory     mapping           mapping
 *
 * Each extent is a mapping of its own, so that the whole pages of a part return to the system as
 * soon as the part is discarded, and the limit holds for the memory that is really in use. The gap
 * of a page keeps a transfer from spanning two extents.
 *
 * Thread-safe. Errors are not reported.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_tier;

/* limit_nbytes: counted in pages. Returns 0 or -ENOMEM. */
int memory_tier_open(uint64_t limit_nbytes, struct memory_tier **ret_tier);

/* Raise the limit; a lower value is ignored. */
void memory_tier_raise_limit(struct memory_tier *tier, uint64_t limit_nbytes);

/* Free everything. NULL is ignored. */
void memory_tier_close(struct memory_tier *tier);

/*
 * Store a copy of nbytes > 0. Returns 0, -ENOSPC if the limit would be exceeded, or -ENOMEM if the
 * system has no memory.
 */
int memory_tier_write(struct memory_tier *tier, const void *data, size_t nbytes,
		      uint64_t *ret_offset);

/* Return whether the bytes are part of an extent that is not completely discarded. */
bool memory_tier_contains(struct memory_tier *tier, uint64_t offset, uint64_t nbytes);

/* Read an extent, or part of one, that was not discarded. */
void memory_tier_read(struct memory_tier *tier, uint64_t offset, void *buffer, size_t nbytes);

/* Discard whole pages of an extent, each once. */
void memory_tier_discard(struct memory_tier *tier, uint64_t offset, uint64_t nbytes);

/* The address of an extent, for a process that reads the memory of this one. */
struct extent_address {
	uint64_t offset, nbytes;
	uint64_t address;
};

/*
 * The number of all extents ever stored, and the addresses of the first n in the order of offsets.
 * Discarded parts are not mapped.
 */
size_t memory_tier_n_extents(struct memory_tier *tier);
void memory_tier_get_addresses(struct memory_tier *tier, size_t n,
			       struct extent_address *ret_addresses);

/* Bytes that could still be stored, and bytes in use. */
uint64_t memory_tier_free_nbytes(struct memory_tier *tier);
uint64_t memory_tier_used_nbytes(struct memory_tier *tier);
