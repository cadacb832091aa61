/*
 * wrap_files - files whose calls can fail: see fault_points.h
 *
 * What a descriptor leads to decides which point its transfers pass.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tests/fault/wrapper.h"

struct statvfs64;

enum { MOST_FILES = 1024 };

/* What a descriptor leads to. */
enum role { ROLE_OTHER, ROLE_OUTPUT, ROLE_TEMPORARY, ROLE_MANIFEST };

static const char *temporary;
static _Atomic(unsigned char) roles[MOST_FILES];

void points_set_temporary(const char *prefix)
{
	temporary = prefix;
}

static enum role role_of(int fd)
{
	return fd >= 0 && fd < MOST_FILES ? atomic_load(&roles[fd]) : ROLE_OTHER;
}

/*
 * A nameless file beside a target, a hidden name there, and what is in a checkpoint are opened by
 * their directories.
 */
static enum role role_by_path(int directory, const char *path, int flags)
{
	int fd;

	if (sscanf(path, "/proc/self/fd/%d", &fd) == 1)
		return role_of(fd);
	if (temporary && strncmp(path, temporary, strlen(temporary)) == 0)
		return ROLE_TEMPORARY;
	if (strcmp(path, ".output.parts.pending") == 0) /* for the next, if this one is killed */
		return ROLE_MANIFEST;
	if (directory == AT_FDCWD || (flags & O_ACCMODE) != O_RDWR)
		return ROLE_OTHER;
	return strcmp(path, "gsort-runs") == 0     ? ROLE_TEMPORARY :
	       strcmp(path, "gsort-manifest") == 0 ? ROLE_MANIFEST :
						     ROLE_OUTPUT;
}

