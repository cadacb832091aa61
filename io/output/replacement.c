/*
 * replacement - a new file that takes the name of a target when it is complete (see replacement.h)
 */
#include "io/output/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file/file_state.h"
#include "io/file/place.h"
#include "io/output/attributes.h"
#include "io/output/commitment.h"
#include "io/output/hidden_names.h"
#include "io/output/leftovers.h"
#include "src/base/messages.h"

struct replacement {
	const struct syscalls *calls;
	const char *path;      /* as given, for messages */
	struct file directory; /* of the target; by path only */
	char *name;            /* of the target in it */
	bool has_old;
	struct stat old;
	struct file old_file;       /* for its attributes; open if it has_old */
	struct hidden_name *hidden; /* NULL if the file has no name, or a kept one */
	struct hidden_name own;     /* where that is, if nobody else has to know it */
	const char *kept_name;      /* or NULL */
	struct file held;           /* a duplicate that keeps the lock (leftovers.h), or closed */
};

/* Open the directory part of `path` and keep the rest as the target's name. */
static int open_directory(struct replacement *replacement, char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	const char *directory = !slash ? "." : slash == path ? "/" : path;

	if (!*name)
		return -EISDIR;
	replacement->name = strdup(name);
	if (!replacement->name)
		return -ENOMEM;
	if (slash)
		*slash = '\0';
	return file_open(replacement->calls, AT_FDCWD, directory, O_PATH | O_DIRECTORY, 0,
			 &replacement->directory);
}

/*
 * Would the rename be allowed? It is better to know that before the sorting. In a directory
 * like /tmp only the owner of the file or of the directory may replace a file.
 */
