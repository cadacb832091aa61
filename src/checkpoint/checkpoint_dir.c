/*
 * checkpoint_dir.c - the directory of a checkpoint (see checkpoint_dir.h)
 */
#include "src/checkpoint/checkpoint_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "config.h"
#include "io/file/file.h"
#include "src/base/diagnostics.h"

#define RANK_DIRECTORY_FORMAT "rank-%04u"

const char *const checkpoint_file_names[CHECKPOINT_N_FILES] = {
	[CHECKPOINT_MANIFEST] = "gsort-manifest",
	[CHECKPOINT_RUNS] = "gsort-runs",
};

enum { FILE_MAGIC_NBYTES = CHECKPOINT_MANIFEST_BEGIN };
static const char file_magic[CHECKPOINT_N_FILES][FILE_MAGIC_NBYTES] = {
	[CHECKPOINT_MANIFEST] = "gsort manifest\n",
	[CHECKPOINT_RUNS] = "gsort runs\n",
};

/*
 * The sticky bit has no effect in a directory of mode 0700. It marks a directory that gsort has
 * created from the moment of its creation, so that it is removed in the end even if the process
 * that created it was killed.
 */
enum { DIR_MODE = 0700, DIR_MODE_CREATED = DIR_MODE | S_ISVTX, DIR_MODE_MASK = 07777 };

bool checkpoint_dir_is_created(const struct stat *directory)
{
	return (directory->st_mode & DIR_MODE_MASK) == DIR_MODE_CREATED;
}

/* Create the directory. Other ranks may create its parent, or remove it after a failure. */
static int make_directory(struct checkpoint_dir *dir)
{
	enum { MAX_MKDIR_TRIES = 100 };
	struct stat status;
	int r = -ENOENT;

	for (int i = 0; i < MAX_MKDIR_TRIES && r == -ENOENT; i++) {
		r = 0;
		if (dir->parent_path && mkdir(dir->parent_path, DIR_MODE_CREATED) < 0 &&
		    errno != EEXIST)
			return fail(-errno, "%s: cannot create directory: %m", dir->parent_path);
		if (mkdir(dir->path, DIR_MODE_CREATED) < 0 && errno != EEXIST)
			r = -errno;
		if (!dir->parent_path)
			break;
	}
	if (r < 0)
		return fail(r, "%s: cannot create directory: %m", dir->path);
	dir->created_parent = dir->parent_path && stat(dir->parent_path, &status) == 0 &&
			      checkpoint_dir_is_created(&status);
	return 0;
}

static int open_directory(struct checkpoint_dir *dir)
{
	struct stat status;
	int r = make_directory(dir);

	if (r < 0)
		return r;
	r = file_open(dir->directory.calls, AT_FDCWD, dir->path, O_RDONLY | O_DIRECTORY, 0,
		      &dir->directory);
	if (r == -ENOENT)
		return fail(
			r,
			"%s: is a dangling symbolic link; name another directory with --checkpoint",
			dir->path);
	if (r < 0)
		return fail(r, "%s: %m", dir->path);
	if (fstat(dir->directory.fd, &status) < 0)
		return fail(-errno, "%s: %m", dir->path);
	if (status.st_uid != geteuid())
		return fail(-EPERM, "%s: %m: the directory has another owner", dir->path);
	dir->created_directory = checkpoint_dir_is_created(&status);
	return 0;
}

static int open_by_kind(struct checkpoint_dir *dir, enum checkpoint_file i, int flags,
			struct file *ret_file)
{
	return file_open(dir->directory.calls, dir->directory.fd, checkpoint_file_names[i],
			 O_RDWR | O_NOFOLLOW | flags, 0600, ret_file);
}

static int fail_foreign(const struct checkpoint_dir *dir, enum checkpoint_file i,
			const char *problem)
{
	return fail(-EEXIST, "%s/%s: %s; name another directory with --checkpoint", dir->path,
		    checkpoint_file_names[i], problem);
}

