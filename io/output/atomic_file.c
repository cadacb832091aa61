/*
 * atomic_file.c - a new file that replaces a target when it is complete (see atomic_file.h)
 *
 * Access lists are read and set as extended attributes: POSIX lists are "system.posix_acl_access";
 * those of NFS 4 and SMB have other names that begin with "system.". Their contents need not be
 * understood.
 */
#include "io/output/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "io/file/file.h"
#include "io/file/path_identity.h"
#include "io/output/undo.h"
#include "src/base/diagnostics.h"

/* --- the target --- */

/* Open the directory part of `path` and keep the rest as the target's name. */
static int open_directory(struct atomic_target *target, char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *directory = !slash ? "." : slash == path ? "/" : path;

	if (!*name)
		return -EISDIR;
	target->name = strdup(name);
	if (!target->name)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	return file_open(target->directory.calls, AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0,
			 &target->directory);
}

/* Only the owner of the file or of the directory may replace a file in a sticky directory. */
static int check_sticky(const struct atomic_target *target)
{
	const uid_t user = geteuid();
	struct stat directory;

	if (fstat(target->directory.fd, &directory) < 0)
		return -errno;
	if (!(directory.st_mode & S_ISVTX) || user == 0 || user == directory.st_uid ||
	    user == target->old_status.st_uid)
		return 0;
	return fail(-EPERM,
		    "%s: belongs to another user in a sticky directory such as /tmp; write to "
		    "another file",
		    target->path);
}

/* What can forbid a rename; 0: unknown. */
struct rename_constraints {
	bool is_append_only;
	uint64_t mount_id;
};

static struct rename_constraints get_rename_constraints(int fd)
{
	struct rename_constraints constraints = { 0 };
#ifdef STATX_MNT_ID
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0)
		return constraints;
	constraints.is_append_only = status.stx_attributes & STATX_ATTR_APPEND;
	if (status.stx_mask & STATX_MNT_ID)
		constraints.mount_id = status.stx_mnt_id;
#else
	(void)fd;
#endif
	return constraints;
}

static int check_rename_constraints(const struct atomic_target *target)
{
	const struct rename_constraints directory = get_rename_constraints(target->directory.fd);
	struct rename_constraints old_file = { 0 };

	if (target->had_file)
		old_file = get_rename_constraints(target->old_file.fd);
	if (directory.is_append_only)
		return fail(-EPERM,
			    "%s: its directory is append-only (chattr +a); write to another "
			    "directory",
			    target->path);
	if (old_file.is_append_only)
		return fail(-EPERM,
			    "%s: is append-only (chattr +a) and cannot be replaced; use chattr -a, "
			    "or append to it by >> FILE",
			    target->path);
	if (old_file.mount_id && directory.mount_id && old_file.mount_id != directory.mount_id)
		return fail(-EBUSY,
			    "%s: mount point cannot be replaced; write to another file, or with > "
			    "FILE if it is no input",
			    target->path);
	return 0;
}

/*
 * Open the old file by its name in the directory, and check that stat() has found the same file. A
 * link of /proc/self/fd may lead to a file whose name has been removed, or that is not ours.
 */
static int open_old_file(struct atomic_target *target)
{
	struct stat status;
	const int r = attributes_open(target->directory.calls, target->directory.fd, target->name,
				      &target->old_file);

	if (r < 0)
		return r;
	if (fstat(target->old_file.fd, &status) < 0)
		return -errno;
	if (!file_id_equal(file_id_from_stat(&status), file_id_from_stat(&target->old_status)))
		return -ESTALE;
	return check_sticky(target);
}

int atomic_target_open(const struct syscalls *calls, const char *path, const struct stat *old,
		       struct atomic_target *target)
{
	char *resolved_path;
	int r;

	*target = (struct atomic_target){ .path = path,
					  .directory = { .calls = calls, .fd = -1 },
					  .old_file = { .calls = calls, .fd = -1 },
					  .had_file = old != NULL };
	if (old)
		target->old_status = *old;
	r = path_follow_links(path, &resolved_path);
	if (r < 0)
		return r;
	r = open_directory(target, resolved_path);
	free(resolved_path);
	if (r == 0 && target->had_file)
		r = open_old_file(target);
	return r == 0 ? check_rename_constraints(target) : r;
}

/* A new file in a directory of the caller, named by the last component of the path. */
static int open_target_in(const struct file *directory, const char *path,
			  struct atomic_target *target)
{
	const char *slash = strrchr(path, '/');

