/*
 * spill_placement - which file of a spill has room for an extent (see spill.h)
 *
 * Offsets are handed out under the lock, the transfers happen outside of it. The one subtle case is
 * a write that finds its disk full: the directory is marked, the room it had taken is punched, and
 * the same data is tried on the others; only when none is left, and nothing that was discarded
 * waits to be given back (hole_punch.h), is it an error. Several writers may find that out at the
 * same time, each moves on for itself.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "io/file/size_limit.h"
#include "io/spill/spill_internal.h"
#include "src/base/clock.h"
#include "src/base/diagnostics.h"

/* The file for the next extent, NULL if all directories are full. Under the lock. */
static struct spill_file *choose_file(struct spill *spill, uint64_t nbytes)
{
	struct spill_file *best = NULL;
	double best_ns = 0;

	for (size_t i = 0; i < spill->n_files; i++) {
		struct spill_file *f = &spill->files[i];
		const double ns = spill_file_expected_ns(f, nbytes);

		if (!f->full_error && (!best || ns < best_ns)) {
			best = f;
			best_ns = ns;
		}
	}
	return best;
}

/* A disk that is full says more than a file that may not grow. */
static int full_reason(const struct spill *spill)
{
	int r = -EFBIG;

	for (size_t i = 0; i < spill->n_files; i++)
		if (spill->files[i].full_error != -EFBIG)
			r = spill->files[i].full_error;
	return r;
}

/* What can be done about it; what is kept of a checkpoint is in its directory and no other. */
static const char *space_advice(const struct spill *spill, int r,
				char text[static SIZE_LIMIT_HINT_NBYTES])
{
	if (r == -EFBIG)
		return size_limit_hint(r, text);
	return spill->is_persistent ? "; make room there" :
				      "; name a directory with more space with -T";
}

static int fail_full(struct spill *spill, uint64_t nbytes)
{
	const int r = full_reason(spill);
	char advice[SIZE_LIMIT_HINT_NBYTES], list[512] = "";
	size_t length = 0;

	for (size_t i = 0; i < spill->n_directories && length < sizeof list; i++)
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
					   i ? ", " : "", spill->files[i].directory);
	return fail(r,
		    "%s: %m: %" PRIu64 " more bytes of temporary space are needed besides %" PRIu64
		    "%s",
		    list, nbytes, spill->used_nbytes, space_advice(spill, r, advice));
}

static int fail_limit(struct spill *spill, uint64_t nbytes)
{
	return fail(-ENOSPC,
		    "temporary space: %" PRIu64 " more bytes would pass the limit of %" PRIu64
		    ", %" PRIu64 " are in use; use a larger --temp-limit",
		    nbytes, spill->limit_nbytes, spill->used_nbytes);
}

/*
 * Under the lock, which is let go if there is something to wait for: a file with room for
 * nbytes. Returns 0, or -ENOSPC after a message.
 */
static int find_file_with_space(struct spill *spill, uint64_t nbytes, struct spill_file **ret_file)
{
	bool any_discarded;

	do {
		const bool within_limit = spill_limit_remaining(spill, spill->used_nbytes) >=
					  nbytes;

		*ret_file = choose_file(spill, nbytes);
		if (within_limit && *ret_file)
			return 0;
		pthread_mutex_unlock(&spill->lock);
		any_discarded = hole_punch_drain(spill->hole_punch, 0);
		pthread_mutex_lock(&spill->lock);
		/* It may be that what was discarded came back before there was nothing to drain. */
	} while (any_discarded || (!*ret_file && choose_file(spill, nbytes)));
	return *ret_file ? fail_limit(spill, nbytes) : fail_full(spill, nbytes);
}

/* Take room for nbytes in some file. Under the lock. */
static int allocate_extent(struct spill *spill, size_t nbytes, struct spill_extent *ret_extent)
{
	const uint64_t aligned_nbytes = spill_round_up_to_page(nbytes);
	struct spill_file *f;
	int r;

	spill_wait_below_peak(spill, aligned_nbytes);
	r = find_file_with_space(spill, aligned_nbytes, &f);
	if (r < 0)
		return r;
	if (f->file.fd < 0)
		r = spill_file_open(f);
	if (r < 0)
		return fail(r, "%s: cannot create a temporary file: %m", f->directory);
	*ret_extent = (struct spill_extent){ .file = (uint32_t)(f - spill->files),
					     .offset = f->end,
					     .nbytes = nbytes };
	f->end += aligned_nbytes;
	f->in_flight_nbytes += nbytes;
	spill->used_nbytes += aligned_nbytes;
	if (spill->peak_nbytes < spill->used_nbytes)
		spill->peak_nbytes = spill->used_nbytes;
	return 0;
}

static bool is_full_error(int r)
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
		file_punch_hole(&f->file, extent.offset, extent.nbytes);
	pthread_mutex_lock(&spill->lock);
	f->in_flight_nbytes -= extent.nbytes;
	if (r == 0) {
		f->written_nbytes += extent.nbytes;
		f->busy_ns += clock_now_ns() - begin_ns;
	} else {
		spill->used_nbytes -= spill_round_up_to_page(extent.nbytes);
	}
	if (is_full_error(r))
		f->full_error = r;
	pthread_mutex_unlock(&spill->lock);
	return r;
}

int spill_write_to_file(struct spill *spill, const void *data, size_t nbytes,
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
	const uint64_t limit_nbytes = spill_limit_remaining(spill, spill_used_nbytes(spill));
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
	*ret_nbytes = nbytes < limit_nbytes ? nbytes : limit_nbytes;
	*ret_nbytes += memory_tier_free_nbytes(spill->memory);
	return 0;
}