/* Open a file; create it if it is missing. It may be open even after a failure. */
static int open_or_create_file(struct checkpoint_dir *dir, enum checkpoint_file i,
			       struct file *ret_file)
{
	struct stat status;
	int r = open_by_kind(dir, i, 0, ret_file);

	if (r == -ENOENT) {
		r = open_by_kind(dir, i, O_CREAT | O_EXCL, ret_file);
		dir->is_created[i] = r == 0;
	}
	if (r == -EEXIST) /* another process was faster */
		r = open_by_kind(dir, i, 0, ret_file);
	if (r == 0 && fstat(ret_file->fd, &status) < 0)
		r = -errno;
	else if (r == 0 && !S_ISREG(status.st_mode))
		return fail_foreign(dir, i,
				    "is not a regular file, so not a file of " GSORT_PROGRAM);
	if (r == -ELOOP)
		return fail_foreign(dir, i, "is a symbolic link, so not a file of " GSORT_PROGRAM);
	if (r < 0)
		return fail(r, "%s/%s: %m", dir->path, checkpoint_file_names[i]);
	dir->file_ids[i] = file_id_from_stat(&status);
	return 0;
}

/*
 * Set *ret_nbytes to the length of the magic, or of its prefix, at the beginning of the file. Other
 * contents are refused.
 */
static int read_file_magic(const struct checkpoint_dir *dir, enum checkpoint_file i,
			   const struct file *file, uint64_t *ret_nbytes)
{
	const char *name = checkpoint_file_names[i];
	char magic[FILE_MAGIC_NBYTES];
	uint64_t nbytes;
	int r = file_size(file, &nbytes);

	if (nbytes > FILE_MAGIC_NBYTES)
		nbytes = FILE_MAGIC_NBYTES;
	if (r == 0)
		r = file_read_at(file, 0, magic, nbytes);
	if (r < 0)
		return fail(r, "%s/%s: %m", dir->path, name);
	if (memcmp(magic, file_magic[i], nbytes) != 0)
		return fail_foreign(dir, i,
				    "is not a file of " GSORT_PROGRAM " and would be overwritten");
	*ret_nbytes = nbytes;
	return 0;
}

/*
 * Check both files, then write the magic to new ones. It is synced at once, so that a power failure
 * cannot leave a file that looks foreign.
 */
static int init_file_magic(const struct checkpoint_dir *dir)
{
	const struct file *opened[] = { &dir->manifest.file, &dir->runs };
	uint64_t nbytes[CHECKPOINT_N_FILES];
	int r = 0;

	for (int i = 0; i < CHECKPOINT_N_FILES && r == 0; i++)
		r = read_file_magic(dir, i, opened[i], &nbytes[i]);
	for (int i = 0; i < CHECKPOINT_N_FILES && r == 0; i++) {
		if (nbytes[i] == FILE_MAGIC_NBYTES)
			continue;
		r = file_write_at(opened[i], 0, file_magic[i], FILE_MAGIC_NBYTES);
		if (r == 0)
			r = file_sync(opened[i]);
		if (r < 0)
			fail(r, "%s/%s: write: %m%s", dir->path, checkpoint_file_names[i],
			     size_limit_hint(r).text);
	}
	return r;
}

enum { LOCK_PAUSE_MS = 10, MAX_LOCK_PAUSES = 200 };

/* A process that was killed keeps the lock until the kernel has released its memory. */
static bool wait_for_lock(int fd)
{
	for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; i++) {
		if (errno != EWOULDBLOCK || i == MAX_LOCK_PAUSES)
			return false;
		poll(NULL, 0, LOCK_PAUSE_MS);
	}
	return true;
}

