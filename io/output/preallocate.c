/*
 * preallocate.c - space and pages of a file, ahead of its writers (see preallocate.h)
 */
#include "io/output/preallocate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/file/file.h"
#include "io/file/mapping.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"
#include "src/base/thread_pool.h"

enum {
	PREALLOCATE_STEPS = 512,
	PREALLOCATE_MAX_STEPS = 64 << 10, /* bounds the memory for the largest files */
};
static const uint64_t min_step_nbytes = UINT64_C(4) << 20, max_step_nbytes = UINT64_C(64) << 20;

void preallocate_init(struct preallocation *preallocation)
{
	*preallocation = (struct preallocation){ 0 };
	pthread_mutex_init(&preallocation->lock, NULL);
}

void preallocate_destroy(struct preallocation *preallocation)
{
	free(preallocation->step_is_allocated);
	pthread_mutex_destroy(&preallocation->lock);
}

static uint64_t choose_step_nbytes(uint64_t total_nbytes)
{
	const uint64_t step = total_nbytes / PREALLOCATE_STEPS;

	if (step < min_step_nbytes)
		return min_step_nbytes;
	if (total_nbytes / max_step_nbytes >= PREALLOCATE_MAX_STEPS)
		return (total_nbytes / PREALLOCATE_MAX_STEPS / min_step_nbytes + 1) *
		       min_step_nbytes;
	return step < max_step_nbytes ? step : max_step_nbytes;
}

/* Requires the lock, or that no other thread uses the preallocation yet. */
static int preallocate_step(struct preallocation *preallocation, uint64_t step)
{
	const uint64_t begin = step * preallocation->step_nbytes;
	const uint64_t remaining = preallocation->total_nbytes - begin;
	const uint64_t nbytes = remaining < preallocation->step_nbytes ? remaining :
									 preallocation->step_nbytes;
	int r = 0;

	if (preallocation->step_is_allocated[step])
		return 0;
	r = file_preallocate(preallocation->file, preallocation->base + begin, nbytes);
	if (r < 0)
		return r;
	preallocation->step_is_allocated[step] = true;
	if (begin + nbytes > preallocation->extended_nbytes)
		preallocation->extended_nbytes = begin + nbytes;
	return 0;
}

static uint64_t query_free_space(const struct file *file)
{
	struct statvfs space;

	if (fstatvfs(file->fd, &space) < 0 || space.f_blocks == 0)
		return UINT64_MAX;
	return (uint64_t)(geteuid() == 0 ? space.f_bfree : space.f_bavail) * space.f_frsize;
}

uint64_t preallocate_free_space(const struct file *file, uint64_t wanted_nbytes)
{
	struct free_space_poll poll = { 0 };
	uint64_t nbytes;

	do
		nbytes = query_free_space(file);
	while (free_space_should_retry(&poll, nbytes, wanted_nbytes));
	return nbytes;
}

bool preallocate_is_supported(const struct file *file)
{
	uint64_t nbytes;
	const bool is_supported = file_preallocate(file, 0, 1) == 0 &&
				  file_size(file, &nbytes) == 0 && nbytes > 0;

	file_truncate(file, 0);
	return is_supported;
}

/* Return whether allocating a block past the end of the file adds to its number of blocks. */
static bool is_supported_past_end(const struct file *file, uint64_t end)
{
	struct stat before, after;
	int r;

	if (fstat(file->fd, &before) < 0)
		return false;
	r = file_preallocate_keep_size(file, end + (uint64_t)before.st_blksize, 1);
	return r == -ENOSPC ||
	       (r == 0 && fstat(file->fd, &after) == 0 && after.st_blocks > before.st_blocks);
}

int preallocate_check_growth(const struct file *file, uint64_t end, uint64_t nbytes,
			     uint64_t *ret_free_nbytes)
{
	*ret_free_nbytes = preallocate_free_space(file, nbytes);
	return *ret_free_nbytes < nbytes && is_supported_past_end(file, end) ? -ENOSPC : 0;
}

static int init_steps(struct preallocation *preallocation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes)
{
	preallocation->step_nbytes = choose_step_nbytes(total_nbytes);
	preallocation->step_is_allocated =
		calloc((total_nbytes - 1) / preallocation->step_nbytes + 1,
		       sizeof *preallocation->step_is_allocated);
	if (!preallocation->step_is_allocated)
		return -ENOMEM;
	preallocation->file = file;
	preallocation->base = base;
	preallocation->total_nbytes = total_nbytes;
	return 0;
}

int preallocate_start(struct preallocation *preallocation, const struct file *file, uint64_t base,
		      uint64_t total_nbytes, uint64_t *ret_free_nbytes)
{
	const uint64_t free_nbytes = preallocate_free_space(file, total_nbytes);
	const bool lacks_space = free_nbytes < total_nbytes;
	uint64_t nbytes;
	int r;

	*ret_free_nbytes = free_nbytes;
	if (total_nbytes == 0 || preallocation->step_is_allocated)
		return 0;
	r = init_steps(preallocation, file, base, total_nbytes);
	if (r < 0)
		return r;
	/* A file that will not fit must not take a step, perhaps all there is, from others. */
	r = lacks_space ? file_preallocate(file, base, 1) : preallocate_step(preallocation, 0);
	/* Without an effect on the size nothing was allocated. */
	preallocation->is_supported =
		r == 0 && file_size(file, &nbytes) == 0 &&
		nbytes >= base + (lacks_space ? 1 : preallocation->extended_nbytes);
	return lacks_space && (preallocation->is_supported || r < 0) ? -ENOSPC : r;
}