static int check_sticky(const struct replacement *replacement)
{
	const uid_t user = geteuid();
	struct stat directory;

	if (fstat(replacement->directory.fd, &directory) < 0)
		return -errno;
	if (!(directory.st_mode & S_ISVTX) || user == 0 || user == directory.st_uid ||
	    user == replacement->old.st_uid)
		return 0;
	return fail(-EPERM,
		    "%s: is somebody else's, and in its directory only owners may replace files "
		    "(it is sticky, as /tmp is); let the output go to another file",
		    replacement->path);
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
static int check_bindings(const struct replacement *replacement)
{
	const struct binding directory = binding_of(replacement->directory.fd);
	struct binding old = { 0 };

	if (replacement->has_old)
		old = binding_of(replacement->old_file.fd);
	if (directory.only_grows)
		return fail(-EPERM,
			    "%s: its directory is append-only (chattr +a), so that no complete "
			    "file can take the name; let the output go to another directory",
			    replacement->path);
	if (old.only_grows)
		return fail(-EPERM,
			    "%s: is append-only (chattr +a), so that no complete file can take its "
			    "place; chattr -a frees it, and >> FILE adds to it",
			    replacement->path);
	if (old.mount && directory.mount && old.mount != directory.mount)
		return fail(-EBUSY,
			    "%s: is a mount point, so that no complete file can take its place; "
			    "let the output go to a file beside it, or, if that is no input, by "
			    "> FILE",
			    replacement->path);
	return 0;
}

/* Is the file that was found by the path, through links, the one of that name in the directory? */
static int open_old(struct replacement *replacement)
{
	struct stat status;
	/*
	 * A link of /proc/self/fd may lead to a file whose name has been removed, or to none of
	 * ours.
	 */
	const int r = attributes_open(replacement->calls, replacement->directory.fd,
				      replacement->name, &replacement->old_file);

	if (r < 0)
		return r;
	if (fstat(replacement->old_file.fd, &status) < 0)
		return -errno;
	if (!file_identity_equal(file_identity_of(&status), file_identity_of(&replacement->old)))
		return -ESTALE;
	return check_sticky(replacement);
}

static int find_target(struct replacement *replacement)
{
	char *path;
	int r = place_follow_links(replacement->path, &path);

	if (r < 0)
		return r;
	r = open_directory(replacement, path);
	free(path);
	if (r == 0 && replacement->has_old)
		r = open_old(replacement);
	return r == 0 ? check_bindings(replacement) : r;
}

static int make_hidden(struct replacement *replacement, mode_t mode, struct file *ret_file)
{
	int r;

	replacement->hidden = hidden_names_take(replacement->calls->names,
						replacement->directory.fd, &replacement->own);
	if (!replacement->hidden)
		return -EMFILE;
	r = file_open(replacement->calls, replacement->directory.fd, replacement->hidden->name,
		      O_RDWR | O_CREAT | O_EXCL, mode, ret_file);
	if (r < 0) {
		hidden_names_give_up(replacement->hidden);
		replacement->hidden = NULL;
	}
	return r;
}

static int fail_kept(const struct replacement *replacement, int r, const char *what)
{
	return fail(r, "%s: %s beside it %s", replacement->path, replacement->kept_name, what);
}

/* status: of the file with the kept name. Nobody else may be able to change it. */
static int check_kept(const struct replacement *replacement, const struct stat *status)
{
	if (!S_ISREG(status->st_mode) || status->st_uid != geteuid())
		return fail_kept(replacement, -EEXIST,
				 "is another file than the one that was begun; remove it");
	if (status->st_nlink != 1)
		return fail_kept(replacement, -EEXIST,
				 "has other names as well (hard links), by which it could be "
				 "changed; remove those");
	return 0;
}

/*
 * Take up the file with the kept name. It must be ours: in a shared directory somebody else could
 * have put something in its place.
 */
static int take_up_kept(const struct replacement *replacement, struct file *ret_file)
{
	struct file file;
	struct stat status;
	int r = file_open(replacement->calls, replacement->directory.fd, replacement->kept_name,
			  O_RDWR | O_NOFOLLOW, 0, &file);

	if (r == -ELOOP)
		return fail_kept(replacement, r, "is a symbolic link now; remove it");
	if (r < 0)
		return r;
	r = fstat(file.fd, &status) < 0 ? -errno : check_kept(replacement, &status);
	if (r < 0)
		file_close(&file);
	else
		*ret_file = file;
	return r;
}

static int open_kept(const struct replacement *replacement, mode_t mode, struct file *ret_file)
{
	const int r = file_open(replacement->calls, replacement->directory.fd,
				replacement->kept_name, O_RDWR | O_CREAT | O_EXCL, mode, ret_file);

	return r == -EEXIST ? take_up_kept(replacement, ret_file) : r;
}

static bool has_name(const struct replacement *replacement)
{
	return replacement->hidden || replacement->kept_name;
}

/*
 * The file is closed before it gets its name, as a close may have something to report; until then
 * this keeps what has no name, and the lock that says that somebody is at work.
 */
static int keep_open(struct replacement *replacement, const struct file *file)
{
	if (replacement->held.fd < 0)
		replacement->held.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return replacement->held.fd < 0 ? -errno : 0;
}

static void hold(struct replacement *replacement, const struct file *file)
{
	leftovers_hold(file);
	keep_open(replacement, file); /* if it cannot be now, it may be in the end */
}

static int make_file(struct replacement *replacement, struct file *ret_file)
{
	/* Nobody else reads the contents of a file that was private. */
	const mode_t mode = replacement->has_old ? 0600 : 0666;
	int r = -EOPNOTSUPP;

	if (replacement->kept_name)
		return open_kept(replacement, mode, ret_file);
	if (access("/proc/self/fd", X_OK) == 0)
		r = file_open(replacement->calls, replacement->directory.fd, ".",
			      O_RDWR | O_TMPFILE, mode, ret_file);
	/* EISDIR is what a kernel says that does not know the flag. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		r = make_hidden(replacement, mode, ret_file);
	if (r == 0)
		hold(replacement, ret_file);
	return r;
}

int replacement_start(const struct syscalls *calls, const char *path, const struct stat *old,
		      const char *kept_name, struct file *ret_file,
		      struct replacement **ret_replacement)
{
	struct replacement *replacement = calloc(1, sizeof *replacement);
	int r;

	if (!replacement)
		return fail(-ENOMEM, "%s: %m", path);
	replacement->calls = calls;
	replacement->path = path;
	replacement->directory = (struct file){ .calls = calls, .fd = -1 };
	replacement->old_file = replacement->held = replacement->directory;
	replacement->has_old = old != NULL;
	replacement->kept_name = kept_name;
	if (old)
		replacement->old = *old;
	r = find_target(replacement);
	if (r == 0)
		r = make_file(replacement, ret_file);
	if (r < 0) {
		replacement_leave(replacement); /* there is no file that is ours */
		return fail(r, "%s: cannot make a file beside it to take its place: %m", path);
	}
	if (replacement->hidden) /* others had to have a name here, too */
		leftovers_tell(&replacement->directory, path);
	else if (old && !kept_name)
		leftovers_tell_beside(&replacement->directory, path, replacement->name);
	*ret_replacement = replacement;
	return 0;
}

