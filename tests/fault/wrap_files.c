/*
 * wrap_files.c - doubles of calls on files, with fault points (see fault_points.h)
 *
 * The kind of file decides which point the transfers of a descriptor pass.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "tests/fault/wrapper.h"

struct statvfs64;

enum { MAX_FDS = 1024 };

/* The kind of file of a descriptor. */
enum fd_role { FD_OTHER, FD_OUTPUT, FD_TEMP, FD_MANIFEST };

static const char *temp_prefix;
static _Atomic(unsigned char) fd_roles[MAX_FDS];

void fault_points_set_temp_prefix(const char *prefix)
{
	temp_prefix = prefix;
}

static enum fd_role get_fd_role(int fd)
{
	return fd >= 0 && fd < MAX_FDS ? atomic_load(&fd_roles[fd]) : FD_OTHER;
}

/*
 * Return the role of a file that is opened. Temporary files of an output and files of a checkpoint
 * are opened relative to their directories.
 */
static enum fd_role get_role_by_path(int directory, const char *path, int flags)
{
	int fd;

	if (sscanf(path, "/proc/self/fd/%d", &fd) == 1)
		return get_fd_role(fd);
	if (temp_prefix && strncmp(path, temp_prefix, strlen(temp_prefix)) == 0)
		return FD_TEMP;
	if (directory == AT_FDCWD || (flags & O_ACCMODE) != O_RDWR)
		return FD_OTHER;
	return strcmp(path, "gsort-runs") == 0     ? FD_TEMP :
	       strcmp(path, "gsort-manifest") == 0 ? FD_MANIFEST :
						     FD_OUTPUT;
}

int __real_openat64(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat64(int directory, const char *path, int flags, mode_t mode);
int __wrap_openat64(int directory, const char *path, int flags, mode_t mode)
{
	const enum fd_role role = get_role_by_path(directory, path, flags);
	int fd;

	if (fault_point_fails(POINT_OPEN))
		return -1;
	fd = __real_openat64(directory, path, flags, mode);
	if (fd >= 0 && fd < MAX_FDS)
		atomic_store(&fd_roles[fd], role);
	return fd;
}

/* Linux closes even when it reports an error. */
int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd)
{
	int r;

	if (fd >= 0 && fd < MAX_FDS)
		atomic_store(&fd_roles[fd], FD_OTHER);
	r = __real_close(fd);
	return fault_point_fails(POINT_CLOSE) ? -1 : r;
}

/*
 * Return whether a transfer is the magic number of a checkpoint's runs, which is not data: items
 * are never transferred in so few bytes at the beginning of a file.
 */
static bool is_runs_magic(int fd, size_t nbytes, off_t offset)
{
	return get_fd_role(fd) == FD_TEMP && offset == 0 && nbytes <= 16;
}

static enum fault_point read_point(int fd)
{
	static const enum fault_point by_role[] = { [FD_OTHER] = POINT_READ,
						    [FD_OUTPUT] = POINT_READ_BACK,
						    [FD_TEMP] = POINT_READ_TEMP,
						    [FD_MANIFEST] = POINT_READ_MANIFEST };

	return by_role[get_fd_role(fd)];
}

static enum fault_point write_point(int fd)
{
	static const enum fault_point by_role[] = { [FD_OTHER] = POINT_WRITE,
						    [FD_OUTPUT] = POINT_WRITE,
						    [FD_TEMP] = POINT_WRITE_TEMP,
						    [FD_MANIFEST] = POINT_WRITE_MANIFEST };

	return by_role[get_fd_role(fd)];
}

ssize_t __real_read(int fd, void *buffer, size_t nbytes);
ssize_t __real_pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t __real_write(int fd, const void *data, size_t nbytes);
ssize_t __real_pwrite64(int fd, const void *data, size_t nbytes, off_t offset);
int __real_ftruncate64(int fd, off_t nbytes);
void *__real_malloc(size_t nbytes);

/* The offset of a transfer at the descriptor's own position. */
enum { CURRENT_POSITION = -1 };

static ssize_t real_read_at(int fd, void *buffer, size_t nbytes, off_t offset)
{
	return offset == CURRENT_POSITION ? __real_read(fd, buffer, nbytes) :
					    __real_pread64(fd, buffer, nbytes, offset);
}

static ssize_t real_write_at(int fd, const void *data, size_t nbytes, off_t offset)
{
	return offset == CURRENT_POSITION ? __real_write(fd, data, nbytes) :
					    __real_pwrite64(fd, data, nbytes, offset);
}

static void corrupt_byte(int fd, off_t offset)
{
	unsigned char byte;

	if (__real_pread64(fd, &byte, 1, offset) != 1)
		return;
	byte ^= 0x10;
	if (__real_pwrite64(fd, &byte, 1, offset) != 1)
		abort();
}

static void truncate_at(int fd, off_t offset)
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
	copy[fault_points_byte_position(nbytes)] ^= 0x10;
	n = real_write_at(fd, copy, nbytes, offset);
	free(copy);
	return n;
}