	*target = (struct atomic_target){
		.path = path,
		.directory = *directory,
		.borrows_directory = true,
		.name = strdup(slash ? slash + 1 : path),
		.old_file = { .calls = directory->calls, .fd = -1 },
	};
	return target->name ? 0 : -ENOMEM;
}

static int fail_target_exists(const struct atomic_target *target)
{
	return fail(-EBUSY, "%s: another program created it during the sort; it is kept",
		    target->path);
}

/*
 * Check the file that the target's name leads to now. It may be an input: data that other programs
 * have written to it since it was read is not in the output.
 */
static int check_same_file(const struct atomic_target *target, const struct stat *status)
{
	const struct file_state old = file_state_from_stat(&target->old_status);
	const struct file_state current = file_state_from_stat(status);

	if (!target->had_file)
		return fail_target_exists(target);
	if (!file_id_equal(file_id_from_stat(status), file_id_from_stat(&target->old_status)))
		return fail(-EBUSY,
			    "%s: another program replaced this file during the sort; it is kept",
			    target->path);
	if (file_state_is_unchanged(&old, &current))
		return 0;
	return fail(-EBUSY,
		    "%s: has changed during the sort and is kept; sort again when no process "
		    "writes to it",
		    target->path);
}

/* Return whether a path without links leads to the target's name in its directory. */
static int is_same_target(const struct atomic_target *target, char *path)
{
	char *const slash = strrchr(path, '/');
	struct stat directory, current;

	if (strcmp(slash ? slash + 1 : path, target->name))
		return 0;
	if (slash)
		slash[slash == path] = '\0'; /* "/name" is in "/" */
	if (stat(slash ? path : ".", &current) < 0 || fstat(target->directory.fd, &directory) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return file_id_equal(file_id_from_stat(&current), file_id_from_stat(&directory));
}

static int check_same_path(const struct atomic_target *target)
{
	char *path;
	int r = path_follow_links(target->path, &path);

	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		r = is_same_target(target, path);
		free(path);
		if (r < 0)
			return fail(r, "%s: cannot resolve this path: %m", target->path);
		if (r > 0)
			return 0;
	}
	return fail(
		-EBUSY,
		"%s: a link or directory in this path changed during the sort; the existing file "
		"is kept",
		target->path);
}