/* The target is no more open than it was, and no less if that can be. */
static int copy_attributes(const struct replacement *replacement, const struct file *file)
{
	struct attributes_lost lost;
	const int r = attributes_copy(&replacement->old_file, file, &lost);

	if (r < 0)
		return r;
	if (lost.access_list)
		warn("%s: its access list cannot be kept: only its owner can use the file now",
		     replacement->path);
	if (lost.others)
		warn("%s: not all of its extended attributes can be kept", replacement->path);
	return 0;
}

/* What is unfinished must not stay in silence: it takes as much space as the output. */
static void remove_unfinished(const struct replacement *replacement, const char *name)
{
	const int r = file_remove(replacement->calls, replacement->directory.fd, name, 0);

	if (r < 0)
		warn("%s: %s beside it is unfinished, and cannot be removed: %s", replacement->path,
		     name, strerror(-r));
}

static int fail_taken(const struct replacement *replacement)
{
	return fail(-EBUSY,
		    "%s: somebody else has made a file of that name since it was looked at; it "
		    "stays as it is",
		    replacement->path);
}

/*
 * What is replaced must be what was there at first: an input is read, sorted and checked, and what
 * others have written since then is not in the output. status: what has the name now.
 */
static int check_old(const struct replacement *replacement, const struct stat *status)
{
	const struct file_state old = file_state_of(&replacement->old);
	const struct file_state now = file_state_of(status);

	if (!replacement->has_old)
		return fail_taken(replacement);
	if (!file_identity_equal(file_identity_of(status), file_identity_of(&replacement->old)))
		return fail(-EBUSY,
			    "%s: leads to another file than when it was looked at; that stays as "
			    "it is",
			    replacement->path);
	if (file_state_is_same(&old, &now))
		return 0;
	return fail(-EBUSY,
		    "%s: has changed since it was looked at, so it is not replaced; sort when "
		    "nobody writes to it",
		    replacement->path);
}

/* By the path as it was given, through links, and by the name that is to be replaced. */
static int check_target(const struct replacement *replacement)
{
	struct stat status;
	int r = 0;

	if (stat(replacement->path, &status) == 0)
		r = check_old(replacement, &status);
	if (r == 0 && fstatat(replacement->directory.fd, replacement->name, &status,
			      AT_SYMLINK_NOFOLLOW) == 0)
		r = check_old(replacement, &status);
	return r;
}

int replacement_check(const struct replacement *replacement)
{
	return check_target(replacement);
}

static int link_nameless(const struct replacement *replacement, const char *name)
{
	char descriptor[sizeof "/proc/self/fd/" + 12];
	const int fd = replacement->held.fd;

	snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd);
	return replacement->calls->linkat(AT_FDCWD, descriptor, replacement->directory.fd, name,
					  AT_SYMLINK_FOLLOW) < 0 ?
		       -errno :
		       0;
}

