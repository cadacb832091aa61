/*
 * spill - the temporary space (see spill.h)
 *
 * Offsets are handed out under the lock, the transfers happen outside of it. The one subtle case is
 * a write that finds its disk full: the directory is marked, the room it had taken is punched, and
 * the same data is tried on the others; only when none is left is it an error. Several writers may
 * find that out at the same time, each moves on for itself.
 */
#include "io/spill.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "io/memory_tier.h"
#include "src/status.h"

struct directory {
	/* Set at creation. */
	const char *path;

	/* Under the lock. */
	struct file file;          /* opened with the first extent; then constant */
	uint64_t end;              /* of the last extent */
	uint64_t in_flight_nbytes; /* being written now */
	uint64_t written_nbytes;   /* ever */
	bool full;                 /* since the last discard */
};

struct spill {
	/* Set at creation. */
	const struct io_engine *engine;
	uint64_t limit_nbytes;
	size_t n_directories;
	bool is_kept;
	struct memory_tier *memory; /* has a lock of its own */

	pthread_mutex_t lock;
	/* Under the lock. */
	uint64_t used_nbytes;
	uint64_t peak_nbytes;
	struct directory directories[];
};

/* Where the next extent may start. */
static uint64_t round_up(uint64_t nbytes)
{
	return (nbytes + SPILL_ALIGN_NBYTES - 1) / SPILL_ALIGN_NBYTES * SPILL_ALIGN_NBYTES;
}

int spill_open(const struct io_engine *engine, const char *const *directories, size_t n,
	       uint64_t limit_nbytes, uint64_t memory_nbytes, struct spill **ret_spill)
{
	struct spill *spill = calloc(1, sizeof *spill + n * sizeof *spill->directories);

	assert(n > 0);
	if (!spill || memory_tier_open(memory_nbytes, &spill->memory) < 0) {
		free(spill);
		return fail(-ENOMEM, "list of temporary directories: %m");
	}
	spill->engine = engine;
	spill->limit_nbytes = limit_nbytes;
	spill->n_directories = n;
	pthread_mutex_init(&spill->lock, NULL);
	for (size_t i = 0; i < n; i++) {
		spill->directories[i].path = directories[i];
		spill->directories[i].file = (struct file){ .engine = engine, .fd = -1 };
	}
	*ret_spill = spill;
	return 0;
}

int spill_open_kept(const struct file *file, const char *const *directory, uint64_t end_nbytes,
		    uint64_t used_nbytes, uint64_t limit_nbytes, struct spill **ret_spill)
{
	struct spill *spill;
	int r = spill_open(file->engine, directory, 1, limit_nbytes, 0, &spill);

	if (r < 0)
		return r;
	spill->is_kept = true;
	spill->directories[0].file = *file;
	spill->directories[0].end = round_up(end_nbytes);
	spill->used_nbytes = spill->peak_nbytes = used_nbytes;
	*ret_spill = spill;
	return 0;
}

bool spill_is_kept(const struct spill *spill)
{
	return spill->is_kept;
}

int spill_sync(struct spill *spill)
{
	int r = 0;

	for (size_t i = 0; i < spill->n_directories && r == 0; i++) {
		struct directory *d = &spill->directories[i];
		struct file file;

		pthread_mutex_lock(&spill->lock);
		file = d->file;
		pthread_mutex_unlock(&spill->lock);
		if (file.fd >= 0 && (r = file_sync(&file)) < 0)
			fail(r, "%s: cannot bring temporary data to stable storage: %m", d->path);
	}
	return r;
}

void spill_close(struct spill *spill)
{
	if (!spill)
		return;
	for (size_t i = 0; i < spill->n_directories; i++)
		file_close(&spill->directories[i].file);
	memory_tier_close(spill->memory);
	pthread_mutex_destroy(&spill->lock);
	free(spill);
}

/*
 * Create a file with a name and take the name away. Signals are held back meanwhile: their handlers
 * end the process, and know nothing of this name.
 */
static int open_and_unlink(const struct io_engine *engine, const char *directory,
			   struct file *ret_file)
{
	char name[FILE_UNIQUE_NAME_SIZE];
	sigset_t all, before;
	char *path;
	int r;

	file_unique_name(name);
	if (asprintf(&path, "%s/%s", directory, name) < 0)
		return -ENOMEM;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	r = file_open(engine, AT_FDCWD, path, O_RDWR | O_CREAT | O_EXCL, 0600, ret_file);
	if (r == 0)
		unlink(path);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	free(path);
	return r;
}

static int open_nameless(const struct io_engine *engine, const char *directory,
			 struct file *ret_file)
{
	const int r =
		file_open(engine, AT_FDCWD, directory, O_RDWR | O_TMPFILE | O_EXCL, 0600, ret_file);

	/* EISDIR is what a kernel says that does not know the flag. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		return open_and_unlink(engine, directory, ret_file);
	return r;
}

/* The directory for the next extent, NULL if all are full. Under the lock. */
static struct directory *choose_directory(struct spill *spill)
{
	struct directory *best = NULL;

