/*
 * peer_spill - what a rank has stored, read where it is by another one of the same machine (peer_memory.h)
 *
 * What is in its memory is read from there, and what is in its files through descriptors of one's
 * own for the same files. Both are looked up by extents (spill.h), as the rank itself does.
 *
 *	the rank that stores                      the one that reads
 *	near_store_count(), _places(), _files()   near_store_open(), near_store_read()
 */
#pragma once

#include "io/spill/memory_tier.h"
#include "io/spill/spill.h"
#include "src/comm/peer_memory.h"

struct near_store;

/* What is there to be told, once all is stored. */
struct near_store_counts {
	uint64_t n_places, n_files;
};
struct near_store_counts near_store_count(const struct spill *spill);

/* By file: its descriptor, or -1. */
void near_store_get_files(const struct spill *spill, uint64_t n, int64_t *ret_descriptors);

/*
 * Of a rank that is near, with what it has told. A file that cannot be opened is none. near must
 * outlive it. Returns 0, or -ENOMEM after a message.
 */
int near_store_open(const struct near *near, unsigned rank, struct near_store_counts counts,
		    const struct memory_place *places, const int64_t *descriptors,
		    struct near_store **ret_store);
/* NULL is fine. */
void near_store_close(struct near_store *store);

/* Can the extent be read here? NULL: no. */
bool near_store_has(const struct near_store *store, struct spill_extent extent);

/* If so: read it, or a part of one. Any thread. Returns 0, or a negative errno after a message. */
int near_store_read(const struct near_store *store, struct spill_extent extent, void *buffer);
