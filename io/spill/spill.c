/*
 * spill - the temporary space (see spill.h)
 *
 * What is stored goes to memory as long as that has room, and else to a file (spill_placement.c).
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "io/file/direct_io.h"
#include "io/spill/spill_internal.h"
#include "src/base/diagnostics.h"

static void punch_spill_file(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct spill *spill = context;
	struct spill_file *f = &spill->files[file];

	if (file_punch_hole(&f->file, offset, nbytes) < 0)
		return;
	pthread_mutex_lock(&spill->lock);
	spill->used_nbytes -= nbytes < spill->used_nbytes ? nbytes : spill->used_nbytes;
	f->full_error = 0;
	pthread_mutex_unlock(&spill->lock);
}

int spill_open(const struct syscalls *calls, const char *const *directories, size_t n,
	       uint64_t limit_nbytes, uint64_t memory_nbytes, struct spill **ret_spill)
{
	struct spill *spill = calloc(1, sizeof *spill + 2 * n * sizeof *spill->files);

	assert(n > 0);
	if (!spill || memory_tier_open(memory_nbytes, &spill->memory) < 0 ||
	    hole_punch_open(punch_spill_file, spill, &spill->hole_punch) < 0) {
		memory_tier_close(spill ? spill->memory : NULL);
		free(spill);
		return fail(-ENOMEM, "no memory for the names of %zu temporary directories", n);
	}
	spill->calls = calls;
	spill->limit_nbytes = limit_nbytes;
	spill->n_directories = spill->n_files = n;
	pthread_mutex_init(&spill->lock, NULL);
	for (size_t i = 0; i < 2 * n; i++)
		spill_file_init(&spill->files[i], calls, directories[i % n]);
	*ret_spill = spill;
	return 0;
}

int spill_open_persistent(const struct file *file, const char *const *directory,
			  uint64_t end_nbytes, uint64_t used_nbytes, uint64_t limit_nbytes,
			  struct spill **ret_spill)
{
	struct spill *spill;
	int r = spill_open(file->calls, directory, 1, limit_nbytes, 0, &spill);

	if (r < 0)
		return r;
	spill->is_persistent = true;
	spill->files[0].file = *file;
	spill->files[0].end = spill_round_up_to_page(end_nbytes);
	spill->used_nbytes = spill->peak_nbytes = used_nbytes;
	*ret_spill = spill;
	return 0;
}

int spill_open_remote(const struct spill_remote *remote, struct spill **ret_spill)
{
	int r = spill_open(&syscalls_plain, &remote->name, 1, 0, 0, ret_spill);

	if (r < 0)
		return r;
	(*ret_spill)->is_persistent = true;
	(*ret_spill)->remote = *remote;
	return 0;
}

/* Let the files from `first` on pass by the cache. */
static void bypass_cache_from(struct spill *spill, size_t first)
{
	for (size_t i = first; i < spill->n_files; i++)
		spill_file_bypass_cache(&spill->files[i]);
	/* Without a queue transfers are as right. */
	io_queue_open(DIRECT_QUEUE_DEPTH, &spill->queue);
}

void spill_bypass_cache(struct spill *spill)
{
	bypass_cache_from(spill, 0);
}

void spill_disable_preallocation(struct spill *spill)
{
	for (size_t i = 0; i < spill->n_files; i++)
		spill->files[i].skip_preallocation = true;
}

/*
 * A second file in each directory is to the scheduler like another disk. If one cannot be had, or
 * not be written past the cache, there are none.
 */
void spill_use_adaptive_io(struct spill *spill)
{
	const size_t n = spill->n_directories;
	bool all_open = true;

	if (spill->is_persistent)
		return;
	spill->n_files = 2 * n;
	bypass_cache_from(spill, n);
	for (size_t i = n; i < spill->n_files && all_open; i++)
		all_open = spill_file_open(&spill->files[i]) == 0 && spill->files[i].direct.fd >= 0;
	if (all_open)
		return;
	for (size_t i = n; i < spill->n_files; i++)
		spill_file_close(&spill->files[i]);
	spill->n_files = n;
}

bool spill_is_persistent(const struct spill *spill)
{
	return spill->is_persistent;
}

void spill_set_advice(struct spill *spill, const char *advice)
{
	spill->advice = advice;
}

const char *spill_advice(const struct spill *spill)
{
	return spill->advice;
}

void spill_record_damage(struct spill *spill, uint64_t offset)
{
	atomic_store(&spill->damage_offset_plus_one, offset + 1);
}

bool spill_get_damage(const struct spill *spill, uint64_t *ret_offset)
{
	const uint64_t offset_plus_one = atomic_load(&spill->damage_offset_plus_one);

	*ret_offset = offset_plus_one - 1;
	return offset_plus_one > 0;
}

int spill_sync(struct spill *spill)
{
	int r = 0;

	for (size_t i = 0; i < spill->n_files && r == 0; i++) {
		struct spill_file *f = &spill->files[i];
		struct file file;

		pthread_mutex_lock(&spill->lock);
		file = f->file;
		pthread_mutex_unlock(&spill->lock);
		if (file.fd >= 0 && (r = file_sync(&file)) < 0)
			fail(r, "%s: cannot bring temporary data to stable storage: %m",
			     f->directory);
	}
	return r;
}

