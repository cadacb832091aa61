/*
 * spill - the temporary space (see spill.h)
 *
 * Offsets are handed out under the lock, the transfers happen outside of it. The one subtle case is
 * a write that finds its disk full: the directory is marked, the room it had taken is punched, and
 * the same data is tried on the others; only when none is left, and nothing that was discarded
 * waits to be given back (reclaim.h), is it an error. Several writers may find that out at the same
 * time, each moves on for itself.
 */
#include "io/store/spill.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "io/file/direct.h"
#include "io/file/size_limit.h"
#include "io/store/memory_tier.h"
#include "io/store/reclaim.h"
#include "io/store/spill_file.h"
#include "src/base/clock.h"
#include "src/base/messages.h"

/*
 * Space that is discarded and not yet given back may come to about this part of the most that was
 * stored, and to twice that at worst. Some MiB are nothing to any disk, and more than some hundred
 * save no time any more.
 */
enum { LAG_PART = 128 };
static const uint64_t least_lag_nbytes = UINT64_C(4) << 20, most_lag_nbytes = UINT64_C(256) << 20;

struct spill {
	/* Set at creation. */
	const struct syscalls *calls;
	uint64_t limit_nbytes;
	size_t n_directories;
	bool is_kept;
	const char *advice;             /* about what is damaged; NULL: the usual */
	_Atomic uint64_t behind_damage; /* an offset, and one more; 0: nothing is damaged */

	/* Constant once anything is stored. */
	size_t n_files;             /* one in each directory, or two: see spill_try_both_ways() */
	struct memory_tier *memory; /* has a lock of its own, as the next */
	struct reclaim *reclaim;
	struct io_queue *queue; /* constant once anything is stored; NULL if there is none */

	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t used_nbytes; /* in whole pages, as all that is counted */
	uint64_t peak_nbytes;
	struct spill_file files[]; /* n_files: directory by directory, and all once more */
};

static uint64_t pages_up(uint64_t nbytes)
{
	return (nbytes + SPILL_ALIGN_NBYTES - 1) / SPILL_ALIGN_NBYTES * SPILL_ALIGN_NBYTES;
}

static void punch(void *context, uint32_t file, uint64_t offset, uint64_t nbytes)
{
	struct spill *spill = context;
	struct spill_file *f = &spill->files[file];

	if (file_punch(&f->file, offset, nbytes) < 0)
		return;
	pthread_mutex_lock(&spill->lock);
	spill->used_nbytes -= nbytes < spill->used_nbytes ? nbytes : spill->used_nbytes;
	f->full = 0;
	pthread_mutex_unlock(&spill->lock);
}

