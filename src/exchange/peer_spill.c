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

struct near_store {
	const struct near *near;
	unsigned rank;
	uint64_t n_places, n_files;
	struct memory_place *places; /* by offset */
	struct file *files;
};

struct near_store_counts near_store_count(const struct spill *spill)
{
	return (struct near_store_counts){ .n_places = spill_n_places(spill),
					   .n_files = spill_n_files(spill) };
}

void near_store_get_files(const struct spill *spill, uint64_t n, int64_t *ret_descriptors)
{
	for (uint32_t i = 0; i < n; i++)
		ret_descriptors[i] = spill_descriptor(spill, i);
}

static void open_files(struct near_store *store, const int64_t *descriptors)
{
	for (uint64_t i = 0; i < store->n_files; i++) {
		struct file *file = &store->files[i];

		*file = (struct file){ .calls = &syscalls_plain, .fd = -1 };
		if (descriptors[i] >= 0 &&
		    file_open(&syscalls_plain, AT_FDCWD,
			      near_path(store->near, store->rank, (int)descriptors[i]).text,
			      O_RDONLY, 0, file) < 0)
			file->fd = -1;
	}
}

int near_store_open(const struct near *near, unsigned rank, struct near_store_counts counts,
		    const struct memory_place *places, const int64_t *descriptors,
		    struct near_store **ret_store)
{
	struct near_store *store = calloc(1, sizeof *store);

	*ret_store = store;
	if (store) {
		store->places = calloc(counts.n_places + 1, sizeof *store->places);
		store->files = calloc(counts.n_files + 1, sizeof *store->files);
	}
	if (!store || !store->places || !store->files)
		return fail(-ENOMEM, "no memory for what rank %u has stored", rank);
	store->near = near;
	store->rank = rank;
	store->n_places = counts.n_places;
	store->n_files = counts.n_files;
	memcpy(store->places, places, counts.n_places * sizeof *places);
	open_files(store, descriptors);
	return 0;
}

void near_store_close(struct near_store *store)
{
	if (!store)
		return;
	for (uint64_t i = 0; i < store->n_files; i++)
		file_close(&store->files[i]);
	free(store->places);
	free(store->files);
	free(store);
}

static bool is_in_memory(const struct near_store *store, struct spill_extent extent)
{
	return extent.file == store->n_files;
}

bool near_store_has(const struct near_store *store, struct spill_extent extent)
{
	if (!store)
		return false;
	return is_in_memory(store, extent) ||
	       (extent.file < store->n_files && store->files[extent.file].fd >= 0);
}

static int read_memory(const struct near_store *store, struct spill_extent extent, void *buffer)
{
	const uint64_t i = begins_find(store->places, sizeof *store->places,
				       offsetof(struct memory_place, offset), store->n_places,
				       extent.offset);
	const struct memory_place *place = &store->places[i];

	if (i >= store->n_places || extent.offset < place->offset ||
	    extent.offset - place->offset > place->nbytes ||
	    extent.nbytes > place->nbytes - (extent.offset - place->offset))
		return fail(-EINVAL, "internal error: rank %u has nothing in memory at %" PRIu64,
			    store->rank, extent.offset);
	return near_read(store->near, store->rank, place->address + (extent.offset - place->offset),
			 buffer, extent.nbytes);
}

static int read_file(const struct near_store *store, struct spill_extent extent, void *buffer)
{
	const int r =
		file_read_at(&store->files[extent.file], extent.offset, buffer, extent.nbytes);
	/* A rank that fails gives its space back: what is read then is not what it has stored. */
	const int standing = near_confirm(store->near, store->rank);

	if (standing < 0)
		return standing;
	return r < 0 ? fail(r,
			    "a temporary file of rank %u: %" PRIu64 " bytes at %" PRIu64
			    " cannot be read: %m; check the disk",
			    store->rank, extent.nbytes, extent.offset) :
		       0;
}

int near_store_read(const struct near_store *store, struct spill_extent extent, void *buffer)
{
	return is_in_memory(store, extent) ? read_memory(store, extent, buffer) :
					     read_file(store, extent, buffer);
}