/* A name for the moment that the rename takes. */
static int link_for_now(const struct replacement *replacement,
			char ret_name[static LEFTOVERS_NAME_SIZE])
{
	int r;

	leftovers_name_beside(replacement->name, ret_name);
	r = link_nameless(replacement, ret_name);
	if (r != -EEXIST)
		return r;
	/* Somebody was killed in that moment, and it has been told; or is in it now. */
	leftovers_make_name(ret_name);
	return link_nameless(replacement, ret_name);
}

static int rename_from(const struct replacement *replacement, const char *name)
{
	const int directory = replacement->directory.fd;
	const int r = check_target(replacement);

	if (r < 0)
		return r;
	return replacement->calls->renameat(directory, name, directory, replacement->name) < 0 ?
		       -errno :
		       0;
}

static int rename_named(struct replacement *replacement)
{
	const int r = rename_from(replacement, replacement->kept_name ? replacement->kept_name :
									replacement->hidden->name);

	if (r < 0)
		return r;
	if (replacement->hidden)
		hidden_names_give_up(replacement->hidden);
	replacement->hidden = NULL;
	replacement->kept_name = NULL;
	return 0;
}

/* A link takes no name from anybody; but where there is a file, it cannot be made. */
static int name_nameless(const struct replacement *replacement)
{
	char name[LEFTOVERS_NAME_SIZE];
	int r;

	if (!replacement->has_old) {
		r = link_nameless(replacement, replacement->name);
		return r == -EEXIST ? fail_taken(replacement) : r;
	}
	r = link_for_now(replacement, name);
	if (r < 0)
		return r;
	r = rename_from(replacement, name);
	if (r < 0)
		remove_unfinished(replacement, name);
	return r;
}

static int give_name(struct replacement *replacement)
{
	const bool is_first = commitment_make(replacement->calls->commitment);
	const int r = has_name(replacement) ? rename_named(replacement) :
					      name_nameless(replacement);

	if (r < 0 && is_first)
		commitment_revoke(replacement->calls->commitment);
	return r;
}

static int sync_directory(const struct replacement *replacement)
{
	struct file directory;
	int r = file_open(replacement->calls, replacement->directory.fd, ".",
			  O_RDONLY | O_DIRECTORY, 0, &directory);

	if (r < 0)
		return r;
	r = file_sync(&directory);
	file_close(&directory);
	return r;
}

int replacement_finish(struct replacement *replacement, struct file *file, bool sync_name,
		       bool keeps)
{
	int r = 0, closed;

	if (replacement->has_old)
		r = copy_attributes(replacement, file);
	if (r == 0 && !has_name(replacement))
		r = keep_open(replacement, file);
	/* An error that the file system kept back until now must not reach the target. */
	closed = file_close(file);
	if (r == 0)
		r = closed;
	if (r == 0)
		r = give_name(replacement);
	if (r < 0)
		fail(r, "%s: cannot be replaced: %m", replacement->path);
	else if (sync_name && (r = sync_directory(replacement)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     replacement->path);
	if (keeps)
		replacement_leave(replacement);
	else
		replacement_drop(replacement);
	return r;
}

void replacement_drop(struct replacement *replacement)
{
	if (!replacement)
		return;
	if (replacement->hidden) {
		remove_unfinished(replacement, replacement->hidden->name);
		hidden_names_give_up(replacement->hidden);
	}
	if (replacement->kept_name)
		remove_unfinished(replacement, replacement->kept_name);
	replacement_leave(replacement);
}

void replacement_leave(struct replacement *replacement)
{
	file_close(&replacement->held);
	file_close(&replacement->old_file);
	file_close(&replacement->directory);
	free(replacement->name);
	free(replacement);
}
