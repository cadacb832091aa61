/*
 * peer_spill - what a rank has stored, read where it is by another one of the same machine
 * (peer_memory.h)
 *
 * What is in its memory is read from there, and what is in its files through descriptors of one's
 * own for the same files. Both are looked up by extents (spill.h), as the rank itself does.
 *
 *	the rank that stores                      the one that reads
 *	peer_spill_count(), _places(), _files()   peer_spill_open(), peer_spill_read()
 */
#pragma once

#include "io/spill/memory_tier.h"
#include "io/spill/spill.h"
#include "src/comm/peer_memory.h"

struct peer_spill;

/* What is there to be told, once all is stored. */
struct peer_spill_counts {
	uint64_t n_regions, n_files;
};
struct peer_spill_counts peer_spill_count(const struct spill *spill);

/* By file: its descriptor, or -1. */
void peer_spill_get_fds(const struct spill *spill, uint64_t n, int64_t *ret_fds);

/*
 * Of a rank that is near, with what it has told. A file that cannot be opened is none. near must
 * outlive it. Returns 0, or -ENOMEM after a message.
 */
int peer_spill_open(const struct peer_memory *peer_memory, unsigned rank,
		    struct peer_spill_counts counts, const struct extent_address *regions,
		    const int64_t *fds, struct peer_spill **ret_peer_spill);
/* NULL is fine. */
void peer_spill_close(struct peer_spill *peer_spill);

/* Can the extent be read here? NULL: no. */
bool peer_spill_can_read(const struct peer_spill *peer_spill, struct spill_extent extent);

/* If so: read it, or a part of one. Any thread. Returns 0, or a negative errno after a message. */
int peer_spill_read(const struct peer_spill *peer_spill, struct spill_extent extent, void *buffer);