/* If the opened manifest has no name any more, the process that removes it is just finishing. */
static int lock_manifest(struct checkpoint_dir *dir)
{
	const int fd = dir->manifest.file.fd;
	const bool locked = wait_for_lock(fd);
	struct stat status;

	if (!locked && errno != EWOULDBLOCK)
		return fail(-errno, "%s: cannot lock: %m", dir->manifest_path);
	if (locked && fstat(fd, &status) < 0)
		return fail(-errno, "%s: %m", dir->manifest_path);
	if (!locked || status.st_nlink == 0)
		return fail(-EBUSY, "%s: another " GSORT_PROGRAM " is using this checkpoint",
			    dir->path);
	dir->is_locked = true;
	return 0;
}

void checkpoint_dir_init(struct checkpoint_dir *dir, const struct syscalls *io, const char *path)
{
	const struct file closed = { .calls = io, .fd = -1 };

	*dir = (struct checkpoint_dir){ .path = path, .directory = closed, .runs = closed };
	dir->manifest.file = closed;
	dir->manifest.begin = dir->manifest.end = CHECKPOINT_MANIFEST_BEGIN;
}

int checkpoint_dir_init_rank(struct checkpoint_dir *dir, const struct syscalls *io,
			     const char *path, unsigned rank)
{
	checkpoint_dir_init(dir, io, path);
	if (asprintf(&dir->rank_path, "%s/" RANK_DIRECTORY_FORMAT, path, rank) < 0) {
		dir->rank_path = NULL;
		return fail(-ENOMEM, "%s: %m", path);
	}
	dir->path = dir->rank_path;
	dir->parent_path = path;
	return 0;
}

int checkpoint_dir_open(struct checkpoint_dir *dir)
{
	int r;

	if (asprintf(&dir->manifest_path, "%s/%s", dir->path,
		     checkpoint_file_names[CHECKPOINT_MANIFEST]) < 0) {
		dir->manifest_path = NULL;
		return fail(-ENOMEM, "%s: %m", dir->path);
	}
	dir->manifest.path = dir->manifest_path;
	r = open_directory(dir);
	if (r == 0)
		r = open_or_create_file(dir, CHECKPOINT_MANIFEST, &dir->manifest.file);
	if (r == 0)
		r = lock_manifest(dir);
	if (r == 0)
		r = open_or_create_file(dir, CHECKPOINT_RUNS, &dir->runs);
	return r < 0 ? r : init_file_magic(dir);
}

/* Return whether the entry is the directory of a rank >= n with a checkpoint in it. */
static bool is_rank_directory(int directory, const char *name, unsigned n)
{
	char path[64];
	unsigned rank;

	if (sscanf(name, "rank-%u", &rank) != 1 || rank < n)
		return false;
	snprintf(path, sizeof path, RANK_DIRECTORY_FORMAT, rank);
	if (strcmp(path, name) != 0)
		return false;
	snprintf(path, sizeof path, RANK_DIRECTORY_FORMAT "/%s", rank,
		 checkpoint_file_names[CHECKPOINT_MANIFEST]);
	return faccessat(directory, path, F_OK, 0) == 0;
}

/* Directories of ranks remain if the ranks were killed at the end or have their own disks. */
int checkpoint_dir_check_ranks(const struct checkpoint_dir *dir, unsigned n)
{
	const char *parent_path = dir->parent_path ? dir->parent_path : dir->path;
	DIR *stream = opendir(parent_path);
	int r = 0;

	if (!stream)
		return 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(stream));)
		if (is_rank_directory(dirfd(stream), entry->d_name, n))
			r = fail(-EEXIST,
				 "%s/%s: belongs to a sort by %s ranks; resume that one, or remove "
				 "the contents of all %s/rank-*",
				 parent_path, entry->d_name, n ? "more" : "several", parent_path);
	closedir(stream);
	return r;
}

static int sync_parent_directory(const struct checkpoint_dir *dir, const char *relative_path)
{
	struct file parent;
	int r = file_open(dir->directory.calls, dir->directory.fd, relative_path,
			  O_RDONLY | O_DIRECTORY, 0, &parent);

	if (r == 0) {
		r = file_sync(&parent);
		file_close(&parent);
	}
	return r;
}