/* Check the path as given, through links, and the name that will be replaced. */
int atomic_target_verify(const struct atomic_target *target)
{
	struct stat status;
	int r = 0;

	if (!target->borrows_directory && stat(target->path, &status) == 0)
		r = check_same_file(target, &status);
	if (r == 0 &&
	    fstatat(target->directory.fd, target->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		r = check_same_file(target, &status);
	return r < 0 || target->borrows_directory ? r : check_same_path(target);
}

int atomic_target_sync_name(const struct atomic_target *target)
{
	struct file directory;
	int r = file_open(target->directory.calls, target->directory.fd, ".",
			  O_RDONLY | O_DIRECTORY, 0, &directory);

	if (r < 0)
		return r;
	r = file_sync(&directory);
	file_close(&directory);
	return r;
}

void atomic_target_close(struct atomic_target *target)
{
	file_close(&target->old_file);
	if (!target->borrows_directory)
		file_close(&target->directory);
	free(target->name);
	target->name = NULL;
}

/* --- attributes --- */

static const char posix_acl_name[] = "system.posix_acl_access";

static bool name_has_prefix(const char *name, const char *prefix)
{
	return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Return whether the attribute describes the contents, which differ in the new file. */
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

/* Return a path that can be read from, even if the descriptor was opened with O_PATH. */
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

/* Returns whether both files have the attribute now, or neither has. */
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
		if (name_has_prefix(name, "system."))
			lost->acl = true;
		else if (name_has_prefix(name, "user."))
			lost->xattrs = true;
	}
}

/*
 * Without a list in the old file, remove the list that the new file has inherited from its
 * directory. A list is valid only together with the file's group, which it refers to.
 */
static void copy_posix_acl(const struct file *old, const struct file *file, bool same_group,
			   void *value, struct lost_attributes *lost)
{
	const ssize_t nbytes = get_xattr(old, posix_acl_name, value, XATTR_SIZE_MAX);

	if (nbytes < 0 && is_missing_xattr(errno))
		lost->acl |= fremovexattr(file->fd, posix_acl_name) < 0 && !is_missing_xattr(errno);
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

/*
 * The group bits of a file with an access list are the mask of the list, not the permissions of the
 * group. So without the list only the owner gets access.
 */
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
	/* An NFS 4 list has set the mode already; setting the mode would change the list. */
	if (fstat(file->fd, &status) < 0 ||
	    ((status.st_mode & 07777) != mode && fchmod(file->fd, mode) < 0))
		return -errno;
	*ret_lost = lost;
	return 0;
}

void attributes_warn_lost(const char *path, const struct lost_attributes *lost)
{
	if (lost->acl)
		warn("%s: access list not kept; now only the owner has access", path);
	if (lost->xattrs)
		warn("%s: some extended attributes not kept", path);
}

/* --- the new file --- */

struct atomic_file {
	const struct syscalls *calls;
	struct atomic_target target;
	struct undo_entry *temp_name; /* NULL: the file has no name */
	struct undo_entry own_temp_name;
	struct file lock_file;  /* a duplicate that keeps the lock (orphans.h), or closed */
	struct file_id file_id; /* of the new file, for the commit */
	struct file_state complete_state; /* of the new file, if is_complete */
	bool is_complete;
};

static int create_with_temp_name(struct atomic_file *atomic_file, mode_t mode,
				 const struct orphan_owner *owner, struct file *ret_file)
{
	struct undo_table *undo = atomic_file->calls->undo;
	const int directory = atomic_file->target.directory.fd;
	int r;

	atomic_file->temp_name =
		undo_reserve_name(undo, directory, owner, UNDO_UNLINK, &atomic_file->own_temp_name);
	if (!atomic_file->temp_name)
		return -EMFILE;
	r = file_open(atomic_file->calls, directory, atomic_file->temp_name->name,
		      O_RDWR | O_CREAT | O_EXCL, mode, ret_file);
	undo_name_created(atomic_file->temp_name);
	if (r < 0) {
		undo_remove(undo, atomic_file->temp_name);
		atomic_file->temp_name = NULL;
	}
	return r;
}

/*
 * The file is closed before it gets its name, because closing may report an error. The duplicate
 * keeps an unnamed file, and the lock.
 */
static int duplicate_descriptor(struct atomic_file *atomic_file, const struct file *file)
{
	if (atomic_file->lock_file.fd < 0)
		atomic_file->lock_file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return atomic_file->lock_file.fd < 0 ? -errno : 0;
}

static int create_temp_file(struct atomic_file *atomic_file,
			    const struct atomic_file_params *params, struct file *ret_file)
{
	/* The contents of a private file must not become readable. */
	const mode_t mode = atomic_file->target.had_file ? 0600 : 0666;
	int r = -EOPNOTSUPP;

	if (params->kind == ATOMIC_PRIVATE && access("/proc/self/fd", X_OK) == 0)
		r = file_open(atomic_file->calls, atomic_file->target.directory.fd, ".",
			      O_RDWR | O_TMPFILE, mode, ret_file);
	/* Kernels that do not know the flag return EISDIR. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		r = create_with_temp_name(atomic_file, mode, &params->owner, ret_file);
	if (r < 0)
		return r;
	orphans_lock(ret_file);
	duplicate_descriptor(atomic_file, ret_file); /* if this fails, the commit tries again */
	return 0;
}

static int create(struct atomic_file *atomic_file, const char *path,
		  const struct atomic_file_params *params, struct file *ret_file)
{
	const struct atomic_target *target = &atomic_file->target;
	int r;

	if (!params->is_silent)
		orphans_remove(&target->directory, &params->owner);
	r = create_temp_file(atomic_file, params, ret_file);
	if (r < 0 || params->is_silent)
		return r;
	/* If this file needs a temporary name, others needed one, too. */
	orphans_warn(&target->directory, path, target->had_file ? target->name : NULL,
		     atomic_file->temp_name ? UINT64_MAX : ORPHANS_FEW_ENTRIES);
	return 0;
}

/* The creator may be killed outright. Then this process removes the name if it is aborted. */
static int join(struct atomic_file *atomic_file, const char *name, struct file *ret_file)
{
	const int directory = atomic_file->target.directory.fd;
	const int r =
		file_open(atomic_file->calls, directory, name, O_RDWR | O_NOFOLLOW, 0, ret_file);

	if (r < 0)
		return r;
	atomic_file->temp_name = undo_adopt_name(atomic_file->calls->undo, directory, name,
						 UNDO_UNLINK, &atomic_file->own_temp_name);
	return atomic_file->temp_name ? 0 : -EMFILE;
}

int atomic_file_open(const struct syscalls *calls, const char *path, const struct stat *old,
		     const struct atomic_file_params *params, struct file *ret_file,
		     struct atomic_file **ret_atomic_file)
{
	const bool joins = params->kind == ATOMIC_SHARED_EXISTING;
	struct atomic_file *atomic_file = calloc(1, sizeof *atomic_file);
	int r;

	if (!atomic_file)
		return fail(-ENOMEM, "%s: %m", path);
	atomic_file->calls = calls;
	atomic_file->lock_file = (struct file){ .calls = calls, .fd = -1 };
	r = params->directory ? open_target_in(params->directory, path, &atomic_file->target) :
				atomic_target_open(calls, path, old, &atomic_file->target);
	if (r == 0)
		r = joins ? join(atomic_file, params->name, ret_file) :
			    create(atomic_file, path, params, ret_file);
	if (r == 0) {
		*ret_atomic_file = atomic_file;
		return 0;
	}
	atomic_file_close(atomic_file);
	if (joins)
		return fail(
			r,
			"%s: cannot open %s of another rank in its directory: %m; all ranks must "
			"see the same directory",
			path, params->name);
	return fail(r, "%s: cannot create a temporary file in the same directory: %m", path);
}

const char *atomic_file_temp_name(const struct atomic_file *atomic_file)
{
	return atomic_file->temp_name ? atomic_file->temp_name->name : NULL;
}

/* --- is the new file unchanged? Processes that can open it must not write to it. --- */

static int fail_replace(const struct atomic_file *atomic_file, int r)
{
	return fail(r, "%s: cannot be replaced: %m", atomic_file->target.path);
}

static int check_unmodified(const struct atomic_file *atomic_file, const struct stat *status)
{
	const struct file_state current = file_state_from_stat(status);

	if (!atomic_file->is_complete ||
	    file_state_is_unchanged(&atomic_file->complete_state, &current))
		return 0;
	return fail(-EBUSY, "%s: the new file, %s, was changed by another process",
		    atomic_file->target.path, atomic_file->temp_name->name);
}

int atomic_file_mark_complete(struct atomic_file *atomic_file, const struct file *file)
{
	struct stat status;
	int r;

	if (!atomic_file->temp_name)
		return 0;
	if (fstat(file->fd, &status) < 0)
		return fail_replace(atomic_file, -errno);
	r = check_unmodified(atomic_file, &status);
	if (r < 0)
		return r;
	atomic_file->complete_state = file_state_from_stat(&status);
	atomic_file->is_complete = true;
	return 0;
}

static int check_final_size(struct atomic_file *atomic_file, const struct file *file,
			    uint64_t nbytes)
{
	struct stat status;

	if (fstat(file->fd, &status) < 0)
		return -errno;
	atomic_file->file_id = file_id_from_stat(&status);
	if ((uint64_t)status.st_size == nbytes)
		return check_unmodified(atomic_file, &status);
	return fail(-EBUSY,
		    "%s: the new file has %jd bytes instead of %" PRIu64
		    ": it was changed by another process",
		    atomic_file->target.path, (intmax_t)status.st_size, nbytes);
}

/* Setting attributes moves the time of change (ctime), but not the size or time of modification. */
static int copy_target_attributes(struct atomic_file *atomic_file, const struct file *file)
{
	const struct file_state complete = atomic_file->complete_state;
	struct lost_attributes lost;
	struct stat status;
	const int r = attributes_copy(&atomic_file->target.old_file, file, &lost);

	if (r < 0)
		return r;
	attributes_warn_lost(atomic_file->target.path, &lost);
	if (!atomic_file->is_complete)
		return 0;
	if (fstat(file->fd, &status) < 0)
		return -errno;
	atomic_file->complete_state = file_state_from_stat(&status);
	atomic_file->complete_state.nbytes = complete.nbytes;
	atomic_file->complete_state.modified = complete.modified;
	return check_unmodified(atomic_file, &status);
}

/* --- the commit --- */

static void release_temp_name(struct atomic_file *atomic_file)
{
	if (atomic_file->temp_name)
		undo_remove(atomic_file->calls->undo, atomic_file->temp_name);
	atomic_file->temp_name = NULL;
}

/* An unfinished file takes as much space as the output, so failure is reported. */
static void remove_temp_file(const struct atomic_file *atomic_file, const char *name)
{
	const int r = file_remove(atomic_file->calls, atomic_file->target.directory.fd, name, 0);

	if (r < 0)
		warn("%s: cannot remove the unfinished file %s in the same directory: %s",
		     atomic_file->target.path, name, strerror(-r));
}

static int link_unnamed(const struct atomic_file *atomic_file, const char *name)
{
	char path[32];

	return atomic_file->calls->linkat(AT_FDCWD, proc_fd_path(&atomic_file->lock_file, path),
					  atomic_file->target.directory.fd, name,
					  AT_SYMLINK_FOLLOW) < 0 ?
		       -errno :
		       0;
}

/*
 * Link the file under a temporary name for the rename. If the usual name exists, a process was
 * killed between link and rename, which has been reported, or is there now.
 */
static int link_for_rename(const struct atomic_file *atomic_file,
			   char ret_name[static TEMP_NAME_SIZE])
{
	int r;

	orphans_make_rename_name(atomic_file->target.name, ret_name);
	r = link_unnamed(atomic_file, ret_name);
	if (r != -EEXIST)
		return r;
	orphans_make_temp_name(NULL, ret_name);
	return link_unnamed(atomic_file, ret_name);
}

static int rename_to_target(const struct atomic_file *atomic_file, const char *name)
{
	const struct atomic_target *target = &atomic_file->target;
	const int directory = target->directory.fd;
	const int r = atomic_target_verify(target);

	if (r < 0)
		return r;
	return atomic_file->calls->renameat(directory, name, directory, target->name) < 0 ? -errno :
											    0;
}

/*
 * Everybody sees the temporary name: does it still lead to the new file? If not, it is not ours to
 * remove.
 */
static int check_temp_name(struct atomic_file *atomic_file, const char *name)
{
	const char *path = atomic_file->target.path;
	struct stat status;
	int r;

	if (fstatat(atomic_file->target.directory.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno != ENOENT)
			return -errno;
		r = fail(-ENOENT, "%s: the new file, %s, was removed by another process", path,
			 name);
	} else if (file_id_equal(file_id_from_stat(&status), atomic_file->file_id)) {
		return check_unmodified(atomic_file, &status);
	} else {
		r = fail(-EBUSY,
			 "%s: the new file, %s, was replaced by another process; both are kept",
			 path, name);
	}
	release_temp_name(atomic_file);
	return r;
}

static int publish_named(struct atomic_file *atomic_file)
{
	const char *const name = atomic_file->temp_name->name;
	int r = check_temp_name(atomic_file, name);

	if (r == 0)
		r = rename_to_target(atomic_file, name);
	if (r == 0)
		release_temp_name(atomic_file);
	return r;
}

/* A link replaces no file, so that is safe without a check; but it fails if there is one. */
static int publish_unnamed(const struct atomic_file *atomic_file)
{
	const struct atomic_target *target = &atomic_file->target;
	char name[TEMP_NAME_SIZE];
	int r;

	if (!target->had_file) {
		r = atomic_target_verify(target);
		if (r == 0)
			r = link_unnamed(atomic_file, target->name);
		return r == -EEXIST ? fail_target_exists(target) : r;
	}
	r = link_for_rename(atomic_file, name);
	if (r < 0)
		return r;
	r = rename_to_target(atomic_file, name);
	if (r < 0)
		remove_temp_file(atomic_file, name);
	return r;
}

static int publish(struct atomic_file *atomic_file)
{
	const bool is_first = undo_commit_begin(atomic_file->calls->undo);
	const int r = atomic_file->temp_name ? publish_named(atomic_file) :
					       publish_unnamed(atomic_file);

	if (r < 0 && is_first)
		undo_commit_rollback(atomic_file->calls->undo);
	return r;
}

int atomic_file_commit(struct atomic_file *atomic_file, struct file *file, uint64_t nbytes,
		       bool sync_name)
{
	int r = check_final_size(atomic_file, file, nbytes), close_result;

	if (r == 0 && atomic_file->target.had_file)
		r = copy_target_attributes(atomic_file, file);
	if (r == 0 && !atomic_file->temp_name)
		r = duplicate_descriptor(atomic_file, file);
	/* An error that the file system has delayed until now must not reach the target. */
	close_result = file_close(file);
	if (r == 0)
		r = close_result;
	if (r == 0)
		r = publish(atomic_file);
	if (r < 0)
		fail_replace(atomic_file, r);
	else if (sync_name && (r = atomic_target_sync_name(&atomic_file->target)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     atomic_file->target.path);
	atomic_file_discard(atomic_file);
	return r;
}

void atomic_file_discard(struct atomic_file *atomic_file)
{
	if (!atomic_file)
		return;
	if (atomic_file->temp_name)
		remove_temp_file(atomic_file, atomic_file->temp_name->name);
	atomic_file_close(atomic_file);
}

void atomic_file_close(struct atomic_file *atomic_file)
{
	release_temp_name(atomic_file);
	file_close(&atomic_file->lock_file);
	atomic_target_close(&atomic_file->target);
	free(atomic_file);
}
