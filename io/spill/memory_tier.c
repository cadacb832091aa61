/*
 * memory_tier.c - extents of bytes in host memory, up to a limit (see memory_tier.h)
 *
 * Offsets only grow, so the table of extents is sorted by construction, and a binary search finds
 * the extent of an offset. Entries are small, and are kept after their extent is discarded.
 *
 * Memory is accounted under the lock, but mapped, filled and read outside of it, because the full
 * bandwidth of memory takes several threads.
 */
#include "io/spill/memory_tier.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/base/array.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"

enum { PAGE_NBYTES = 4096, HUGE_PAGE_NBYTES = 2 << 20 };

struct memory_extent {
	uint64_t offset;
	char *memory;
	uint64_t mapped_nbytes; /* whole pages */
	uint64_t live_nbytes;   /* of these, not discarded yet */
};

struct memory_tier {
	pthread_mutex_t lock;
	/* Protected by lock. */
	uint64_t limit_nbytes;
	struct memory_extent *extents; /* by offset */
	size_t n_extents, n_allocated;
	uint64_t end; /* the offset of the next extent */
	uint64_t used_nbytes;
};

int memory_tier_open(uint64_t limit_nbytes, struct memory_tier **ret_tier)
{
	struct memory_tier *tier = calloc(1, sizeof *tier);

	if (!tier)
		return -ENOMEM;
	tier->limit_nbytes = limit_nbytes;
	pthread_mutex_init(&tier->lock, NULL);
	*ret_tier = tier;
	return 0;
}

void memory_tier_raise_limit(struct memory_tier *tier, uint64_t limit_nbytes)
{
	SCOPED_LOCK(&tier->lock);
	if (tier->limit_nbytes < limit_nbytes)
		tier->limit_nbytes = limit_nbytes;
}

void memory_tier_close(struct memory_tier *tier)
{
	if (!tier)
		return;
	for (size_t i = 0; i < tier->n_extents; i++)
		if (tier->extents[i].live_nbytes)
			munmap(tier->extents[i].memory, tier->extents[i].mapped_nbytes);
	free(tier->extents);
	pthread_mutex_destroy(&tier->lock);
	free(tier);
}

static int charge_memory(struct memory_tier *tier, uint64_t nbytes)
{
	SCOPED_LOCK(&tier->lock);
	if (tier->limit_nbytes - tier->used_nbytes < nbytes)
		return -ENOSPC;
	tier->used_nbytes += nbytes;
	return 0;
}

static int append_extent(struct memory_tier *tier, struct memory_extent extent,
			 uint64_t *ret_offset)
{
	bool has_room;

	pthread_mutex_lock(&tier->lock);
	has_room = array_reserve(&tier->extents, &tier->n_allocated, tier->n_extents + 1,
				 sizeof extent);
	if (has_room) {
		extent.offset = tier->end;
		tier->end += extent.mapped_nbytes + PAGE_NBYTES;
		tier->extents[tier->n_extents++] = extent;
		*ret_offset = extent.offset;
	}
	pthread_mutex_unlock(&tier->lock);
	return has_room ? 0 : -ENOMEM;
}

/* Huge pages take fewer page faults, and are cleared faster. */
static char *map_anonymous(uint64_t nbytes)
{
	void *memory =
		mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	if (nbytes >= HUGE_PAGE_NBYTES)
		madvise(memory, nbytes, MADV_HUGEPAGE);
	return memory;
}

int memory_tier_write(struct memory_tier *tier, const void *data, size_t nbytes,
		      uint64_t *ret_offset)
{
	const uint64_t mapped_nbytes = round_up(nbytes, PAGE_NBYTES);
	struct memory_extent extent = { .mapped_nbytes = mapped_nbytes,
					.live_nbytes = mapped_nbytes };
	int r = charge_memory(tier, mapped_nbytes);

	if (r < 0)
		return r;
	extent.memory = map_anonymous(mapped_nbytes);
	if (extent.memory) {
		memcpy(extent.memory, data, nbytes);
		r = append_extent(tier, extent, ret_offset);
		if (r < 0)
			munmap(extent.memory, mapped_nbytes);
	} else {
		r = -ENOMEM;
	}
	if (r < 0) {
		SCOPED_LOCK(&tier->lock);
		tier->used_nbytes -= mapped_nbytes;
	}
	return r;
}

/*
 * Find the extent of an offset. Requires the lock; the pointer is valid until the lock is released.
 */
static struct memory_extent *find_memory_extent(struct memory_tier *tier, uint64_t offset)
{
	const size_t i = find_interval(tier->extents, sizeof *tier->extents,
				       offsetof(struct memory_extent, offset), tier->n_extents,
				       offset);

	assert(i < tier->n_extents && tier->extents[i].offset <= offset);
	return &tier->extents[i];
}

bool memory_tier_contains(struct memory_tier *tier, uint64_t offset, uint64_t nbytes)
{
	const struct memory_extent *extent;
	uint64_t begin;

	SCOPED_LOCK(&tier->lock);
	if (tier->n_extents == 0 || tier->extents[0].offset > offset)
		return false;
	extent = find_memory_extent(tier, offset);
	begin = offset - extent->offset;
	return extent->live_nbytes > 0 && begin <= extent->mapped_nbytes &&
	       nbytes <= extent->mapped_nbytes - begin;
}

void memory_tier_read(struct memory_tier *tier, uint64_t offset, void *buffer, size_t nbytes)
{
	const struct memory_extent *extent;
	const char *from;

	pthread_mutex_lock(&tier->lock);
	extent = find_memory_extent(tier, offset);
	assert(offset + nbytes <= extent->offset + extent->mapped_nbytes);
	from = extent->memory + (offset - extent->offset);
	pthread_mutex_unlock(&tier->lock);
	memcpy(buffer, from, nbytes);
}

void memory_tier_discard(struct memory_tier *tier, uint64_t offset, uint64_t nbytes)
{
	struct memory_extent *extent;

	assert(offset % PAGE_NBYTES == 0 && nbytes % PAGE_NBYTES == 0);
	SCOPED_LOCK(&tier->lock);
	extent = find_memory_extent(tier, offset);
	assert(nbytes <= extent->live_nbytes);
	extent->live_nbytes -= nbytes;
	if (extent->live_nbytes)
		madvise(extent->memory + (offset - extent->offset), nbytes, MADV_DONTNEED);
	else
		munmap(extent->memory, extent->mapped_nbytes);
	tier->used_nbytes -= nbytes;
}

size_t memory_tier_n_extents(struct memory_tier *tier)
{
	SCOPED_LOCK(&tier->lock);
	return tier->n_extents;
}

void memory_tier_get_addresses(struct memory_tier *tier, size_t n,
			       struct extent_address *ret_addresses)
{
	SCOPED_LOCK(&tier->lock);
	assert(n <= tier->n_extents);
	for (size_t i = 0; i < n; i++)
		ret_addresses[i] =
			(struct extent_address){ .offset = tier->extents[i].offset,
						 .nbytes = tier->extents[i].mapped_nbytes,
						 .address = (uintptr_t)tier->extents[i].memory };
}

uint64_t memory_tier_free_nbytes(struct memory_tier *tier)
{
	SCOPED_LOCK(&tier->lock);
	return tier->limit_nbytes - tier->used_nbytes;
}

uint64_t memory_tier_used_nbytes(struct memory_tier *tier)
{
	SCOPED_LOCK(&tier->lock);
	return tier->used_nbytes;
}