void preallocate_start_shared(struct preallocation *preallocation, const struct file *file,
			      uint64_t base, uint64_t total_nbytes)
{
	if (total_nbytes == 0)
		return;
	if (!preallocation->step_is_allocated &&
	    init_steps(preallocation, file, base, total_nbytes) < 0)
		return;
	preallocation->is_supported = true;
	preallocation->extended_nbytes = preallocation->total_nbytes;
}

bool preallocate_range(struct preallocation *preallocation, uint64_t begin, uint64_t end)
{
	bool is_allocated = preallocation->is_supported && end <= preallocation->total_nbytes;

	if (end > preallocation->total_nbytes)
		end = preallocation->total_nbytes;
	if (begin >= end)
		return is_allocated;
	SCOPED_LOCK(&preallocation->lock);
	for (uint64_t step = begin / preallocation->step_nbytes;
	     step <= (end - 1) / preallocation->step_nbytes; step++)
		if (preallocate_step(preallocation, step) < 0)
			is_allocated = false;
	return is_allocated;
}

/* --- prefaulting: the whole segments of all files are numbered, one file after the other --- */

enum { MAX_PREFAULT_THREADS = 8 };

struct prefault {
	uint64_t n_segments;
	uint64_t n_writers, segments_per_writer; /* the last writers may have fewer */

	atomic_uint_least64_t n_claimed;
	atomic_bool is_stopped;

	struct thread_group threads;

	uint32_t n_users; /* files for which prefault_stop() is still due */
	uint32_t n_files;
	struct prefault_entry {
		struct prefault_file file;
		uint64_t first_index;   /* the number of its first segment among all */
		uint64_t first_segment; /* the number of that segment within the file */
	} entries[];
};

/*
 * Find the i-th segment to prefault: the first one of each writer, then the second of each. Returns
 * false if the writer has no such segment.
 */
static bool nth_segment(const struct prefault *prefault, uint64_t i, uint64_t *ret_segment)
{
	*ret_segment =
		i % prefault->n_writers * prefault->segments_per_writer + i / prefault->n_writers;
	return *ret_segment < prefault->n_segments;
}

static bool prefault_segment(const struct prefault *prefault, uint64_t segment)
{
	/* The last entry that begins at or before the segment; files without any precede it. */
	const struct prefault_entry *entry = &prefault->entries[find_interval(
		prefault->entries, sizeof *prefault->entries,
		offsetof(struct prefault_entry, first_index), prefault->n_files, segment)];
	const uint64_t offset =
		(entry->first_segment + segment - entry->first_index) * MMAP_SEGMENT_NBYTES;
	const uint64_t base = entry->file.preallocation->base;
	struct mapping mapping;

	if (!preallocate_range(entry->file.preallocation, offset - base,
			       offset - base + MMAP_SEGMENT_NBYTES) ||
	    mapping_open_writable(entry->file.file, offset, MMAP_SEGMENT_NBYTES, &mapping) < 0)
		return false;
	mapping_populate(&mapping, 0, MMAP_SEGMENT_NBYTES);
	mapping_close(&mapping);
	return true;
}

/* If one segment fails, the others are not tried. */
static void *prefault_main(void *context)
{
	struct prefault *prefault = context;
	const uint64_t n = prefault->n_writers * prefault->segments_per_writer;
	uint64_t i, segment;

	while (!atomic_load(&prefault->is_stopped) &&
	       (i = atomic_fetch_add(&prefault->n_claimed, 1)) < n)
		if (nth_segment(prefault, i, &segment) && !prefault_segment(prefault, segment))
			atomic_store(&prefault->is_stopped, true);
	return NULL;
}

static void add_prefault_file(struct prefault *prefault, struct prefault_file file)
{
	const uint64_t base = file.preallocation->base,
		       end = base + file.preallocation->total_nbytes;
	const uint64_t first_segment = (base + MMAP_SEGMENT_NBYTES - 1) / MMAP_SEGMENT_NBYTES;

	prefault->entries[prefault->n_files++] =
		(struct prefault_entry){ file, prefault->n_segments, first_segment };
	if (end / MMAP_SEGMENT_NBYTES > first_segment)
		prefault->n_segments += end / MMAP_SEGMENT_NBYTES - first_segment;
}

int prefault_start(const struct prefault_file *files, uint32_t n, uint32_t n_writers,
		   unsigned n_threads, struct prefault **ret_prefault)
{
	struct prefault *prefault = calloc(1, sizeof *prefault + n * sizeof *prefault->entries);
	int r;

	if (!prefault)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		add_prefault_file(prefault, files[i]);
	prefault->n_users = n;
	prefault->n_writers = n_writers;
	prefault->segments_per_writer = (prefault->n_segments + n_writers - 1) / n_writers;
	r = thread_group_start(&prefault->threads,
			       n_threads < MAX_PREFAULT_THREADS ? n_threads : MAX_PREFAULT_THREADS,
			       prefault_main, prefault, NULL);
	if (prefault->threads.n_threads == 0) {
		thread_group_join(&prefault->threads);
		free(prefault);
		return r;
	}
	*ret_prefault = prefault;
	return 0;
}

void prefault_stop(struct prefault *prefault)
{
	if (!prefault)
		return;
	atomic_store(&prefault->is_stopped, true);
	thread_group_join(&prefault->threads);
	if (--prefault->n_users == 0)
		free(prefault);
}
