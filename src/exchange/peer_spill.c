/*
 * peer_spill - what a rank of the same machine has stored (see peer_spill.h)
 */
#include "src/exchange/peer_spill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/interval_search.h"
#include "src/base/diagnostics.h"

struct peer_spill {
	const struct peer_memory *peer_memory;
	unsigned rank;
	uint64_t n_regions, n_files;
	struct extent_address *regions; /* by offset */
	struct file *files;
};

struct peer_spill_counts peer_spill_count(const struct spill *spill)
{
	return (struct peer_spill_counts){ .n_regions = spill_n_memory_extents(spill),
					   .n_files = spill_n_files(spill) };
}

void peer_spill_get_fds(const struct spill *spill, uint64_t n, int64_t *ret_fds)
{
	for (uint32_t i = 0; i < n; i++)
		ret_fds[i] = spill_descriptor(spill, i);
}

static void open_peer_files(struct peer_spill *peer_spill, const int64_t *fds)
{
	for (uint64_t i = 0; i < peer_spill->n_files; i++) {
		struct file *file = &peer_spill->files[i];

		*file = (struct file){ .calls = &syscalls_plain, .fd = -1 };
		if (fds[i] >= 0 && file_open(&syscalls_plain, AT_FDCWD,
					     peer_memory_fd_path(peer_spill->peer_memory,
								 peer_spill->rank, (int)fds[i])
						     .text,
					     O_RDONLY, 0, file) < 0)
			file->fd = -1;
	}
}

int peer_spill_open(const struct peer_memory *peer_memory, unsigned rank,
		    struct peer_spill_counts counts, const struct extent_address *regions,
		    const int64_t *fds, struct peer_spill **ret_peer_spill)
{
	struct peer_spill *peer_spill = calloc(1, sizeof *peer_spill);

	*ret_peer_spill = peer_spill;
	if (peer_spill) {
		peer_spill->regions = calloc(counts.n_regions + 1, sizeof *peer_spill->regions);
		peer_spill->files = calloc(counts.n_files + 1, sizeof *peer_spill->files);
	}
	if (!peer_spill || !peer_spill->regions || !peer_spill->files)
		return fail(-ENOMEM, "no memory for what rank %u has stored", rank);
	peer_spill->peer_memory = peer_memory;
	peer_spill->rank = rank;
	peer_spill->n_regions = counts.n_regions;
	peer_spill->n_files = counts.n_files;
	memcpy(peer_spill->regions, regions, counts.n_regions * sizeof *regions);
	open_peer_files(peer_spill, fds);
	return 0;
}

void peer_spill_close(struct peer_spill *peer_spill)
{
	if (!peer_spill)
		return;
	for (uint64_t i = 0; i < peer_spill->n_files; i++)
		file_close(&peer_spill->files[i]);
	free(peer_spill->regions);
	free(peer_spill->files);
	free(peer_spill);
}

static bool is_in_memory(const struct peer_spill *peer_spill, struct spill_extent extent)
{
	return extent.file == peer_spill->n_files;
}

bool peer_spill_can_read(const struct peer_spill *peer_spill, struct spill_extent extent)
{
	if (!peer_spill)
		return false;
	return is_in_memory(peer_spill, extent) ||
	       (extent.file < peer_spill->n_files && peer_spill->files[extent.file].fd >= 0);
}

static int read_peer_region(const struct peer_spill *peer_spill, struct spill_extent extent,
			    void *buffer)
{
	const uint64_t i = find_interval(peer_spill->regions, sizeof *peer_spill->regions,
					 offsetof(struct extent_address, offset),
					 peer_spill->n_regions, extent.offset);
	const struct extent_address *region = &peer_spill->regions[i];

	if (i >= peer_spill->n_regions || extent.offset < region->offset ||
	    extent.offset - region->offset > region->nbytes ||
	    extent.nbytes > region->nbytes - (extent.offset - region->offset))
		return fail(-EINVAL, "internal error: rank %u has nothing in memory at %" PRIu64,
			    peer_spill->rank, extent.offset);
	return peer_memory_read(peer_spill->peer_memory, peer_spill->rank,
				region->address + (extent.offset - region->offset), buffer,
				extent.nbytes);
}

static int read_peer_file(const struct peer_spill *peer_spill, struct spill_extent extent,
			  void *buffer)
{
	const int r =
		file_read_at(&peer_spill->files[extent.file], extent.offset, buffer, extent.nbytes);
	/* A rank that fails gives its space back: what is read then is not what it has stored. */
	const int alive = peer_memory_check_alive(peer_spill->peer_memory, peer_spill->rank);

	if (alive < 0)
		return alive;
	return r < 0 ? fail(r,
			    "a temporary file of rank %u: %" PRIu64 " bytes at %" PRIu64
			    " cannot be read: %m; check the disk",
			    peer_spill->rank, extent.nbytes, extent.offset) :
		       0;
}

int peer_spill_read(const struct peer_spill *peer_spill, struct spill_extent extent, void *buffer)
{
	return is_in_memory(peer_spill, extent) ? read_peer_region(peer_spill, extent, buffer) :
						  read_peer_file(peer_spill, extent, buffer);
}