int checkpoint_dir_sync(const struct checkpoint_dir *dir)
{
	int r = file_sync(&dir->directory);

	if (r == 0)
		r = sync_parent_directory(dir, "..");
	if (r == 0 && dir->parent_path)
		r = sync_parent_directory(dir, "../..");
	return r < 0 ? fail(r, "%s: cannot sync: %m", dir->path) : 0;
}

/* Return 1 if the name still refers to the opened file, 0 if not, or a negative errno. */
static int is_opened_file(const struct checkpoint_dir *dir, enum checkpoint_file i)
{
	struct stat status;

	if (fstatat(dir->directory.fd, checkpoint_file_names[i], &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	return file_id_equal(file_id_from_stat(&status), dir->file_ids[i]);
}

bool checkpoint_dir_is_intact(const struct checkpoint_dir *dir)
{
	struct stat opened, named;

	return fstat(dir->directory.fd, &opened) == 0 && stat(dir->path, &named) == 0 &&
	       file_id_equal(file_id_from_stat(&opened), file_id_from_stat(&named)) &&
	       is_opened_file(dir, CHECKPOINT_MANIFEST) > 0 &&
	       is_opened_file(dir, CHECKPOINT_RUNS) > 0;
}

/*
 * Remove a file, unless its name refers to another one by now. A failure is only a warning, because
 * it only costs space. Returns false if the file could not be removed.
 */
static bool remove_opened_file(const struct checkpoint_dir *dir, enum checkpoint_file i)
{
	const char *name = checkpoint_file_names[i];
	int r = is_opened_file(dir, i);

	if (r > 0)
		r = file_remove(dir->directory.calls, dir->directory.fd, name, 0);
	if (r < 0)
		warn("%s/%s: cannot remove: %s", dir->path, name, strerror(-r));
	return r == 0;
}

/* Remove a directory if it is empty. Another rank may have removed it already. */
static void remove_empty_directory(const struct checkpoint_dir *dir, const char *path)
{
	const int r = file_remove(dir->directory.calls, AT_FDCWD, path, AT_REMOVEDIR);

	if (r < 0 && r != -ENOTEMPTY && r != -EEXIST && !(r == -ENOENT && dir->parent_path))
		warn("%s: cannot remove: %s", path, strerror(-r));
}

static void remove_directory(const struct checkpoint_dir *dir)
{
	remove_empty_directory(dir, dir->path);
	if (dir->created_parent)
		remove_empty_directory(dir, dir->parent_path);
}

void checkpoint_dir_remove(const struct checkpoint_dir *dir)
{
	/* In this order: the next sort refuses runs that have no manifest. */
	if (remove_opened_file(dir, CHECKPOINT_RUNS) &&
	    remove_opened_file(dir, CHECKPOINT_MANIFEST) && dir->created_directory)
		remove_directory(dir);
}

void checkpoint_dir_remove_created(const struct checkpoint_dir *dir)
{
	bool runs_removed = true;

	/* Without the lock the files may belong to another process by now. */
	if (dir->is_locked && dir->is_created[CHECKPOINT_RUNS])
		runs_removed = remove_opened_file(dir, CHECKPOINT_RUNS);
	if (dir->is_locked && dir->is_created[CHECKPOINT_MANIFEST] && runs_removed)
		remove_opened_file(dir, CHECKPOINT_MANIFEST);
	if (dir->created_directory)
		remove_directory(dir);
}

void checkpoint_dir_close(struct checkpoint_dir *dir)
{
	file_close(&dir->runs);
	file_close(&dir->manifest.file);
	file_close(&dir->directory);
	free(dir->manifest_path);
	free(dir->rank_path);
	dir->manifest_path = NULL;
	dir->rank_path = NULL;
}