int spill_open(const struct syscalls *calls, const char *const *directories, size_t n,
	       uint64_t limit_nbytes, uint64_t memory_nbytes, struct spill **ret_spill)
{
	struct spill *spill = calloc(1, sizeof *spill + 2 * n * sizeof *spill->files);

	assert(n > 0);
	if (!spill || memory_tier_open(memory_nbytes, &spill->memory) < 0 ||
	    reclaim_open(punch, spill, &spill->reclaim) < 0) {
		memory_tier_close(spill ? spill->memory : NULL);
		free(spill);
		return fail(-ENOMEM, "list of temporary directories: %m");
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

int spill_open_kept(const struct file *file, const char *const *directory, uint64_t end_nbytes,
		    uint64_t used_nbytes, uint64_t limit_nbytes, struct spill **ret_spill)
{
	struct spill *spill;
	int r = spill_open(file->calls, directory, 1, limit_nbytes, 0, &spill);

	if (r < 0)
		return r;
	spill->is_kept = true;
	spill->files[0].file = *file;
	spill->files[0].end = pages_up(end_nbytes);
	spill->used_nbytes = spill->peak_nbytes = used_nbytes;
	*ret_spill = spill;
	return 0;
}

/* Let the files from `first` on pass by the cache. */
static void pass_by_cache(struct spill *spill, size_t first)
{
	for (size_t i = first; i < spill->n_files; i++)
		spill_file_pass_by_cache(&spill->files[i]);
	/* Without a queue transfers are as right. */
	io_queue_open(spill->calls, IO_QUEUE_URING, DIRECT_DEPTH, &spill->queue);
}

void spill_pass_by_cache(struct spill *spill)
{
	pass_by_cache(spill, 0);
}

/*
 * A second file in each directory is to the scheduler like another disk. If one cannot be had, or
 * not be written past the cache, there are none.
 */
void spill_try_both_ways(struct spill *spill)
{
	const size_t n = spill->n_directories;
	bool are_there = true;

	if (spill->is_kept)
		return;
	spill->n_files = 2 * n;
	pass_by_cache(spill, n);
	for (size_t i = n; i < spill->n_files && are_there; i++)
		are_there = spill_file_open(&spill->files[i]) == 0 &&
			    spill->files[i].direct.fd >= 0;
	if (are_there)
		return;
	for (size_t i = n; i < spill->n_files; i++)
		spill_file_close(&spill->files[i]);
	spill->n_files = n;
}

bool spill_is_kept(const struct spill *spill)
{
	return spill->is_kept;
}

void spill_set_advice(struct spill *spill, const char *advice)
{
	spill->advice = advice;
}

const char *spill_advice(const struct spill *spill)
{
	return spill->advice;
}

void spill_note_damage(struct spill *spill, uint64_t offset)
{
	atomic_store(&spill->behind_damage, offset + 1);
}

bool spill_damage(const struct spill *spill, uint64_t *ret_offset)
{
	const uint64_t behind = atomic_load(&spill->behind_damage);

	*ret_offset = behind - 1;
	return behind > 0;
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
	if (spill->is_kept)
		reclaim_drain(spill->reclaim);
	reclaim_close(spill->reclaim);
	io_queue_close(spill->queue);
	for (size_t i = 0; i < spill->n_files; i++)
		spill_file_close(&spill->files[i]);
	memory_tier_close(spill->memory);
	pthread_mutex_destroy(&spill->lock);
	free(spill);
}

/* The file for the next extent, NULL if all directories are full. Under the lock. */
static struct spill_file *choose_file(struct spill *spill, uint64_t nbytes)
{
	struct spill_file *best = NULL;
	double best_ns = 0;

	for (size_t i = 0; i < spill->n_files; i++) {
		struct spill_file *f = &spill->files[i];
		const double ns = spill_file_expected_ns(f, nbytes);

		if (!f->full && (!best || ns < best_ns)) {
			best = f;
			best_ns = ns;
		}
	}
	return best;
}

/* Of the limit, which a spill that is taken up may have passed already. */
static uint64_t left_nbytes(const struct spill *spill, uint64_t used_nbytes)
{
	return spill->limit_nbytes > used_nbytes ? spill->limit_nbytes - used_nbytes : 0;
}

/* A disk that is full says more than a file that may not grow. */
static int why_full(const struct spill *spill)
{
	int r = -EFBIG;

	for (size_t i = 0; i < spill->n_files; i++)
		if (spill->files[i].full != -EFBIG)
			r = spill->files[i].full;
	return r;
}

/* What can be done about it; what is kept of a checkpoint is in its directory and no other. */
static const char *advise(const struct spill *spill, int r, char text[static SIZE_LIMIT_NBYTES])
{
	if (r == -EFBIG)
		return size_limit_advice(r, text);
	return spill->is_kept ? "; make room there" : "";
}

static enum hint hint_of(const struct spill *spill, int r)
{
	return r == -EFBIG || spill->is_kept ? HINT_NONE : HINT_MORE_TEMPORARY;
}

static int fail_full(struct spill *spill, uint64_t nbytes)
{
	const int r = why_full(spill);
	char advice[SIZE_LIMIT_NBYTES], list[512] = "";
	size_t length = 0;

	for (size_t i = 0; i < spill->n_directories && length < sizeof list; i++)
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
					   i ? ", " : "", spill->files[i].directory);
	return fail_hint(r, hint_of(spill, r), 0,
			 "%s: %m: %" PRIu64
			 " more bytes of temporary space are needed besides %" PRIu64 "%s",
			 list, nbytes, spill->used_nbytes, advise(spill, r, advice));
}

static int fail_limit(struct spill *spill, uint64_t nbytes)
{
	return fail_hint(-ENOSPC, HINT_HIGHER_LIMIT, 0,
			 "temporary space: %" PRIu64 " more bytes would pass the limit of %" PRIu64
			 ", %" PRIu64 " are in use",
			 nbytes, spill->limit_nbytes, spill->used_nbytes);
}

/*
 * Under the lock, which is let go if there is something to wait for: a file with room for
 * nbytes. Returns 0, or -ENOSPC after a message.
 */
static int find_room(struct spill *spill, uint64_t nbytes, struct spill_file **ret_file)
{
	bool any_discarded;

	do {
		const bool within_limit = left_nbytes(spill, spill->used_nbytes) >= nbytes;

		*ret_file = choose_file(spill, nbytes);
		if (within_limit && *ret_file)
			return 0;
		pthread_mutex_unlock(&spill->lock);
		any_discarded = reclaim_drain(spill->reclaim);
		pthread_mutex_lock(&spill->lock);
		/* It may be that what was discarded came back before there was nothing to drain. */
	} while (any_discarded || (!*ret_file && choose_file(spill, nbytes)));
	return *ret_file ? fail_limit(spill, nbytes) : fail_full(spill, nbytes);
}

/* Take room for nbytes in some file. Under the lock. */
static int reserve(struct spill *spill, size_t nbytes, struct spill_extent *ret_extent)
{
	const uint64_t taken_nbytes = pages_up(nbytes);
	struct spill_file *f;
	int r = find_room(spill, taken_nbytes, &f);

	if (r < 0)
		return r;
	if (f->file.fd < 0)
		r = spill_file_open(f);
	if (r < 0)
		return fail(r, "%s: cannot create a temporary file: %m", f->directory);
	*ret_extent = (struct spill_extent){ .file = (uint32_t)(f - spill->files),
					     .offset = f->end,
					     .nbytes = nbytes };
	f->end += taken_nbytes;
	f->in_flight_nbytes += nbytes;
	spill->used_nbytes += taken_nbytes;
	if (spill->peak_nbytes < spill->used_nbytes)
		spill->peak_nbytes = spill->used_nbytes;
	return 0;
}

static bool means_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

/* Write into the room that was taken for it; give that back if it fails. */
static int write_extent(struct spill *spill, struct spill_extent extent, const void *data)
{
	struct spill_file *f = &spill->files[extent.file];
	const uint64_t begin_ns = clock_now_ns();
	int r = spill_file_write(f, spill->queue, extent.offset, data, extent.nbytes);

	if (r < 0)
		file_punch(&f->file, extent.offset, extent.nbytes);
	pthread_mutex_lock(&spill->lock);
	f->in_flight_nbytes -= extent.nbytes;
	if (r == 0) {
		f->written_nbytes += extent.nbytes;
		f->busy_ns += clock_now_ns() - begin_ns;
	} else {
		spill->used_nbytes -= pages_up(extent.nbytes);
	}
	if (means_full(r))
		f->full = r;
	pthread_mutex_unlock(&spill->lock);
	return r;
}

static int write_to_file(struct spill *spill, const void *data, size_t nbytes,
			 struct spill_extent *ret_extent)
{
	struct spill_extent extent = { 0 };
	int r;

	do {
		pthread_mutex_lock(&spill->lock);
		r = reserve(spill, nbytes, &extent);
		pthread_mutex_unlock(&spill->lock);
		if (r < 0)
			return r;
		r = write_extent(spill, extent, data);
	} while (means_full(r));

	if (r < 0)
		return fail(r, "%s: write of %zu bytes of temporary data at %" PRIu64 ": %m",
			    spill->files[extent.file].directory, nbytes, extent.offset);
	*ret_extent = extent;
	return 0;
}

int spill_write(struct spill *spill, const void *data, size_t nbytes,
		struct spill_extent *ret_extent)
{
	uint64_t offset;

	/* Whatever the reason, no memory is no error as long as there are files. */
	if (memory_tier_write(spill->memory, data, nbytes, &offset) < 0)
		return write_to_file(spill, data, nbytes, ret_extent);
	*ret_extent = (struct spill_extent){ .file = (uint32_t)spill->n_files,
					     .offset = offset,
					     .nbytes = nbytes };
	return 0;
}

static bool in_memory(const struct spill *spill, struct spill_extent extent)
{
	assert(extent.file <= spill->n_files);
	return extent.file == spill->n_files;
}

int spill_read(struct spill *spill, struct spill_extent extent, void *buffer)
{
	if (in_memory(spill, extent)) {
		memory_tier_read(spill->memory, extent.offset, buffer, extent.nbytes);
		return 0;
	}
	return spill_file_read(&spill->files[extent.file], spill->queue, extent.offset, buffer,
			       extent.nbytes);
}

uint64_t spill_lag_nbytes(uint64_t peak_nbytes)
{
	const uint64_t lag = peak_nbytes / LAG_PART;

	if (lag < least_lag_nbytes)
		return least_lag_nbytes;
	return lag < most_lag_nbytes ? lag : most_lag_nbytes;
}

void spill_discard(struct spill *spill, struct spill_extent extent)
{
	uint64_t lag_nbytes;

	assert(extent.offset % SPILL_ALIGN_NBYTES == 0);
	if (extent.nbytes == 0)
		return;
	extent.nbytes = pages_up(extent.nbytes);
	if (in_memory(spill, extent)) {
		memory_tier_discard(spill->memory, extent.offset, extent.nbytes);
		return;
	}
	pthread_mutex_lock(&spill->lock);
	lag_nbytes = spill_lag_nbytes(spill->peak_nbytes);
	pthread_mutex_unlock(&spill->lock);
	reclaim_add(spill->reclaim, extent.file, extent.offset, extent.nbytes, lag_nbytes);
}

const char *spill_directory(const struct spill *spill, uint32_t file)
{
	assert(file <= spill->n_files);
	return file < spill->n_files ? spill->files[file].directory : "memory";
}

uint64_t spill_taken_nbytes(struct spill *spill)
{
	uint64_t nbytes;

	pthread_mutex_lock(&spill->lock);
	nbytes = spill->used_nbytes;
	pthread_mutex_unlock(&spill->lock);
	return nbytes;
}

uint64_t spill_used_nbytes(struct spill *spill)
{
	reclaim_drain(spill->reclaim);
	return spill_taken_nbytes(spill);
}

uint64_t spill_peak_nbytes(struct spill *spill)
{
	uint64_t nbytes;

	pthread_mutex_lock(&spill->lock);
	nbytes = spill->peak_nbytes;
	pthread_mutex_unlock(&spill->lock);
	return nbytes;
}

uint64_t spill_memory_peak_nbytes(struct spill *spill)
{
	return memory_tier_peak_nbytes(spill->memory);
}

/* Is directory i on the same file system as one before it? */
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
	const uint64_t allowed = left_nbytes(spill, spill_used_nbytes(spill));
	uint64_t nbytes = 0;

	for (size_t i = 0; i < spill->n_directories; i++) {
		const char *path = spill->files[i].directory;
		struct statvfs space;
		struct stat status;

		if (stat(path, &status) < 0 || statvfs(path, &space) < 0)
			return fail(-errno, "%s: temporary directory: %m", path);
		if (!shares_file_system(spill, i, status.st_dev))
			nbytes += (uint64_t)space.f_bavail * space.f_frsize;
	}
	*ret_nbytes = nbytes < allowed ? nbytes : allowed;
	*ret_nbytes += memory_tier_free_nbytes(spill->memory);
	return 0;
}