	for (size_t i = 0; i < spill->n_directories; i++) {
		struct directory *d = &spill->directories[i];

		if (d->full)
			continue;
		if (!best || d->in_flight_nbytes < best->in_flight_nbytes ||
		    (d->in_flight_nbytes == best->in_flight_nbytes &&
		     d->written_nbytes < best->written_nbytes))
			best = d;
	}
	return best;
}

static int fail_full(struct spill *spill, size_t nbytes)
{
	char list[512] = "";
	size_t length = 0;

	for (size_t i = 0; i < spill->n_directories && length < sizeof list; i++)
		length += (size_t)snprintf(list + length, sizeof list - length, "%s%s",
					   i ? ", " : "", spill->directories[i].path);
	return fail(-ENOSPC,
		    "%s: no space for %zu more bytes of temporary data besides %" PRIu64
		    "; name a directory with more space with -T",
		    list, nbytes, spill->used_nbytes);
}

/* Take room for nbytes in some directory. Under the lock. */
static int reserve(struct spill *spill, size_t nbytes, struct spill_extent *ret_extent)
{
	struct directory *d = choose_directory(spill);
	int r;

	if (!d)
		return fail_full(spill, nbytes);
	if (spill->limit_nbytes - spill->used_nbytes < nbytes)
		return fail(-ENOSPC,
			    "temporary space: %zu more bytes would pass the limit of %" PRIu64
			    " (--temp-limit), %" PRIu64 " are in use",
			    nbytes, spill->limit_nbytes, spill->used_nbytes);
	if (d->file.fd < 0) {
		r = open_nameless(spill->engine, d->path, &d->file);
		if (r < 0)
			return fail(r, "%s: cannot create a temporary file: %m", d->path);
	}
	*ret_extent = (struct spill_extent){ .file = (uint32_t)(d - spill->directories),
					     .offset = d->end,
					     .nbytes = nbytes };
	d->end += round_up(nbytes);
	d->in_flight_nbytes += nbytes;
	spill->used_nbytes += nbytes;
	if (spill->peak_nbytes < spill->used_nbytes)
		spill->peak_nbytes = spill->used_nbytes;
	return 0;
}

static bool means_full(int r)
{
	return r == -ENOSPC || r == -EDQUOT || r == -EFBIG;
}

static int write_to_file(struct spill *spill, const void *data, size_t nbytes,
			 struct spill_extent *ret_extent)
{
	struct spill_extent extent = { 0 };
	struct directory *d;
	int r;

	do {
		pthread_mutex_lock(&spill->lock);
		r = reserve(spill, nbytes, &extent);
		pthread_mutex_unlock(&spill->lock);
		if (r < 0)
			return r;
		d = &spill->directories[extent.file];
		/* A tenth faster than growing the file; and a full disk shows before copying. */
		r = file_preallocate(&d->file, extent.offset, nbytes);
		if (r == 0)
			r = file_write_at(&d->file, extent.offset, data, nbytes);
		if (r < 0)
			file_punch(&d->file, extent.offset, nbytes);

		pthread_mutex_lock(&spill->lock);
		d->in_flight_nbytes -= nbytes;
		if (r == 0)
			d->written_nbytes += nbytes;
		else
			spill->used_nbytes -= nbytes;
		d->full = d->full || means_full(r);
		pthread_mutex_unlock(&spill->lock);
	} while (means_full(r));

	if (r < 0)
		return fail(r, "%s: write of %zu bytes of temporary data at %" PRIu64 ": %m",
			    d->path, nbytes, extent.offset);
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
	*ret_extent = (struct spill_extent){ .file = (uint32_t)spill->n_directories,
					     .offset = offset,
					     .nbytes = nbytes };
	return 0;
}

static bool in_memory(const struct spill *spill, struct spill_extent extent)
{
	assert(extent.file <= spill->n_directories);
	return extent.file == spill->n_directories;
}

int spill_read(struct spill *spill, struct spill_extent extent, void *buffer)
{
	if (in_memory(spill, extent)) {
		memory_tier_read(spill->memory, extent.offset, buffer, extent.nbytes);
		return 0;
	}
	return file_read_at(&spill->directories[extent.file].file, extent.offset, buffer,
			    extent.nbytes);
}

void spill_discard(struct spill *spill, struct spill_extent extent)
{
	struct directory *d;

	if (extent.nbytes == 0)
		return;
	if (in_memory(spill, extent)) {
		memory_tier_discard(spill->memory, extent.offset, extent.nbytes);
		return;
	}
	d = &spill->directories[extent.file];
	if (file_punch(&d->file, extent.offset, extent.nbytes) < 0)
		return;
	pthread_mutex_lock(&spill->lock);
	assert(spill->used_nbytes >= extent.nbytes);
	spill->used_nbytes -= extent.nbytes;
	d->full = false;
	pthread_mutex_unlock(&spill->lock);
}

const char *spill_directory(const struct spill *spill, uint32_t file)
{
	assert(file <= spill->n_directories);
	return file < spill->n_directories ? spill->directories[file].path : "memory";
}

uint64_t spill_used_nbytes(struct spill *spill)
{
	uint64_t nbytes;

	pthread_mutex_lock(&spill->lock);
	nbytes = spill->used_nbytes;
	pthread_mutex_unlock(&spill->lock);
	return nbytes;
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
		if (stat(spill->directories[j].path, &status) == 0 && status.st_dev == device)
			return true;
	return false;
}

int spill_free_nbytes(struct spill *spill, uint64_t *ret_nbytes)
{
	const uint64_t allowed = spill->limit_nbytes - spill_used_nbytes(spill);
	uint64_t nbytes = 0;

	for (size_t i = 0; i < spill->n_directories; i++) {
		const char *path = spill->directories[i].path;
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
