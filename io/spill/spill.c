/*
 * spill.c - temporary space in memory and files (see spill.h)
 *
 * Offsets in files are allocated under the lock; transfers happen outside of it. When a write finds
 * its disk full, its file is marked full, the space that it had taken is released, and the same
 * data is tried on the other files. It is an error only if all are full and no discarded space
 * waits to be released (hole_punch.h). Several writers may find that out at the same time; each
 * continues for itself.
 */
#include "io/spill/spill.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/file/direct_io.h"
#include "io/file/io_queue.h"
#include "io/file/file.h"
#include "io/spill/hole_punch.h"
#include "io/spill/memory_tier.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"
#include "src/base/int_math.h"
#include "src/base/thread.h"

enum {
	MIN_DIRECT_SPILL_NBYTES = 1 << 20, /* shorter transfers are not worth direct I/O */
	/* After a read through the page cache, the kernel reads this much ahead. */
	READAHEAD_NBYTES = 512 << 10,
};

struct spill_file {
	/* Constant once anything is stored. */
	const char *directory;
	bool bypass_cache;
	bool skip_preallocation;

	/* Protected by the spill's lock; file and direct are constant once they are open. */
	struct file file;
	struct file direct;         /* opened with O_DIRECT, or closed */
	uint64_t end;               /* offset after the last extent */
	uint64_t in_flight_nbytes;  /* being written */
	uint64_t written_nbytes;    /* so far */
	uint64_t busy_ns;           /* of these writes */
	int full_error;             /* since the last release: why it is full, or 0 */
	uint64_t known_free_nbytes; /* the free space when it was last queried ... */
	uint64_t recheck_nbytes;    /* ... and the bytes to discard before the next query */
};

struct spill {
	/* Constant once anything is stored. */
	uint64_t limit_nbytes;
	size_t n_directories;
	size_t n_files; /* a multiple of n_directories; file i is in directory i % n_directories */
	bool is_persistent;
	bool is_closing;            /* see spill_begin_close() */
	struct spill_remote remote; /* read NULL: a spill of this process */
	const char *damage_hint;    /* for messages about damaged data; NULL: the default */
	struct memory_tier *memory;
	struct hole_punch *hole_punch;
	struct io_queue *queue; /* for direct I/O, or NULL */

	_Atomic uint64_t damage_offset_plus_one;      /* 0: nothing is damaged */
	_Atomic uint64_t written_nbytes, read_nbytes; /* of files */

	pthread_mutex_t lock;
	/* Protected by lock. */
	uint64_t used_nbytes; /* in whole pages */
	uint64_t peak_nbytes;
	struct spill_file files[]; /* SPILL_MAX_FILES_PER_DIRECTORY * n_directories */
};

static uint64_t round_up_to_page(uint64_t nbytes)
{
	return round_up(nbytes, SPILL_ALIGN_NBYTES);
}

/* A resumed spill may exceed the limit already. */
static uint64_t limit_remaining(const struct spill *spill, uint64_t used_nbytes)
{
	return spill->limit_nbytes > used_nbytes ? spill->limit_nbytes - used_nbytes : 0;
}

static uint64_t read_counter(struct spill *spill, const uint64_t *counter)
{
	SCOPED_LOCK(&spill->lock);
	return *counter;
}

/* --- one file --- */

/* Data must not outlive the process, so a file that keeps its name is not used. */
static int unlink_new_file(const char *path, struct file *file)
{
	const int r = file_remove(file->calls, AT_FDCWD, path, 0);

	if (r < 0) {
		file_close(file);
		warn("%s: this empty file cannot be removed: %s", path, strerror(-r));
	}
	return r;
}

/* Signals are blocked meanwhile, because handlers end the process and do not know the name. */
static int open_and_unlink(const struct syscalls *calls, const char *directory,
			   struct file *ret_file)
{
	char name[FILE_UNIQUE_NAME_SIZE];
	sigset_t previous_mask;
	char *path;
	int r;

