/*
 * checkpoint_dir - the directory of a checkpoint, and what is in it (see checkpoint_dir.h)
 */
#include "src/checkpoint/checkpoint_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/file/size_limit.h"
#include "src/base/diagnostics.h"

#define RANK_FORMAT "rank-%04u"

const char *const checkpoint_file_names[CHECKPOINT_N_FILES] = {
	[CHECKPOINT_MANIFEST] = "gsort-manifest",
	[CHECKPOINT_RUNS] = "gsort-runs",
};

enum { MARK_NBYTES = CHECKPOINT_MANIFEST_BEGIN };
static const char marks[CHECKPOINT_N_FILES][MARK_NBYTES] = {
	[CHECKPOINT_MANIFEST] = "gsort manifest\n",
	[CHECKPOINT_RUNS] = "gsort runs\n",
};

/*
 * The sticky bit does nothing in a directory that is the user's alone. It says that gsort made it,
 * from the beginning: a process that is killed before it has written anything is no reason to leave
 * it in the end.
 */
enum { MODE = 0700, MODE_MADE = MODE | S_ISVTX, MODE_ALL = 07777 };

bool checkpoint_files_made(const struct stat *directory)
{
	return (directory->st_mode & MODE_ALL) == MODE_MADE;
}

/* Others make theirs in the same, and remove it when they have failed. */
static int make_directory(struct checkpoint_files *files)
{
	enum { TRIES = 100 };
	struct stat status;
	int r = -ENOENT;

	for (int i = 0; i < TRIES && r == -ENOENT; i++) {
		r = 0;
		if (files->group && mkdir(files->group, MODE_MADE) < 0 && errno != EEXIST)
			return fail(-errno, "%s: cannot make a directory: %m", files->group);
		if (mkdir(files->path, MODE_MADE) < 0 && errno != EEXIST)
			r = -errno;
		if (!files->group)
			break;
	}
	if (r < 0)
		return fail(r, "%s: cannot make a directory: %m", files->path);
	files->made_group = files->group && stat(files->group, &status) == 0 &&
			    checkpoint_files_made(&status);
	return 0;
}

static int open_directory(struct checkpoint_files *files)
{
	struct stat status;
	int r = make_directory(files);

	if (r < 0)
		return r;
	r = file_open(files->directory.calls, AT_FDCWD, files->path, O_RDONLY | O_DIRECTORY, 0,
		      &files->directory);
	if (r == -ENOENT)
		return fail_hint(r, HINT_OTHER_CHECKPOINT, 0, "%s: is a link to nothing",
				 files->path);
	if (r < 0)
		return fail(r, "%s: %m", files->path);
	if (fstat(files->directory.fd, &status) < 0)
		return fail(-errno, "%s: %m", files->path);
	if (status.st_uid != geteuid())
		return fail(-EPERM, "%s: %m: the directory is somebody else's", files->path);
	files->made_directory = checkpoint_files_made(&status);
	return 0;
}

static int open_named(struct checkpoint_files *files, enum checkpoint_file i, int flags,
		      struct file *ret_file)
{
	return file_open(files->directory.calls, files->directory.fd, checkpoint_file_names[i],
			 O_RDWR | O_NOFOLLOW | flags, 0600, ret_file);
}

static int fail_foreign(const struct checkpoint_files *files, enum checkpoint_file i,
			const char *what)
{
	return fail_hint(-EEXIST, HINT_OTHER_CHECKPOINT, 0, "%s/%s: %s", files->path,
			 checkpoint_file_names[i], what);
}

/* What was opened stays open, also on failure. */
static int open_file(struct checkpoint_files *files, enum checkpoint_file i, struct file *ret_file)
{
	struct stat status;
	int r = open_named(files, i, 0, ret_file);

	if (r == -ENOENT) {
		r = open_named(files, i, O_CREAT | O_EXCL, ret_file);
		files->is_made[i] = r == 0;
	}
	if (r == -EEXIST) /* another process was faster */
		r = open_named(files, i, 0, ret_file);
	if (r == 0 && fstat(ret_file->fd, &status) < 0)
		r = -errno;
	else if (r == 0 && !S_ISREG(status.st_mode))
		return fail_foreign(files, i, "is no regular file, and so none of gsort's");
	if (r == -ELOOP)
		return fail_foreign(files, i, "is a symbolic link, and so none of gsort's");
	if (r < 0)
		return fail(r, "%s/%s: %m", files->path, checkpoint_file_names[i]);
	files->identities[i] = file_identity_of(&status);
	return 0;
}

