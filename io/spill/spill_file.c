/*
 * spill_file - temporary data in one directory (see spill_file.h)
 */
#include "io/spill/spill_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file/direct_io.h"
#include "src/base/diagnostics.h"
#include "src/base/thread.h"

/* What is worth a direct transfer, and how much is read ahead of other reads. */
enum { MIN_DIRECT_SPILL_NBYTES = 1 << 20, READAHEAD_NBYTES = 512 << 10 };

void spill_file_init(struct spill_file *f, const struct syscalls *calls, const char *directory)
{
	*f = (struct spill_file){ .directory = directory,
				  .file = { .calls = calls, .fd = -1 },
				  .direct = { .calls = calls, .fd = -1 } };
}

/* Data must not outlive the process: a file that keeps its name is not used. */
static int unlink_new_file(const char *path, struct file *file)
{
	const int r = file_remove(file->calls, AT_FDCWD, path, 0);

	if (r < 0) {
		file_close(file);
		warn("%s is empty, and cannot be removed: %s", path, strerror(-r));
	}
	return r;
}

/*
 * Create a file with a name and take the name away. Signals are held back meanwhile: their handlers
 * end the process, and know nothing of this name.
 */
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

static int open_unnamed_file(const struct syscalls *calls, const char *directory,
			     struct file *ret_file)
{
	const int r =
		file_open(calls, AT_FDCWD, directory, O_RDWR | O_TMPFILE | O_EXCL, 0600, ret_file);

	/* EISDIR is what a kernel says that does not know the flag. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		return open_and_unlink(calls, directory, ret_file);
	return r;
}

void spill_file_bypass_cache(struct spill_file *f)
{
	f->bypass_cache = true;
	/* Refused or not, there is a file. */
	if (f->file.fd >= 0)
		file_reopen(&f->file, O_RDWR | O_DIRECT, &f->direct);
}

int spill_file_open(struct spill_file *f)
{
	const int r = open_unnamed_file(f->file.calls, f->directory, &f->file);

	if (r == 0 && f->bypass_cache)
		spill_file_bypass_cache(f);
	return r;
}

void spill_file_close(struct spill_file *f)
{
	file_close(&f->direct);
	file_close(&f->file);
}

double spill_file_expected_ns(const struct spill_file *f, uint64_t nbytes)
{
	/* Nothing is known yet: it is tried next, and then not before it is known. */
	if (f->written_nbytes == 0)
		return f->in_flight_nbytes ? (double)UINT64_MAX : 0;
	return (double)f->busy_ns / (double)f->written_nbytes *
	       (double)(f->written_nbytes + f->in_flight_nbytes + nbytes);
}

int spill_file_write(const struct spill_file *f, struct io_queue *queue, uint64_t offset,
		     const void *data, uint64_t nbytes)
{
	/* A tenth faster than growing the file; and a full disk shows before copying. */
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

/*
 * Of what was written past the cache, little at a time comes best through it: the next part is then
 * on its way while this one is merged.
 */
int spill_file_read(const struct spill_file *f, struct io_queue *queue, uint64_t offset,
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