int __real_openat64(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat64(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat64(int directory, const char *path, int flags, mode_t mode)
{
	const enum role role = role_by_path(directory, path, flags);
	int fd;

	if (point_fails(POINT_OPEN))
		return -1;
	fd = __real_openat64(directory, path, flags, mode);
	if (fd >= 0 && fd < MOST_FILES)
		atomic_store(&roles[fd], role);
	return fd;
}

/* Linux closes even when it reports an error. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int r;

	if (fd >= 0 && fd < MOST_FILES)
		atomic_store(&roles[fd], ROLE_OTHER);
	r = __real_close(fd);
	return point_fails(POINT_CLOSE) ? -1 : r;
}

/*
 * The mark of a checkpoint's runs is no data: nothing that is sorted lies in so little at the
 * beginning of a file.
 */
static bool is_mark(int fd, size_t nbytes, off_t offset)
{
	return role_of(fd) == ROLE_TEMPORARY && offset == 0 && nbytes <= 16;
}

static enum point read_point(int fd)
{
	static const enum point by_role[] = { [ROLE_OTHER] = POINT_READ,
					      [ROLE_OUTPUT] = POINT_READ_BACK,
					      [ROLE_TEMPORARY] = POINT_READ_TEMPORARY,
					      [ROLE_MANIFEST] = POINT_READ_MANIFEST };

	return by_role[role_of(fd)];
}

static enum point write_point(int fd)
{
	static const enum point by_role[] = { [ROLE_OTHER] = POINT_WRITE,
					      [ROLE_OUTPUT] = POINT_WRITE,
					      [ROLE_TEMPORARY] = POINT_WRITE_TEMPORARY,
					      [ROLE_MANIFEST] = POINT_WRITE_MANIFEST };

	return by_role[role_of(fd)];
}

ssize_t __real_read(int fd, void *buffer, size_t nbytes);
ssize_t __real_pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t __real_write(int fd, const void *data, size_t nbytes);
ssize_t __real_pwrite64(int fd, const void *data, size_t nbytes, off_t offset);
int __real_ftruncate64(int fd, off_t nbytes);
void *__real_malloc(size_t nbytes);

/* A transfer at the descriptor's own position has this offset. */
enum { NEXT = -1 };

static ssize_t read_at(int fd, void *buffer, size_t nbytes, off_t offset)
{
	return offset == NEXT ? __real_read(fd, buffer, nbytes) :
				__real_pread64(fd, buffer, nbytes, offset);
}

static ssize_t write_at(int fd, const void *data, size_t nbytes, off_t offset)
{
	return offset == NEXT ? __real_write(fd, data, nbytes) :
				__real_pwrite64(fd, data, nbytes, offset);
}

static void damage(int fd, off_t offset)
{
	unsigned char byte;

	if (__real_pread64(fd, &byte, 1, offset) != 1)
		return;
	byte ^= 0x10;
	if (__real_pwrite64(fd, &byte, 1, offset) != 1)
		abort();
}

static void cut(int fd, off_t offset)
{
	if (__real_ftruncate64(fd, offset) < 0)
		abort();
}

static ssize_t write_altered(int fd, const void *data, size_t nbytes, off_t offset)
{
	unsigned char *copy = __real_malloc(nbytes);
	ssize_t n;

	if (!copy)
		abort();
	memcpy(copy, data, nbytes);
	copy[points_fault_position(nbytes)] ^= 0x10;
	n = write_at(fd, copy, nbytes, offset);
	free(copy);
	return n;
}

static ssize_t read_twin(int fd, void *buffer, size_t nbytes, off_t offset)
{
	const off_t position = offset + (off_t)points_fault_position(nbytes);
	const bool of_mark = is_mark(fd, nbytes, offset);

	switch (point_pass(of_mark ? POINT_READ_MANIFEST : read_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_END:
		return 0;
	case EFFECT_SHORT:
		return read_at(fd, buffer, (nbytes + 1) / 2, offset);
	case EFFECT_DAMAGE:
		damage(fd, position);
		break;
	case EFFECT_CUT:
		cut(fd, position);
		break;
	default:
		break;
	}
	return read_at(fd, buffer, nbytes, offset);
}

static ssize_t write_twin(int fd, const void *data, size_t nbytes, off_t offset)
{
	const bool of_mark = is_mark(fd, nbytes, offset);

	switch (point_pass(of_mark ? POINT_WRITE_MANIFEST : write_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_END:
		return 0;
	case EFFECT_SHORT:
		return write_at(fd, data, (nbytes + 1) / 2, offset);
	case EFFECT_LOSE:
		return (ssize_t)nbytes;
	case EFFECT_ALTER:
		return write_altered(fd, data, nbytes, offset);
	default:
		return write_at(fd, data, nbytes, offset);
	}
}

ssize_t __wrap_read(int fd, void *buffer, size_t nbytes);
ssize_t __wrap_read(int fd, void *buffer, size_t nbytes)
{
	return read_twin(fd, buffer, nbytes, NEXT);
}

ssize_t __wrap_pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *buffer, size_t nbytes, off_t offset)
{
	return read_twin(fd, buffer, nbytes, offset);
}

ssize_t __wrap_write(int fd, const void *data, size_t nbytes);
ssize_t __wrap_write(int fd, const void *data, size_t nbytes)
{
	return write_twin(fd, data, nbytes, NEXT);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t nbytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t nbytes, off_t offset)
{
	return write_twin(fd, data, nbytes, offset);
}

int __real_fallocate64(int fd, int mode, off_t offset, off_t nbytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t nbytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t nbytes)
{
	return point_fails(mode & FALLOC_FL_PUNCH_HOLE ? POINT_PUNCH : POINT_PREALLOCATE) ?
		       -1 :
		       __real_fallocate64(fd, mode, offset, nbytes);
}

/* --- Calls that either happen or fail --- */

/* clang-format off */
TWIN(POINT_EXAMINE, int, -1, stat64, (const char *path, struct stat64 *status), (path, status))
TWIN(POINT_EXAMINE, int, -1, fstat64, (int fd, struct stat64 *status), (fd, status))
TWIN(POINT_EXAMINE, int, -1, fstatat64,
	(int directory, const char *path, struct stat64 *status, int flags),
	(directory, path, status, flags))
TWIN(POINT_EXAMINE, int, -1, statvfs64, (const char *path, struct statvfs64 *status),
	(path, status))
TWIN(POINT_EXAMINE, int, -1, fstatvfs64, (int fd, struct statvfs64 *status), (fd, status))
TWIN(POINT_TRUNCATE, int, -1, ftruncate64, (int fd, off_t nbytes), (fd, nbytes))
TWIN(POINT_SYNC, int, -1, fsync, (int fd), (fd))
TWIN(POINT_LINK, int, -1, linkat, (int from, const char *name, int to, const char *as, int flags),
	(from, name, to, as, flags))
TWIN(POINT_RENAME, int, -1, renameat, (int from, const char *name, int to, const char *as),
	(from, name, to, as))
TWIN(POINT_RENAME, int, -1, renameat2,
	(int from, const char *name, int to, const char *as, unsigned flags),
	(from, name, to, as, flags))
TWIN(POINT_PERMISSIONS, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
TWIN(POINT_MAKE_DIRECTORY, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
TWIN(POINT_REMOVE, int, -1, unlinkat, (int directory, const char *name, int flags),
	(directory, name, flags))
TWIN(POINT_LOCK, int, -1, flock, (int fd, int operation), (fd, operation))
/* clang-format on */
