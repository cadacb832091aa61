/*
 * checkpoint_files - the directory of a checkpoint, and what is in it (see checkpoint_files.h)
 */
#include "src/checkpoint/checkpoint_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "src/base/status.h"

static const char manifest_name[] = "manifest";
static const char runs_name[] = "runs";
const char *const checkpoint_file_names[CHECKPOINT_N_FILES] = { manifest_name, runs_name };

/*
 * The sticky bit does nothing in a directory that is the user's alone. It says that gsort made it,
 * from the beginning: a process that is killed before it has written anything is no reason to leave
 * it in the end.
 */
enum { MODE = 0700, MODE_MADE = MODE | S_ISVTX };

static int open_directory(struct checkpoint_files *files)
{
	struct stat status;
	int r;

	if (mkdir(files->path, MODE_MADE) < 0 && errno != EEXIST)
		return fail(-errno, "%s: cannot make a directory: %m", files->path);
	r = file_open(files->directory.engine, AT_FDCWD, files->path, O_RDONLY | O_DIRECTORY, 0,
		      &files->directory);
	if (r < 0)
		return fail(r, "%s: %m", files->path);
	if (fstat(files->directory.fd, &status) < 0)
		return fail(-errno, "%s: %m", files->path);
	if (status.st_uid != geteuid())
		return fail(-EPERM, "%s: %m: the directory is somebody else's", files->path);
	files->made_directory = (status.st_mode & ALLPERMS) == MODE_MADE;
	return 0;
}

/* What was opened stays open, also on failure. */
static int open_file(const struct checkpoint_files *files, const char *name, struct file *ret_file)
{
	struct stat status;
	int r = file_open(files->directory.engine, files->directory.fd, name,
			  O_RDWR | O_CREAT | O_NOFOLLOW, 0600, ret_file);

	if (r == 0 && fstat(ret_file->fd, &status) < 0)
		r = -errno;
	else if (r == 0 && !S_ISREG(status.st_mode))
		r = -EEXIST;
	return r < 0 ? fail(r, "%s/%s: %m", files->path, name) : 0;
}

/* A manifest that has no name any more is that of a process that has just finished. */
static int lock(struct checkpoint_files *files)
{
	const int fd = files->manifest.file.fd;
	const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
	struct stat status;

	if (!locked && errno != EWOULDBLOCK)
		return fail(-errno, "%s: cannot be locked: %m", files->manifest_path);
	if (locked && fstat(fd, &status) < 0)
		return fail(-errno, "%s: %m", files->manifest_path);
	if (!locked || status.st_nlink == 0)
		return fail(-EBUSY, "%s: another gsort is using this checkpoint", files->path);
	files->is_locked = true;
	return 0;
}

void checkpoint_files_init(struct checkpoint_files *files, const struct io_engine *io,
			   const char *path)
{
	const struct file closed = { .engine = io, .fd = -1 };

	*files = (struct checkpoint_files){ .path = path, .directory = closed, .runs = closed };
	files->manifest.file = closed;
}

int checkpoint_files_open(struct checkpoint_files *files)
{
	int r;

	if (asprintf(&files->manifest_path, "%s/%s", files->path, manifest_name) < 0) {
		files->manifest_path = NULL;
		return fail(-ENOMEM, "%s: %m", files->path);
	}
	files->manifest.path = files->manifest_path;
	r = open_directory(files);
	if (r == 0)
		r = open_file(files, manifest_name, &files->manifest.file);
	if (r == 0)
		r = lock(files);
	return r < 0 ? r : open_file(files, runs_name, &files->runs);
}

int checkpoint_files_sync_names(const struct checkpoint_files *files)
{
	struct file parent;
	int r = file_sync(&files->directory);

	if (r == 0)
		r = file_open(files->directory.engine, files->directory.fd, "..",
			      O_RDONLY | O_DIRECTORY, 0, &parent);
	if (r == 0) {
		r = file_sync(&parent);
		file_close(&parent);
	}
	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", files->path) : 0;
}

/* The sort is as good as it is without that, but somebody must remove what takes space. */
static bool remove_file(const struct checkpoint_files *files, const char *name)
{
	const int r = file_remove(files->directory.engine, files->directory.fd, name, 0);

	if (r < 0)
		warn("%s/%s is not needed any more, and cannot be removed: %s", files->path, name,
		     strerror(-r));
	return r == 0;
}

/* Unless there is something in it. */
static void remove_directory(const struct checkpoint_files *files)
{
	const int r = file_remove(files->directory.engine, AT_FDCWD, files->path, AT_REMOVEDIR);

	if (r < 0 && r != -ENOTEMPTY && r != -EEXIST)
		warn("%s is not needed any more, and cannot be removed: %s", files->path,
		     strerror(-r));
}

void checkpoint_files_remove(const struct checkpoint_files *files)
{
	/* Runs without a manifest are nobody's, and the next sort would not touch them. */
	if (remove_file(files, runs_name) && remove_file(files, manifest_name) &&
	    files->made_directory)
		remove_directory(files);
}

static bool is_empty(const struct file *file)
{
	return file->fd < 0 || lseek(file->fd, 0, SEEK_END) == 0;
}

void checkpoint_files_abandon(const struct checkpoint_files *files)
{
	/* It may not have come to the lock. */
	const bool is_locked = files->is_locked ||
			       flock(files->manifest.file.fd, LOCK_EX | LOCK_NB) == 0;

	if (is_locked && is_empty(&files->manifest.file) && is_empty(&files->runs))
		checkpoint_files_remove(files);
	else if (files->made_directory)
		remove_directory(files);
}

void checkpoint_files_close(struct checkpoint_files *files)
{
	file_close(&files->runs);
	file_close(&files->manifest.file);
	file_close(&files->directory);
	free(files->manifest_path);
	files->manifest_path = NULL;
}
