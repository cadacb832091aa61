/*
 * file_attributes - what belongs to a file besides its bytes (see file_attributes.h)
 *
 * Access lists are read and set as the extended attributes that they are to the system: POSIX lists
 * are "system.posix_acl_access", those of NFS 4 and SMB have other names that begin alike. Nothing
 * has to understand what is in them.
 */
#include "io/output/file_attributes.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char posix_list[] = "system.posix_acl_access";

static bool begins(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_access_list(const char *name)
{
	return begins(name, "system.");
}

/* Of these bytes, or of a program: the new file holds others. */
static bool is_about_contents(const char *name)
{
	return !strcmp(name, "security.capability") || !strcmp(name, "security.ima") ||
	       !strcmp(name, "security.evm");
}

int attributes_open(const struct syscalls *calls, int directory, const char *name,
		    struct file *ret_old)
{
	const int r =
		file_open(calls, directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, ret_old);

	return r < 0 ? file_open(calls, directory, name, O_PATH | O_NOFOLLOW, 0, ret_old) : 0;
}

/* --- extended attributes --- */

/* The way to a file that is open by path only: its descriptor cannot be read, its link can. */
static const char *path_of(const struct file *file, char path[static 32])
{
	snprintf(path, 32, "/proc/self/fd/%d", file->fd);
	return path;
}

static ssize_t list_names(const struct file *file, char *names, size_t nbytes)
{
	char path[32];
	const ssize_t n = flistxattr(file->fd, names, nbytes);

	return n < 0 && errno == EBADF ? listxattr(path_of(file, path), names, nbytes) : n;
}

static ssize_t get_value(const struct file *file, const char *name, void *value, size_t nbytes)
{
	char path[32];
	const ssize_t n = fgetxattr(file->fd, name, value, nbytes);

	return n < 0 && errno == EBADF ? getxattr(path_of(file, path), name, value, nbytes) : n;
}

static bool has_none(int error)
{
	return error == ENODATA || error == EOPNOTSUPP;
}

/* Returns whether the new file has it now, too, or neither does. */
static bool copy_value(const struct file *old, const struct file *file, const char *name,
		       void *value)
{
	const ssize_t nbytes = get_value(old, name, value, XATTR_SIZE_MAX);

	if (nbytes < 0)
		return has_none(errno);
	return file->calls->fsetxattr(file->fd, name, value, (size_t)nbytes, 0) == 0;
}

static void copy_values(const struct file *old, const struct file *file, const char *names,
			size_t nbytes, void *value, struct attributes_lost *lost)
{
	for (const char *name = names; name < names + nbytes; name += strlen(name) + 1) {
		if (is_about_contents(name) || !strcmp(name, posix_list) ||
		    copy_value(old, file, name, value))
			continue;
		if (is_access_list(name))
			lost->access_list = true;
		else if (begins(name, "user."))
			lost->others = true;
	}
}

/* What a file inherits from its directory is no list of the old one's. */
static bool drop_inherited(const struct file *file)
{
	return fremovexattr(file->fd, posix_list) == 0 || has_none(errno);
}

/*
 * The list speaks of a group by what the file's group is: of another one it would say what is not
 * meant.
 */
static void copy_posix_list(const struct file *old, const struct file *file, bool same_group,
			    void *value, struct attributes_lost *lost)
{
	const ssize_t nbytes = get_value(old, posix_list, value, XATTR_SIZE_MAX);

	if (nbytes < 0 && has_none(errno))
		lost->access_list |= !drop_inherited(file);
	else if (nbytes < 0 || !same_group ||
		 file->calls->fsetxattr(file->fd, posix_list, value, (size_t)nbytes, 0) < 0)
		lost->access_list = true;
}

static int copy_extended(const struct file *old, const struct file *file, bool same_group,
			 struct attributes_lost *lost)
{
	char *names = malloc(XATTR_LIST_MAX + XATTR_SIZE_MAX), *value;
	ssize_t nbytes;

	if (!names)
		return -ENOMEM;
	value = names + XATTR_LIST_MAX;
	nbytes = list_names(old, names, XATTR_LIST_MAX);
	if (nbytes < 0 && !has_none(errno))
		lost->others = true;
	if (nbytes > 0)
		copy_values(old, file, names, (size_t)nbytes, value, lost);
	copy_posix_list(old, file, same_group, value, lost);
	free(names);
	return 0;
}

/* --- all of it --- */

static mode_t permissions(const struct stat *old, const struct stat *status,
			  const struct attributes_lost *lost)
{
	mode_t mode = old->st_mode & 07777;

	if (status->st_uid != old->st_uid)
		mode &= ~(mode_t)S_ISUID;
	if (status->st_gid != old->st_gid)
		mode &= ~(mode_t)S_ISGID & ((mode & 07) << 3 | ~(mode_t)070);
	if (lost->access_list)
		mode &= ~(mode_t)077;
	return mode;
}

int attributes_copy(const struct file *old, const struct file *file,
		    struct attributes_lost *ret_lost)
{
	struct attributes_lost lost = { false, false };
	struct stat old_status, status;
	mode_t mode;
	int r;

	if (fstat(old->fd, &old_status) < 0)
		return -errno;
	if (fchown(file->fd, old_status.st_uid, old_status.st_gid) < 0 &&
	    fchown(file->fd, (uid_t)-1, old_status.st_gid) < 0 && errno != EPERM && errno != EINVAL)
		return -errno;
	if (fstat(file->fd, &status) < 0)
		return -errno;
	r = copy_extended(old, file, status.st_gid == old_status.st_gid, &lost);
	if (r < 0)
		return r;
	mode = permissions(&old_status, &status, &lost);
	/* A list of NFS 4 has set it already, and would be made anew from it. */
	if (fstat(file->fd, &status) < 0 ||
	    ((status.st_mode & 07777) != mode && fchmod(file->fd, mode) < 0))
		return -errno;
	*ret_lost = lost;
	return 0;
}