/* How much of its mark does the file begin with? What it has else is none of gsort's. */
static int read_mark(const struct checkpoint_files *files, enum checkpoint_file i,
		     const struct file *file, uint64_t *ret_nbytes)
{
	const char *name = checkpoint_file_names[i];
	char found[MARK_NBYTES];
	uint64_t nbytes;
	int r = file_size(file, &nbytes);

	if (nbytes > MARK_NBYTES)
		nbytes = MARK_NBYTES;
	if (r == 0)
		r = file_read_at(file, 0, found, nbytes);
	if (r < 0)
		return fail(r, "%s/%s: %m", files->path, name);
	if (memcmp(found, marks[i], nbytes) != 0)
		return fail_foreign(files, i, "is none of gsort's, and would be overwritten");
	*ret_nbytes = nbytes;
	return 0;
}

/* Durable at once: a power cut must not leave a file that nobody knows as gsort's. */
static int write_mark(const struct checkpoint_files *files, enum checkpoint_file i,
		      const struct file *file)
{
	char advice[SIZE_LIMIT_NBYTES];
	int r = file_write_at(file, 0, marks[i], MARK_NBYTES);

	if (r == 0)
		r = file_sync(file);
	return r < 0 ? fail(r, "%s/%s: write: %m%s", files->path, checkpoint_file_names[i],
			    size_limit_advice(r, advice)) :
		       0;
}

