/*
 * target_check - what has the name that a new file is to take (see target_check.h)
 */
#include "io/output/target_check.h"

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
static int open_directory(struct replaced *replaced, char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *directory = !slash ? "." : slash == path ? "/" : path;

	if (!*name)
		return -EISDIR;
	replaced->name = strdup(name);
	if (!replaced->name)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	return file_open(replaced->directory.calls, AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0,
			 &replaced->directory);
}

/*
 * Would the rename be allowed? It is better to know that before the sorting. In a directory
 * like /tmp only the owner of the file or of the directory may replace a file.
 */
static int check_sticky(const struct replaced *replaced)
{
	const uid_t user = geteuid();
	struct stat directory;

	if (fstat(replaced->directory.fd, &directory) < 0)
		return -errno;
	if (!(directory.st_mode & S_ISVTX) || user == 0 || user == directory.st_uid ||
	    user == replaced->old.st_uid)
		return 0;
	return fail(-EPERM,
		    "%s: is somebody else's, and in its directory only owners may replace files "
		    "(it is sticky, as /tmp is); let the output go to another file",
		    replaced->path);
}

/* What a rename asks of a file and of the directory that it is in; 0: the system does not say. */
struct binding {
	bool only_grows;
	uint64_t mount;
};

static struct binding binding_of(int fd)
{
	struct binding binding = { 0 };
#ifdef STATX_MNT_ID
	struct statx status;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &status) < 0)
		return binding;
	binding.only_grows = status.stx_attributes & STATX_ATTR_APPEND;
	if (status.stx_mask & STATX_MNT_ID)
		binding.mount = status.stx_mnt_id;
#else
	(void)fd;
#endif
	return binding;
}

/* A name cannot come to lead to another file where that is bound to it. */
static int check_bindings(const struct replaced *replaced)
{
	const struct binding directory = binding_of(replaced->directory.fd);
	struct binding old = { 0 };

	if (replaced->has_old)
		old = binding_of(replaced->old_file.fd);
	if (directory.only_grows)
		return fail(-EPERM,
			    "%s: its directory is append-only (chattr +a), so that no complete "
			    "file can take the name; let the output go to another directory",
			    replaced->path);
	if (old.only_grows)
		return fail(-EPERM,
			    "%s: is append-only (chattr +a), so that no complete file can take its "
			    "place; chattr -a frees it, and >> FILE adds to it",
			    replaced->path);
	if (old.mount && directory.mount && old.mount != directory.mount)
		return fail(-EBUSY,
			    "%s: is a mount point, so that no complete file can take its place; "
			    "let the output go to a file beside it, or, if that is no input, by "
			    "> FILE",
			    replaced->path);
	return 0;
}

/* Is the file that was found by the path, through links, the one of that name in the directory? */
static int open_old(struct replaced *replaced)
{
	struct stat status;
	/*
	 * A link of /proc/self/fd may lead to a file whose name has been removed, or to none of
	 * ours.
	 */
	const int r = attributes_open(replaced->directory.calls, replaced->directory.fd,
				      replaced->name, &replaced->old_file);

	if (r < 0)
		return r;
	if (fstat(replaced->old_file.fd, &status) < 0)
		return -errno;
	if (!file_identity_equal(file_identity_of(&status), file_identity_of(&replaced->old)))
		return -ESTALE;
	return check_sticky(replaced);
}

int replaced_find(const struct syscalls *calls, const char *given, const struct stat *old,
		  struct replaced *replaced)
{
	char *path;
	int r;

	*replaced = (struct replaced){ .path = given,
				       .directory = { .calls = calls, .fd = -1 },
				       .old_file = { .calls = calls, .fd = -1 },
				       .has_old = old != NULL };
	if (old)
		replaced->old = *old;
	r = place_follow_links(given, &path);

	if (r < 0)
		return r;
	r = open_directory(replaced, path);
	free(path);
	if (r == 0 && replaced->has_old)
		r = open_old(replaced);
	return r == 0 ? check_bindings(replaced) : r;
}

int replaced_fail_taken(const struct replaced *replaced)
{
	return fail(-EBUSY,
		    "%s: somebody else has made a file of that name since it was looked at; it "
		    "stays as it is",
		    replaced->path);
}

/*
 * What is replaced must be what was there at first: an input is read, sorted and checked, and what
 * others have written since then is not in the output. status: what has the name now.
 */
static int check_old(const struct replaced *replaced, const struct stat *status)
{
	const struct file_state old = file_state_of(&replaced->old);
	const struct file_state now = file_state_of(status);

	if (!replaced->has_old)
		return replaced_fail_taken(replaced);
	if (!file_identity_equal(file_identity_of(status), file_identity_of(&replaced->old)))
		return fail(-EBUSY,
			    "%s: leads to another file than when it was looked at; that stays as "
			    "it is",
			    replaced->path);
	if (file_state_is_same(&old, &now))
		return 0;
	return fail(-EBUSY,
		    "%s: has changed since it was looked at, so it is not replaced; sort when "
		    "nobody writes to it",
		    replaced->path);
}

/* Is that the name in the directory which the path led to at first? */
static int is_target(const struct replaced *replaced, char *path)
{
	char *const slash = strrchr(path, '/');
	struct stat directory, now;

	if (strcmp(slash ? slash + 1 : path, replaced->name))
		return 0;
	if (slash)
		slash[slash == path] = '\0'; /* "/name" is in "/" */
	if (stat(slash ? path : ".", &now) < 0 || fstat(replaced->directory.fd, &directory) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	return file_identity_equal(file_identity_of(&now), file_identity_of(&directory));
}

/* Who asks for a name finds the output there, or learns that it is not. */
static int check_way(const struct replaced *replaced)
{
	char *path;
	bool is_same = false;
	int r = place_follow_links(replaced->path, &path);

	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		r = is_target(replaced, path);
		free(path);
		is_same = r > 0;
		if (r < 0)
			return fail(r, "%s: cannot tell where it leads now: %m", replaced->path);
	}
	return is_same ? 0 :
			 fail(-EBUSY,
			      "%s: leads elsewhere than when it was looked at, since a link or a "
			      "directory was changed; what is there stays as it is",
			      replaced->path);
}

/* By the path as it was given, through links, and by the name that is to be replaced. */
int replaced_check(const struct replaced *replaced)
{
	struct stat status;
	int r = 0;

	if (stat(replaced->path, &status) == 0)
		r = check_old(replaced, &status);
	if (r == 0 &&
	    fstatat(replaced->directory.fd, replaced->name, &status, AT_SYMLINK_NOFOLLOW) == 0)
		r = check_old(replaced, &status);
	return r < 0 ? r : check_way(replaced);
}

void replaced_forget(struct replaced *replaced)
{
	file_close(&replaced->old_file);
	file_close(&replaced->directory);
	free(replaced->name);
	replaced->name = NULL;
}
