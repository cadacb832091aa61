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

static const char posix_acl_name[] = "system.posix_acl_access";

static bool name_has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool is_acl_name(const char *name)
{
	return name_has_prefix(name, "system.");
}

/* Of these bytes, or of a program: the new file holds others. */
static bool describes_contents(const char *name)
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
static const char *proc_fd_path(const struct file *file, char path[static 32])
{
	snprintf(path, 32, "/proc/self/fd/%d", file->fd);
	return path;
}

static ssize_t list_xattrs(const struct file *file, char *names, size_t nbytes)
{
	char path[32];
	const ssize_t n = flistxattr(file->fd, names, nbytes);

	return n < 0 && errno == EBADF ? listxattr(proc_fd_path(file, path), names, nbytes) : n;
}

static ssize_t get_xattr(const struct file *file, const char *name, void *value, size_t nbytes)
{
	char path[32];
	const ssize_t n = fgetxattr(file->fd, name, value, nbytes);

	return n < 0 && errno == EBADF ? getxattr(proc_fd_path(file, path), name, value, nbytes) :
					 n;
}

static bool is_missing_xattr(int error)
{
	return error == ENODATA || error == EOPNOTSUPP;
}

/* Returns whether the new file has it now, too, or neither does. */
static bool copy_xattr(const struct file *old, const struct file *file, const char *name,
		       void *value)
{
	const ssize_t nbytes = get_xattr(old, name, value, XATTR_SIZE_MAX);

	if (nbytes < 0)
		return is_missing_xattr(errno);
	return file->calls->fsetxattr(file->fd, name, value, (size_t)nbytes, 0) == 0;
}

static void copy_listed_xattrs(const struct file *old, const struct file *file, const char *names,
			       size_t nbytes, void *value, struct lost_attributes *lost)
{
	for (const char *name = names; name < names + nbytes; name += strlen(name) + 1) {
		if (describes_contents(name) || !strcmp(name, posix_acl_name) ||
		    copy_xattr(old, file, name, value))
			continue;
		if (is_acl_name(name))
			lost->acl = true;
		else if (name_has_prefix(name, "user."))
			lost->xattrs = true;
	}
}

/* What a file inherits from its directory is no list of the old one's. */
static bool remove_inherited_acl(const struct file *file)
{
	return fremovexattr(file->fd, posix_acl_name) == 0 || is_missing_xattr(errno);
}

/*
 * The list speaks of a group by what the file's group is: of another one it would say what is not
 * meant.
 */
static void copy_posix_acl(const struct file *old, const struct file *file, bool same_group,
			   void *value, struct lost_attributes *lost)
{
	const ssize_t nbytes = get_xattr(old, posix_acl_name, value, XATTR_SIZE_MAX);

	if (nbytes < 0 && is_missing_xattr(errno))
		lost->acl |= !remove_inherited_acl(file);
	else if (nbytes < 0 || !same_group ||
		 file->calls->fsetxattr(file->fd, posix_acl_name, value, (size_t)nbytes, 0) < 0)
		lost->acl = true;
}

static int copy_all_xattrs(const struct file *old, const struct file *file, bool same_group,
			   struct lost_attributes *lost)
{
	char *names = malloc(XATTR_LIST_MAX + XATTR_SIZE_MAX), *value;
	ssize_t nbytes;

	if (!names)
		return -ENOMEM;
	value = names + XATTR_LIST_MAX;
	nbytes = list_xattrs(old, names, XATTR_LIST_MAX);
	if (nbytes < 0 && !is_missing_xattr(errno))
		lost->xattrs = true;
	if (nbytes > 0)
		copy_listed_xattrs(old, file, names, (size_t)nbytes, value, lost);
	copy_posix_acl(old, file, same_group, value, lost);
	free(names);
	return 0;
}

/* --- all of it --- */

static mode_t permitted_mode(const struct stat *old, const struct stat *status,
			     const struct lost_attributes *lost)
{
	mode_t mode = old->st_mode & 07777;

	if (status->st_uid != old->st_uid)
		mode &= ~(mode_t)S_ISUID;
	if (status->st_gid != old->st_gid)
		mode &= ~(mode_t)S_ISGID & ((mode & 07) << 3 | ~(mode_t)070);
	if (lost->acl)
		mode &= ~(mode_t)077;
	return mode;
}

int attributes_copy(const struct file *old, const struct file *file,
		    struct lost_attributes *ret_lost)
{
	struct lost_attributes lost = { false, false };
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
	r = copy_all_xattrs(old, file, status.st_gid == old_status.st_gid, &lost);
	if (r < 0)
		return r;
	mode = permitted_mode(&old_status, &status, &lost);
	/* A list of NFS 4 has set it already, and would be made anew from it. */
	if (fstat(file->fd, &status) < 0 ||
	    ((status.st_mode & 07777) != mode && fchmod(file->fd, mode) < 0))
		return -errno;
	*ret_lost = lost;
	return 0;
}