/* Nothing is written before both are known to be gsort's. */
static int mark_files(const struct checkpoint_files *files)
{
	const struct file *all[] = { &files->manifest.file, &files->runs };
	uint64_t nbytes[CHECKPOINT_N_FILES];
	int r = 0;

	for (int i = 0; i < CHECKPOINT_N_FILES && r == 0; i++)
		r = read_mark(files, i, all[i], &nbytes[i]);
	for (int i = 0; i < CHECKPOINT_N_FILES && r == 0; i++)
		if (nbytes[i] < MARK_NBYTES)
			r = write_mark(files, i, all[i]);
	return r;
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

void checkpoint_files_init(struct checkpoint_files *files, const struct syscalls *io,
			   const char *path)
{
	const struct file closed = { .calls = io, .fd = -1 };

	*files = (struct checkpoint_files){ .path = path, .directory = closed, .runs = closed };
	files->manifest.file = closed;
	files->manifest.begin = files->manifest.end = CHECKPOINT_MANIFEST_BEGIN;
}

int checkpoint_files_init_rank(struct checkpoint_files *files, const struct syscalls *io,
			       const char *path, unsigned rank)
{
	checkpoint_files_init(files, io, path);
	if (asprintf(&files->rank_path, "%s/" RANK_FORMAT, path, rank) < 0) {
		files->rank_path = NULL;
		return fail(-ENOMEM, "%s: %m", path);
	}
	files->path = files->rank_path;
	files->group = path;
	return 0;
}

int checkpoint_files_open(struct checkpoint_files *files)
{
	int r;

	if (asprintf(&files->manifest_path, "%s/%s", files->path,
		     checkpoint_file_names[CHECKPOINT_MANIFEST]) < 0) {
		files->manifest_path = NULL;
		return fail(-ENOMEM, "%s: %m", files->path);
	}
	files->manifest.path = files->manifest_path;
	r = open_directory(files);
	if (r == 0)
		r = open_file(files, CHECKPOINT_MANIFEST, &files->manifest.file);
	if (r == 0)
		r = lock(files);
	if (r == 0)
		r = open_file(files, CHECKPOINT_RUNS, &files->runs);
	return r < 0 ? r : mark_files(files);
}

/* Is that entry the directory of a rank from n on, with a checkpoint in it? */
static bool is_of_rank(int directory, const char *name, unsigned n)
{
	char path[64];
	unsigned rank;

	if (sscanf(name, "rank-%u", &rank) != 1 || rank < n)
		return false;
	snprintf(path, sizeof path, RANK_FORMAT, rank);
	if (strcmp(path, name) != 0)
		return false;
	snprintf(path, sizeof path, RANK_FORMAT "/%s", rank,
		 checkpoint_file_names[CHECKPOINT_MANIFEST]);
	return faccessat(directory, path, F_OK, 0) == 0;
}

static int fail_ranks(const char *all, const char *name, unsigned n)
{
	return fail(-EEXIST,
		    "%s/%s: a checkpoint of a sort by %s ranks: go on with that one, or remove "
		    "what all %s/rank-* hold",
		    all, name, n ? "more" : "several", all);
}

/* Of ranks that were killed when they had done, or have disks of their own, any may be left. */
int checkpoint_files_check_ranks(const struct checkpoint_files *files, unsigned n)
{
	const char *all = files->group ? files->group : files->path;
	DIR *directory = opendir(all);
	int r = 0;

	if (!directory) /* said by who makes it */
		return 0;
	for (struct dirent *entry; r == 0 && (entry = readdir(directory));)
		if (is_of_rank(dirfd(directory), entry->d_name, n))
			r = fail_ranks(all, entry->d_name, n);
	closedir(directory);
	return r;
}

static int sync_above(const struct checkpoint_files *files, const char *way)
{
	struct file parent;
	int r = file_open(files->directory.calls, files->directory.fd, way, O_RDONLY | O_DIRECTORY,
			  0, &parent);

	if (r == 0) {
		r = file_sync(&parent);
		file_close(&parent);
	}
	return r;
}

int checkpoint_files_sync_names(const struct checkpoint_files *files)
{
	int r = file_sync(&files->directory);

	if (r == 0)
		r = sync_above(files, "..");
	if (r == 0 && files->group)
		r = sync_above(files, "../..");
	return r < 0 ? fail(r, "%s: cannot bring it to stable storage: %m", files->path) : 0;
}

/* Does the name still lead to the file that was opened? If so 1. */
static int is_ours(const struct checkpoint_files *files, enum checkpoint_file i)
{
	struct stat status;

	if (fstatat(files->directory.fd, checkpoint_file_names[i], &status, AT_SYMLINK_NOFOLLOW) <
	    0)
		return errno == ENOENT ? 0 : -errno;
	return file_identity_equal(file_identity_of(&status), files->identities[i]);
}

bool checkpoint_files_are_there(const struct checkpoint_files *files)
{
	struct stat opened, named;

	return fstat(files->directory.fd, &opened) == 0 && stat(files->path, &named) == 0 &&
	       file_identity_equal(file_identity_of(&opened), file_identity_of(&named)) &&
	       is_ours(files, CHECKPOINT_MANIFEST) > 0 && is_ours(files, CHECKPOINT_RUNS) > 0;
}

/* The sort is as good as it is without that, but somebody must remove what takes space. */
static bool remove_file(const struct checkpoint_files *files, enum checkpoint_file i)
{
	const char *name = checkpoint_file_names[i];
	int r = is_ours(files, i);

	if (r > 0)
		r = file_remove(files->directory.calls, files->directory.fd, name, 0);
	if (r < 0)
		warn("%s/%s is not needed any more, and cannot be removed: %s", files->path, name,
		     strerror(-r));
	return r == 0;
}

/* Unless there is something in it; another rank may be faster. */
static void remove_empty(const struct checkpoint_files *files, const char *path)
{
	const int r = file_remove(files->directory.calls, AT_FDCWD, path, AT_REMOVEDIR);

	if (r < 0 && r != -ENOTEMPTY && r != -EEXIST && !(r == -ENOENT && files->group))
		warn("%s is not needed any more, and cannot be removed: %s", path, strerror(-r));
}

static void remove_directory(const struct checkpoint_files *files)
{
	remove_empty(files, files->path);
	if (files->made_group)
		remove_empty(files, files->group);
}

void checkpoint_files_remove(const struct checkpoint_files *files)
{
	/* Runs without a manifest are nobody's, and the next sort would not touch them. */
	if (remove_file(files, CHECKPOINT_RUNS) && remove_file(files, CHECKPOINT_MANIFEST) &&
	    files->made_directory)
		remove_directory(files);
}

void checkpoint_files_abandon(const struct checkpoint_files *files)
{
	bool is_clear = true;

	/* Without the lock they may be another process's by now. */
	if (files->is_locked && files->is_made[CHECKPOINT_RUNS])
		is_clear = remove_file(files, CHECKPOINT_RUNS);
	if (files->is_locked && files->is_made[CHECKPOINT_MANIFEST] && is_clear)
		remove_file(files, CHECKPOINT_MANIFEST);
	if (files->made_directory)
		remove_directory(files);
}

void checkpoint_files_close(struct checkpoint_files *files)
{
	file_close(&files->runs);
	file_close(&files->manifest.file);
	file_close(&files->directory);
	free(files->manifest_path);
	free(files->rank_path);
	files->manifest_path = NULL;
	files->rank_path = NULL;
}
