/*
 * target_snapshot - what has the name that a new file is to take (see target_snapshot.h)
 */
#include "io/output/target_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/file/file_change.h"
#include "io/file/path_identity.h"
#include "io/output/file_attributes.h"
#include "src/base/diagnostics.h"

/* Open the directory part of `path` and keep the rest as the target's name. */
static int open_directory(struct target_snapshot *target, char *path)
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

/*
 * Would the rename be allowed? It is better to know that before the sorting. In a directory
 * like /tmp only the owner of the file or of the directory may replace a file.
 */
static int check_sticky(const struct target_snapshot *target)
{
	const uid_t user = geteuid();
	struct stat directory;

	if (fstat(target->directory.fd, &directory) < 0)
		return -errno;
	if (!(directory.st_mode & S_ISVTX) || user == 0 || user == directory.st_uid ||
	    user == target->old_status.st_uid)
		return 0;
	return fail(-EPERM,
		    "%s: is somebody else's, and in its directory only owners may replace files "
		    "(it is sticky, as /tmp is); let the output go to another file",
		    target->path);
}

/* What a rename asks of a file and of the directory that it is in; 0: the system does not say. */
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

/* A name cannot come to lead to another file where that is bound to it. */
static int check_rename_constraints(const struct target_snapshot *target)
{
	const struct rename_constraints directory = get_rename_constraints(target->directory.fd);
	struct rename_constraints old_file = { 0 };

	if (target->had_file)
		old_file = get_rename_constraints(target->old_file.fd);
	if (directory.is_append_only)
		return fail(-EPERM,
			    "%s: its directory is append-only (chattr +a), so that no complete "
			    "file can take the name; let the output go to another directory",
			    target->path);
	if (old_file.is_append_only)
		return fail(-EPERM,
			    "%s: is append-only (chattr +a), so that no complete file can take its "
			    "place; chattr -a frees it, and >> FILE adds to it",
			    target->path);
	if (old_file.mount_id && directory.mount_id && old_file.mount_id != directory.mount_id)
		return fail(-EBUSY,
			    "%s: is a mount point, so that no complete file can take its place; "
			    "let the output go to a file beside it, or, if that is no input, by "
			    "> FILE",
			    target->path);
	return 0;
}

/* Is the file that was found by the path, through links, the one of that name in the directory? */
static int open_old(struct target_snapshot *target)
{
	struct stat status;
	/*
	 * A link of /proc/self/fd may lead to a file whose name has been removed, or to none of
	 * ours.
	 */
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

int target_snapshot_take(const struct syscalls *calls, const char *path, const struct stat *old,
			 struct target_snapshot *target)
{
	char *resolved_path;
	int r;

	*target = (struct target_snapshot){ .path = path,
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
		r = open_old(target);
	return r == 0 ? check_rename_constraints(target) : r;
}

int target_snapshot_take_in(const struct file *directory, const char *path,
			    struct target_snapshot *target)
{
	const char *slash = strrchr(path, '/');

	*target = (struct target_snapshot){
		.path = path,
		.directory = *directory,
		.borrows_directory = true,
		.name = strdup(slash ? slash + 1 : path),
		.old_file = { .calls = directory->calls, .fd = -1 },
	};
	return target->name ? 0 : -ENOMEM;
}

int target_snapshot_fail_exists(const struct target_snapshot *target)
{
	return fail(-EBUSY,
		    "%s: somebody else has made a file of that name since it was looked at; it "
		    "stays as it is",
		    target->path);
}

/*
 * What is replaced must be what was there at first: an input is read, sorted and checked, and what
 * others have written since then is not in the output. status: what has the name now.
 */
static int check_same_file(const struct target_snapshot *target, const struct stat *status)
{
	const struct file_state old = file_state_from_stat(&target->old_status);
	const struct file_state current = file_state_from_stat(status);

	if (!target->had_file)
		return target_snapshot_fail_exists(target);
	if (!file_id_equal(file_id_from_stat(status), file_id_from_stat(&target->old_status)))
		return fail(-EBUSY,
			    "%s: leads to another file than when it was looked at; that stays as "
			    "it is",
			    target->path);
	if (file_state_is_unchanged(&old, &current))
		return 0;
	return fail(-EBUSY,
		    "%s: has changed since it was looked at, so it is not replaced; sort when "
		    "nobody writes to it",
		    target->path);
}

/* Is that the name in the directory which the path led to at first? */
static int is_same_target(const struct target_snapshot *target, char *path)
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

/* Who asks for a name finds the output there, or learns that it is not. */
static int check_same_path(const struct target_snapshot *target)
{
	char *path;
	bool is_same = false;
	int r = path_follow_links(target->path, &path);

	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		r = is_same_target(target, path);
		free(path);
		is_same = r > 0;
		if (r < 0)
			return fail(r, "%s: cannot tell where it leads now: %m", target->path);
	}
	return is_same ? 0 :
			 fail(-EBUSY,
			      "%s: leads elsewhere than when it was looked at, since a link or a "
			      "directory was changed; what is there stays as it is",
			      target->path);
}

/* By the path as it was given, through links, and by the name that is to be replaced. */
int target_snapshot_verify(const struct target_snapshot *target)
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

void target_snapshot_close(struct target_snapshot *target)
{
	file_close(&target->old_file);
	if (!target->borrows_directory)
		file_close(&target->directory);
	free(target->name);
	target->name = NULL;
}