	file_unique_name(name);
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	thread_block_signals(&previous_mask);
	r = file_open(calls, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600, ret_file);
	if (r == 0)
		r = unlink_new_file(path, ret_file);
	thread_restore_signals(&previous_mask);
	free(path);
	return r;
}

/* If the file system refuses direct I/O, the file is used without. */
static void bypass_cache_of(struct spill_file *f)
{
	f->bypass_cache = true;
	if (f->file.fd >= 0)
		file_reopen(&f->file, O_RDWR | O_DIRECT, &f->direct);
}

static int open_file(struct spill_file *f)
{
	int r = file_open(f->file.calls, AT_FDCWD, f->directory, O_RDWR | O_TMPFILE | O_EXCL, 0600,
			  &f->file);

	/* Kernels that do not know O_TMPFILE return EISDIR. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		r = open_and_unlink(f->file.calls, f->directory, &f->file);
	if (r == 0 && f->bypass_cache)
		bypass_cache_of(f);
	return r;
}

static void close_file(struct spill_file *f)
{
	file_close(&f->direct);
	file_close(&f->file);
}

/* Predict the time spent on writing, including nbytes more. */
static double expected_ns(const struct spill_file *f, uint64_t nbytes)
{
	/* A file without measurements gets the next extent, and no other until that is measured. */
	if (f->written_nbytes == 0)
		return f->in_flight_nbytes ? (double)UINT64_MAX : 0;
	return (double)f->busy_ns / (double)f->written_nbytes *
	       (double)(f->written_nbytes + f->in_flight_nbytes + nbytes);
}

static int write_file(const struct spill_file *f, struct io_queue *queue, uint64_t offset,
		      const void *data, uint64_t nbytes)
{
	/* A tenth faster than extending the file; and a full disk shows before copying. */
	int r = f->skip_preallocation ? 0 : file_preallocate(&f->file, offset, nbytes);

	if (r < 0)
		return r;
	if (f->direct.fd >= 0 && nbytes >= MIN_DIRECT_SPILL_NBYTES)
		return direct_write_at(queue, &f->direct, &f->file, offset, data, nbytes);
	r = file_write_at(&f->file, offset, data, nbytes);
	if (r == 0 && f->bypass_cache)
		file_start_writeback(&f->file, offset, nbytes);
	return r;
}

/* Short reads of uncached data go through the cache: the kernel reads ahead during the merge. */
static int read_file(const struct spill_file *f, struct io_queue *queue, uint64_t offset,
		     void *buffer, uint64_t nbytes)
{
	int r;

	if (f->direct.fd >= 0 && nbytes >= MIN_DIRECT_SPILL_NBYTES) {
		r = direct_read_at(queue, &f->direct, offset, buffer, nbytes);
		if (r != -EINVAL)
			return r;
	}
	r = file_read_at(&f->file, offset, buffer, nbytes);
	if (f->direct.fd >= 0)
		posix_fadvise(f->file.fd, (off_t)(offset + nbytes), READAHEAD_NBYTES,
			      POSIX_FADV_WILLNEED);
	return r;
}

/* --- open and close --- */

static void punch_file(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct spill *spill = context;
	struct spill_file *f = &spill->files[file];

	if (file_punch_hole(&f->file, offset, nbytes) < 0)
		return;
	SCOPED_LOCK(&spill->lock);
	spill->used_nbytes -= u64_min(nbytes, spill->used_nbytes);
	f->full_error = 0;
}

int spill_open(const struct syscalls *calls, const char *const *directories, size_t n,
	       uint64_t limit_nbytes, uint64_t memory_nbytes, struct spill **ret_spill)
{
	const size_t max_files = SPILL_MAX_FILES_PER_DIRECTORY * n;
	struct spill *spill = calloc(1, sizeof *spill + max_files * sizeof *spill->files);

	assert(n > 0);
	if (!spill || memory_tier_open(memory_nbytes, &spill->memory) < 0 ||
	    hole_punch_open(punch_file, spill, &spill->hole_punch) < 0) {
		memory_tier_close(spill ? spill->memory : NULL);
		free(spill);
		return fail(-ENOMEM, "no memory for the names of %zu temporary directories", n);
	}
	spill->limit_nbytes = limit_nbytes;
	spill->n_directories = spill->n_files = n;
	pthread_mutex_init(&spill->lock, NULL);
	for (size_t i = 0; i < max_files; i++)
		spill->files[i] = (struct spill_file){ .directory = directories[i % n],
						       .file = { .calls = calls, .fd = -1 },
						       .direct = { .calls = calls, .fd = -1 } };
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
	spill->files[0].end = round_up_to_page(end_nbytes);
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

void spill_close(struct spill *spill)
{
	if (!spill)
		return;
	if (spill->is_persistent)
		hole_punch_drain(spill->hole_punch, 0);
	hole_punch_close(spill->hole_punch);
	io_queue_close(spill->queue);
	for (size_t i = 0; i < spill->n_files; i++)
		close_file(&spill->files[i]);
	memory_tier_close(spill->memory);
	pthread_mutex_destroy(&spill->lock);
	free(spill);
}

static void bypass_cache_from(struct spill *spill, size_t first)
{
	for (size_t i = first; i < spill->n_files; i++)
		bypass_cache_of(&spill->files[i]);
	io_queue_open(&spill->queue); /* optional */
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

void spill_set_n_writers(struct spill *spill, uint32_t n)
{
	const uint64_t n_each = divide_up(n, spill->n_directories);

	if (!spill->is_persistent)
		spill->n_files =
			spill->n_directories * u64_min(n_each, SPILL_MAX_FILES_PER_DIRECTORY);
}

bool spill_bypasses_cache(const struct spill *spill)
{
	return spill->files[0].bypass_cache;
}

/*
 * To the scheduler a second file in each directory is like another disk. All directories have one
 * for direct I/O, or none.
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
		all_open = open_file(&spill->files[i]) == 0 && spill->files[i].direct.fd >= 0;
	if (all_open)
		return;
	for (size_t i = n; i < spill->n_files; i++)
		close_file(&spill->files[i]);
	spill->n_files = n;
}

bool spill_is_persistent(const struct spill *spill)
{
	return spill->is_persistent;
}

void spill_set_damage_hint(struct spill *spill, const char *hint)
{
	spill->damage_hint = hint;
}

const char *spill_damage_hint(const struct spill *spill)
{
	return spill->damage_hint;
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
			fail(r, "%s: cannot sync temporary data to stable storage: %m",
			     f->directory);
	}
	return r;
}

/* --- how much discarded space may wait to be released --- */

/*
 * Little may wait as long as space may be short, because the output grows on the same disk as fast
 * as the spill shrinks. But threads that wait for holes do not merge, and a merge in many
 * partitions would do little else. So where far more space is free than the spill takes, much more
 * may wait, and only the thread that punches is busy with it.
 *
 * Fractions of the peak: what may wait normally, and twice that at most; and what may wait if
 * AMPLE_FREE_FACTOR times the peak is free. A few MiB matter to no disk, and more than some hundred
 * MiB save no time.
 */
enum { BACKLOG_DIVISOR = 128, AMPLE_BACKLOG_DIVISOR = 16, AMPLE_FREE_FACTOR = 2 };
static const uint64_t min_backlog_nbytes = UINT64_C(4) << 20, max_backlog_nbytes = UINT64_C(256)
										   << 20;

/* Query free space each time this much was discarded, not more often: the disk may be remote. */
static const uint64_t free_space_recheck_nbytes = UINT64_C(16) << 20;

uint64_t spill_backlog_nbytes(uint64_t peak_nbytes)
{
	const uint64_t backlog_nbytes = peak_nbytes / BACKLOG_DIVISOR;

	if (backlog_nbytes < min_backlog_nbytes)
		return min_backlog_nbytes;
	return u64_min(backlog_nbytes, max_backlog_nbytes);
}

static void update_free_space(struct spill *spill, struct spill_file *f)
{
	uint64_t disk_nbytes = 0;
	struct statvfs space;

	if (fstatvfs(f->file.fd, &space) == 0)
		disk_nbytes = (uint64_t)space.f_bavail * space.f_frsize;
	SCOPED_LOCK(&spill->lock);
	f->known_free_nbytes = u64_min(limit_remaining(spill, spill->peak_nbytes), disk_nbytes);
	f->recheck_nbytes = free_space_recheck_nbytes;
}

/*
 * Requires the lock. A persistent spill releases space soon, because pending releases are lost when
 * the process is killed.
 */
static bool has_ample_free_space(const struct spill *spill, const struct spill_file *f)
{
	return !spill->is_persistent &&
	       f->known_free_nbytes >= AMPLE_FREE_FACTOR * spill->peak_nbytes;
}

/* nbytes of the file are discarded now. */
static struct hole_punch_limits hole_punch_limits(struct spill *spill, struct spill_file *f,
						  uint64_t nbytes)
{
	struct hole_punch_limits limits;
	bool is_recent;

	pthread_mutex_lock(&spill->lock);
	is_recent = f->recheck_nbytes > nbytes;
	f->recheck_nbytes -= is_recent ? nbytes : f->recheck_nbytes;
	pthread_mutex_unlock(&spill->lock);
	if (!is_recent)
		update_free_space(spill, f);

	pthread_mutex_lock(&spill->lock);
	limits.soft_nbytes = spill_backlog_nbytes(spill->peak_nbytes);
	if (has_ample_free_space(spill, f) &&
	    spill->peak_nbytes / AMPLE_BACKLOG_DIVISOR > limits.soft_nbytes)
		limits.soft_nbytes = spill->peak_nbytes / AMPLE_BACKLOG_DIVISOR;
	limits.hard_nbytes = 2 * limits.soft_nbytes;
	pthread_mutex_unlock(&spill->lock);
	return limits;
}

/*
 * Wait until an allocation of nbytes does not raise the peak because of a large backlog, which is
 * permitted only because space is ample. Requires the lock, and releases it while waiting.
 */
static void wait_below_peak(struct spill *spill, uint64_t nbytes)
{
	bool waited = true;

	while (waited && spill->used_nbytes + nbytes > spill->peak_nbytes) {
		const uint64_t max_pending_nbytes = 2 * spill_backlog_nbytes(spill->peak_nbytes);

		pthread_mutex_unlock(&spill->lock);
		waited = hole_punch_drain(spill->hole_punch, max_pending_nbytes);
		pthread_mutex_lock(&spill->lock);
	}
}

/* --- allocate space --- */

/* Return the file for the next extent, or NULL if all are full. Requires the lock. */
static struct spill_file *choose_file(struct spill *spill, uint64_t nbytes)
{
	struct spill_file *best = NULL;
	double best_ns = 0;

	for (size_t i = 0; i < spill->n_files; i++) {
		struct spill_file *f = &spill->files[i];
		const double ns = expected_ns(f, nbytes);

		if (!f->full_error && (!best || ns < best_ns)) {
			best = f;
			best_ns = ns;
		}
	}
	return best;
}

static int fail_full(struct spill *spill)
{
	char list[512] = "";
	uint64_t stored_nbytes = spill->used_nbytes;
	size_t length = 0;
	int r = -EFBIG;

	for (size_t i = 0; i < spill->n_files; i++) {
		stored_nbytes -= spill->files[i].in_flight_nbytes;
		/* A full disk is a better explanation than a limit on the size of files. */
		if (spill->files[i].full_error != -EFBIG)
			r = spill->files[i].full_error;
	}
	for (size_t i = 0; i < spill->n_directories && length < sizeof list; i++)
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
					   i ? ", " : "", spill->files[i].directory);
	return fail(r, "%s: %m: temporary files have %" PRIu64 " bytes and must grow%s", list,
		    stored_nbytes,
		    r == -EFBIG ?
			    size_limit_hint(r).text :
		    spill->is_persistent ?
			    "; make room there" :
			    "; name a directory with more space with -T (--explain prints how "
			    "much is needed)");
}

/*
 * Find a file with space. Requires the lock, and releases it while waiting for discarded space.
 * Returns 0 or -ENOSPC, reported.
 */
static int find_file_with_space(struct spill *spill, uint64_t nbytes, struct spill_file **ret_file)
{
	bool any_discarded;

	do {
		const bool within_limit = limit_remaining(spill, spill->used_nbytes) >= nbytes;

		*ret_file = choose_file(spill, nbytes);
		if (within_limit && *ret_file)
			return 0;
		pthread_mutex_unlock(&spill->lock);
		any_discarded = hole_punch_drain(spill->hole_punch, 0);
		pthread_mutex_lock(&spill->lock);
		/* Space may have been released just before there was nothing left to drain. */
	} while (any_discarded || (!*ret_file && choose_file(spill, nbytes)));
	if (!*ret_file)
		return fail_full(spill);
	return fail(-ENOSPC,
		    "temporary space: the limit of %" PRIu64
		    " bytes is too low; use a larger --temp-limit (--explain prints how much is "
		    "needed)",
		    spill->limit_nbytes);
}

/* Requires the lock. */
static int allocate_extent(struct spill *spill, size_t nbytes, struct spill_extent *ret_extent)
{
	const uint64_t aligned_nbytes = round_up_to_page(nbytes);
	struct spill_file *f;
	int r;

	wait_below_peak(spill, aligned_nbytes);
	r = find_file_with_space(spill, aligned_nbytes, &f);
	if (r < 0)
		return r;
	if (f->file.fd < 0)
		r = open_file(f);
	if (r < 0)
		return fail(r, "%s: cannot create a temporary file: %m", f->directory);
	*ret_extent = (struct spill_extent){ .file = (uint32_t)(f - spill->files),
					     .offset = f->end,
					     .nbytes = nbytes };
	f->end += aligned_nbytes;
	f->in_flight_nbytes += aligned_nbytes;
	spill->used_nbytes += aligned_nbytes;
	if (spill->peak_nbytes < spill->used_nbytes)
		spill->peak_nbytes = spill->used_nbytes;
	return 0;
}

static bool is_full_error(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

/* Write to an allocated extent; release it if that fails. */
static int write_extent(struct spill *spill, struct spill_extent extent, const void *data)
{
	struct spill_file *f = &spill->files[extent.file];
	const uint64_t aligned_nbytes = round_up_to_page(extent.nbytes);
	const uint64_t begin_ns = clock_now_ns();
	int r = write_file(f, spill->queue, extent.offset, data, extent.nbytes);

	if (r < 0)
		file_punch_hole(&f->file, extent.offset, extent.nbytes);
	SCOPED_LOCK(&spill->lock);
	f->in_flight_nbytes -= aligned_nbytes;
	if (r == 0) {
		f->written_nbytes += extent.nbytes;
		f->busy_ns += clock_now_ns() - begin_ns;
	} else {
		spill->used_nbytes -= aligned_nbytes;
	}
	if (is_full_error(r))
		f->full_error = r;
	return r;
}

/* --- store, read, discard --- */

static int write_to_file(struct spill *spill, const void *data, size_t nbytes,
			 struct spill_extent *ret_extent)
{
	struct spill_extent extent = { 0 };
	int r;

	do {
		pthread_mutex_lock(&spill->lock);
		r = allocate_extent(spill, nbytes, &extent);
		pthread_mutex_unlock(&spill->lock);
		if (r < 0)
			return r;
		r = write_extent(spill, extent, data);
	} while (is_full_error(r));

	if (r < 0)
		return fail(r, "%s: write of %zu bytes of temporary data at %" PRIu64 ": %m",
			    spill->files[extent.file].directory, nbytes, extent.offset);
	atomic_fetch_add(&spill->written_nbytes, nbytes);
	*ret_extent = extent;
	return 0;
}

int spill_write(struct spill *spill, const void *data, size_t nbytes,
		struct spill_extent *ret_extent)
{
	uint64_t offset;

	/* If memory cannot be used, use files. */
	if (memory_tier_write(spill->memory, data, nbytes, &offset) < 0)
		return write_to_file(spill, data, nbytes, ret_extent);
	*ret_extent = (struct spill_extent){ .file = (uint32_t)spill->n_files,
					     .offset = offset,
					     .nbytes = nbytes };
	return 0;
}

static bool is_in_memory(const struct spill *spill, struct spill_extent extent)
{
	assert(extent.file <= spill->n_files);
	return extent.file == spill->n_files;
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
	if (is_in_memory(spill, extent)) {
		memory_tier_read(spill->memory, extent.offset, buffer, extent.nbytes);
		return 0;
	}
	atomic_fetch_add(&spill->read_nbytes, extent.nbytes);
	return read_file(&spill->files[extent.file], spill->queue, extent.offset, buffer,
			 extent.nbytes);
}

void spill_discard(struct spill *spill, struct spill_extent extent)
{
	assert(extent.offset % SPILL_ALIGN_NBYTES == 0);
	if (extent.nbytes == 0 || spill->remote.read || spill->is_closing)
		return;
	extent.nbytes = round_up_to_page(extent.nbytes);
	if (is_in_memory(spill, extent)) {
		memory_tier_discard(spill->memory, extent.offset, extent.nbytes);
		return;
	}
	hole_punch_add(spill->hole_punch, extent.file, extent.offset, extent.nbytes,
		       hole_punch_limits(spill, &spill->files[extent.file], extent.nbytes));
}

void spill_begin_close(struct spill *spill)
{
	if (spill)
		spill->is_closing = !spill->is_persistent;
}

/* --- properties and counters --- */

struct memory_tier *spill_memory(const struct spill *spill)
{
	return spill->memory;
}

uint32_t spill_n_files(const struct spill *spill)
{
	return (uint32_t)spill->n_files;
}

int spill_descriptor(struct spill *spill, uint32_t file)
{
	SCOPED_LOCK(&spill->lock);
	return spill->files[file].file.fd;
}

const char *spill_directory(const struct spill *spill, uint32_t file)
{
	if (spill->remote.read)
		return spill->remote.name;
	assert(file <= spill->n_files);
	return file < spill->n_files ? spill->files[file].directory : "memory";
}

uint64_t spill_used_nbytes(struct spill *spill)
{
	hole_punch_drain(spill->hole_punch, 0);
	return read_counter(spill, &spill->used_nbytes);
}

uint64_t spill_peak_nbytes(struct spill *spill)
{
	return read_counter(spill, &spill->peak_nbytes);
}

void spill_get_volumes(struct spill *spill, struct stats_volumes *ret_volumes)
{
	if (!spill)
		return;
	ret_volumes->temporary_written_nbytes = atomic_load(&spill->written_nbytes);
	ret_volumes->temporary_read_nbytes = atomic_load(&spill->read_nbytes);
	ret_volumes->temporary_used_nbytes = read_counter(spill, &spill->used_nbytes);
}

/* Return whether directory i is on the same file system as an earlier one. */
static bool shares_file_system(const struct spill *spill, size_t i, dev_t device)
{
	struct stat status;

	for (size_t j = 0; j < i; j++)
		if (stat(spill->files[j].directory, &status) == 0 && status.st_dev == device)
			return true;
	return false;
}

int spill_free_nbytes(struct spill *spill, uint64_t *ret_nbytes)
{
	const uint64_t limit_nbytes = limit_remaining(spill, spill_used_nbytes(spill));
	uint64_t nbytes = 0;

	for (size_t i = 0; i < spill->n_directories; i++) {
		const char *path = spill->files[i].directory;
		struct statvfs space;
		struct stat status;

		if (stat(path, &status) < 0 || statvfs(path, &space) < 0)
			return fail(-errno, "%s: temporary directory: %m", *path ? path : "''");
		if (!shares_file_system(spill, i, status.st_dev))
			nbytes += (uint64_t)space.f_bavail * space.f_frsize;
	}
	*ret_nbytes = u64_min(nbytes, limit_nbytes) + memory_tier_free_nbytes(spill->memory);
	return 0;
}
