/*
 * memory_tier - extents of bytes in host memory, up to a limit
 *
 * What a file is to the temporary space (spill.h), without the file: extents are stored at offsets
 * that are never used again, read back whole or in parts, and given back in parts.
 *
 *	offsets   0         12K   20K                 36K
 *	          [ extent 0 ] gap [ extent 1 ........ ] gap ...
 *	              |                 |
 *	memory     mapping           mapping
 *
 * Each extent is a mapping of its own, so that the whole pages of a part go back to the system as
 * soon as the part is discarded, and the limit holds for what is really taken. Extents are a page
 * apart: a transfer never spans two of them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_tier;

/* At most limit_nbytes, counted in pages. 0, or -ENOMEM without a message. */
int memory_tier_open(uint64_t limit_nbytes, struct memory_tier **ret_tier);
/* From now on at most so much, and no less than before. Thread-safe. */
void memory_tier_raise_limit(struct memory_tier *tier, uint64_t limit_nbytes);
/* Gives everything back. NULL is fine. */
void memory_tier_close(struct memory_tier *tier);

/*
 * Store a copy of nbytes (at least 1). Returns 0, or without a message -ENOSPC when the limit would
 * be passed, -ENOMEM when the system has no memory. Thread-safe.
 */
int memory_tier_write(struct memory_tier *tier, const void *data, size_t nbytes,
		      uint64_t *ret_offset);

/* Is it a part of an extent of which not all was discarded? Thread-safe. */
bool memory_tier_contains(struct memory_tier *tier, uint64_t offset, uint64_t nbytes);

/* Read an extent or a part of one that was not discarded. Thread-safe. */
void memory_tier_read(struct memory_tier *tier, uint64_t offset, void *buffer, size_t nbytes);

/* Give whole pages of an extent back, each once. Thread-safe. */
void memory_tier_discard(struct memory_tier *tier, uint64_t offset, uint64_t nbytes);

/* Where an extent is, for another process that reads the memory of this one. */
struct extent_address {
	uint64_t offset, nbytes;
	uint64_t address;
};

/*
 * The first n of all extents that there have been, in the order of their offsets; and how many
 * these are. What of one was given back is not there. Thread-safe.
 */
size_t memory_tier_n_extents(struct memory_tier *tier);
void memory_tier_get_addresses(struct memory_tier *tier, size_t n,
			       struct extent_address *ret_addresses);

/* Bytes that could be stored more, that are taken, and the most that were. Thread-safe. */
uint64_t memory_tier_free_nbytes(struct memory_tier *tier);
uint64_t memory_tier_used_nbytes(struct memory_tier *tier);
uint64_t memory_tier_peak_nbytes(struct memory_tier *tier);