void spill_close(struct spill *spill)
{
	if (!spill)
		return;
	if (spill->is_persistent)
		hole_punch_drain(spill->hole_punch, 0);
	hole_punch_close(spill->hole_punch);
	io_queue_close(spill->queue);
	for (size_t i = 0; i < spill->n_files; i++)
		spill_file_close(&spill->files[i]);
	memory_tier_close(spill->memory);
	pthread_mutex_destroy(&spill->lock);
	free(spill);
}

int spill_write(struct spill *spill, const void *data, size_t nbytes,
		struct spill_extent *ret_extent)
{
	uint64_t offset;

	/* Whatever the reason, no memory is no error as long as there are files. */
	if (memory_tier_write(spill->memory, data, nbytes, &offset) < 0)
		return spill_write_to_file(spill, data, nbytes, ret_extent);
	*ret_extent = (struct spill_extent){ .file = (uint32_t)spill->n_files,
					     .offset = offset,
					     .nbytes = nbytes };
	return 0;
}

static bool extent_is_in_memory(const struct spill *spill, struct spill_extent extent)
{
	assert(extent.file <= spill->n_files);
	return extent.file == spill->n_files;
}

/* What is under the lock, for who has it not. */
static uint64_t read_counter(struct spill *spill, const uint64_t *counter)
{
	uint64_t value;

	pthread_mutex_lock(&spill->lock);
	value = *counter;
	pthread_mutex_unlock(&spill->lock);
	return value;
}

bool spill_contains(struct spill *spill, struct spill_extent extent)
{
	uint64_t end;

	if (extent.file >= spill->n_files)
		return extent.file == spill->n_files &&
		       memory_tier_contains(spill->memory, extent.offset, extent.nbytes);
	end = read_counter(spill, &spill->files[extent.file].end);
	return extent.offset <= end && extent.nbytes <= end - extent.offset;
}

int spill_read(struct spill *spill, struct spill_extent extent, void *buffer)
{
	if (spill->remote.read)
		return spill->remote.read(spill->remote.context, extent, buffer);
	if (extent_is_in_memory(spill, extent)) {
		memory_tier_read(spill->memory, extent.offset, buffer, extent.nbytes);
		return 0;
	}
	atomic_fetch_add(&spill->read_nbytes, extent.nbytes);
	return spill_file_read(&spill->files[extent.file], spill->queue, extent.offset, buffer,
			       extent.nbytes);
}

struct spill_traffic spill_traffic(const struct spill *spill)
{
	return (struct spill_traffic){ .written_nbytes = atomic_load(&spill->written_nbytes),
				       .read_nbytes = atomic_load(&spill->read_nbytes) };
}

void spill_discard(struct spill *spill, struct spill_extent extent)
{
	assert(extent.offset % SPILL_ALIGN_NBYTES == 0);
	if (extent.nbytes == 0 || spill->remote.read)
		return;
	extent.nbytes = spill_round_up_to_page(extent.nbytes);
	if (extent_is_in_memory(spill, extent)) {
		memory_tier_discard(spill->memory, extent.offset, extent.nbytes);
		return;
	}
	hole_punch_add(spill->hole_punch, extent.file, extent.offset, extent.nbytes,
		       spill_hole_punch_limits(spill, &spill->files[extent.file], extent.nbytes));
}

size_t spill_n_memory_extents(const struct spill *spill)
{
	return memory_tier_n_extents(spill->memory);
}

void spill_get_memory_addresses(const struct spill *spill, size_t n,
				struct extent_address *ret_addresses)
{
	memory_tier_get_addresses(spill->memory, n, ret_addresses);
}

uint32_t spill_n_files(const struct spill *spill)
{
	return (uint32_t)spill->n_files;
}

int spill_descriptor(const struct spill *spill, uint32_t file)
{
	return spill->files[file].file.fd;
}

const char *spill_directory(const struct spill *spill, uint32_t file)
{
	if (spill->remote.read)
		return spill->remote.name;
	assert(file <= spill->n_files);
	return file < spill->n_files ? spill->files[file].directory : "memory";
}

uint64_t spill_used_nbytes_nowait(struct spill *spill)
{
	return read_counter(spill, &spill->used_nbytes);
}

uint64_t spill_used_nbytes(struct spill *spill)
{
	hole_punch_drain(spill->hole_punch, 0);
	return spill_used_nbytes_nowait(spill);
}

uint64_t spill_peak_nbytes(struct spill *spill)
{
	return read_counter(spill, &spill->peak_nbytes);
}

void spill_raise_memory_limit(struct spill *spill, uint64_t nbytes)
{
	memory_tier_raise_limit(spill->memory, nbytes);
}

uint64_t spill_memory_nbytes(struct spill *spill)
{
	return memory_tier_used_nbytes(spill->memory);
}

uint64_t spill_memory_peak_nbytes(struct spill *spill)
{
	return memory_tier_peak_nbytes(spill->memory);
}