static ssize_t wrapped_read(int fd, void *buffer, size_t nbytes, off_t offset)
{
	const off_t position = offset + (off_t)fault_points_byte_position(nbytes);
	const bool is_magic = is_runs_magic(fd, nbytes, offset);

	switch (fault_point_pass(is_magic ? POINT_READ_MANIFEST : read_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_EOF:
		return 0;
	case EFFECT_SHORT:
		return real_read_at(fd, buffer, (nbytes + 1) / 2, offset);
	case EFFECT_CORRUPT:
		corrupt_byte(fd, position);
		break;
	case EFFECT_TRUNCATE:
		truncate_at(fd, position);
		break;
	default:
		break;
	}
	return real_read_at(fd, buffer, nbytes, offset);
}

static ssize_t wrapped_write(int fd, const void *data, size_t nbytes, off_t offset)
{
	const bool is_magic = is_runs_magic(fd, nbytes, offset);

	switch (fault_point_pass(is_magic ? POINT_WRITE_MANIFEST : write_point(fd))) {
	case EFFECT_FAIL:
		return -1;
	case EFFECT_EOF:
		return 0;
	case EFFECT_SHORT:
		return real_write_at(fd, data, (nbytes + 1) / 2, offset);
	case EFFECT_LOSE_WRITE:
		return (ssize_t)nbytes;
	case EFFECT_ALTER_WRITE:
		return write_altered(fd, data, nbytes, offset);
	default:
		return real_write_at(fd, data, nbytes, offset);
	}
}

ssize_t __wrap_read(int fd, void *buffer, size_t nbytes);
ssize_t __wrap_read(int fd, void *buffer, size_t nbytes)
{
	return wrapped_read(fd, buffer, nbytes, CURRENT_POSITION);
}

ssize_t __wrap_pread64(int fd, void *buffer, size_t nbytes, off_t offset);
ssize_t __wrap_pread64(int fd, void *buffer, size_t nbytes, off_t offset)
{
	return wrapped_read(fd, buffer, nbytes, offset);
}

ssize_t __wrap_write(int fd, const void *data, size_t nbytes);
ssize_t __wrap_write(int fd, const void *data, size_t nbytes)
{
	return wrapped_write(fd, data, nbytes, CURRENT_POSITION);
}

ssize_t __wrap_pwrite64(int fd, const void *data, size_t nbytes, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *data, size_t nbytes, off_t offset)
{
	return wrapped_write(fd, data, nbytes, offset);
}

int __real_fallocate64(int fd, int mode, off_t offset, off_t nbytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t nbytes);
int __wrap_fallocate64(int fd, int mode, off_t offset, off_t nbytes)
{
	return fault_point_fails(mode & FALLOC_FL_PUNCH_HOLE ? POINT_PUNCH : POINT_PREALLOCATE) ?
		       -1 :
		       __real_fallocate64(fd, mode, offset, nbytes);
}

/* --- Calls without other effects than failing --- */

/* clang-format off */
WRAP_CALL(POINT_STAT, int, -1, stat64, (const char *path, struct stat64 *status), (path, status))
WRAP_CALL(POINT_STAT, int, -1, fstat64, (int fd, struct stat64 *status), (fd, status))
WRAP_CALL(POINT_STAT, int, -1, fstatat64,
	(int directory, const char *path, struct stat64 *status, int flags),
	(directory, path, status, flags))
WRAP_CALL(POINT_STAT, int, -1, statvfs64, (const char *path, struct statvfs64 *status),
	(path, status))
WRAP_CALL(POINT_STAT, int, -1, fstatvfs64, (int fd, struct statvfs64 *status), (fd, status))
WRAP_CALL(POINT_TRUNCATE, int, -1, ftruncate64, (int fd, off_t nbytes), (fd, nbytes))
WRAP_CALL(POINT_SYNC, int, -1, fsync, (int fd), (fd))
WRAP_CALL(POINT_LINK, int, -1, linkat,
	(int from, const char *name, int to, const char *new_name, int flags),
	(from, name, to, new_name, flags))
WRAP_CALL(POINT_RENAME, int, -1, renameat,
	(int from, const char *name, int to, const char *new_name),
	(from, name, to, new_name))
WRAP_CALL(POINT_RENAME, int, -1, renameat2,
	(int from, const char *name, int to, const char *new_name, unsigned flags),
	(from, name, to, new_name, flags))
WRAP_CALL(POINT_PERMISSIONS, int, -1, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP_CALL(POINT_MKDIR, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP_CALL(POINT_MKDIR, int, -1, mkdirat, (int directory, const char *name, mode_t mode),
	(directory, name, mode))
WRAP_CALL(POINT_UNLINK, int, -1, unlinkat, (int directory, const char *name, int flags),
	(directory, name, flags))
WRAP_CALL(POINT_LOCK, int, -1, flock, (int fd, int operation), (fd, operation))
/* clang-format on */
