/*
 * atomic_file - a new file that takes the name of a target when it is complete (see atomic_file.h)
 */
#include "io/output/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/file/file_change.h"
#include "io/output/file_attributes.h"
#include "io/output/commit_point.h"
#include "io/output/temp_names.h"
#include "io/output/orphans.h"
#include "io/output/target_check.h"
#include "src/base/diagnostics.h"

struct replacement {
	const struct syscalls *calls;
	struct replaced replaced;   /* what has the target's name */
	struct hidden_name *hidden; /* NULL if the file has no name, or a kept one */
	struct hidden_name own;     /* where that is, if nobody else has to know it */
	const char *kept_name;      /* or NULL */
	struct file held;           /* a duplicate that keeps the lock (orphans.h), or closed */
	struct file_identity made;  /* the new file, when it is finished */
	struct file_state written;  /* as it was left, if is_written */
	bool is_written;
};

static int make_hidden(struct replacement *replacement, mode_t mode,
		       const struct leftovers_owner *owner, struct file *ret_file)
{
	int r;

	replacement->hidden = hidden_names_take(replacement->calls->names,
						replacement->replaced.directory.fd, owner,
						&replacement->own);
	if (!replacement->hidden)
		return -EMFILE;
	r = file_open(replacement->calls, replacement->replaced.directory.fd,
		      replacement->hidden->name, O_RDWR | O_CREAT | O_EXCL, mode, ret_file);
	hidden_names_made(replacement->hidden);
	if (r < 0) {
		hidden_names_give_up(replacement->hidden);
		replacement->hidden = NULL;
	}
	return r;
}

static int fail_kept(const struct replacement *replacement, int r, const char *what)
{
	return fail(r, "%s: %s beside it %s", replacement->replaced.path, replacement->kept_name,
		    what);
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
	int r = file_open(replacement->calls, replacement->replaced.directory.fd,
			  replacement->kept_name, O_RDWR | O_NOFOLLOW, 0, &file);

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
	const int r = file_open(replacement->calls, replacement->replaced.directory.fd,
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

static int make_file(struct replacement *replacement, const struct replacement_way *way,
		     struct file *ret_file)
{
	/* Nobody else reads the contents of a file that was private. */
	const mode_t mode = replacement->replaced.has_old ? 0600 : 0666;
	int r = -EOPNOTSUPP;

	if (replacement->kept_name)
		return open_kept(replacement, mode, ret_file);
	if (!way->is_shared && access("/proc/self/fd", X_OK) == 0)
		r = file_open(replacement->calls, replacement->replaced.directory.fd, ".",
			      O_RDWR | O_TMPFILE, mode, ret_file);
	/* EISDIR is what a kernel says that does not know the flag. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		r = make_hidden(replacement, mode, &way->owner, ret_file);
	if (r == 0)
		hold(replacement, ret_file);
	return r;
}

static struct replacement *make_replacement(const struct syscalls *calls, const char *path)
{
	struct replacement *replacement = calloc(1, sizeof *replacement);

	if (!replacement) {
		fail(-ENOMEM, "%s: %m", path);
		return NULL;
	}
	replacement->calls = calls;
	replacement->held = (struct file){ .calls = calls, .fd = -1 };
	return replacement;
}

static void tell_leftovers(const struct replacement *replacement, const char *path,
			   const struct replacement_way *way)
{
	const struct replaced *replaced = &replacement->replaced;

	if (way->is_silent)
		return;
	if (replacement->hidden) /* others had to have a name here, too */
		leftovers_tell(&replaced->directory, path);
	else if (replaced->has_old && !way->kept_name)
		leftovers_tell_beside(&replaced->directory, path, replaced->name);
}

int replacement_start(const struct syscalls *calls, const char *path, const struct stat *old,
		      const struct replacement_way *way, struct file *ret_file,
		      struct replacement **ret_replacement)
{
	struct replacement *replacement = make_replacement(calls, path);
	int r;

	if (!replacement)
		return -ENOMEM;
	replacement->kept_name = way->kept_name;
	r = replaced_find(calls, path, old, &replacement->replaced);
	if (r == 0 && !way->is_silent)
		leftovers_remove(&replacement->replaced.directory, &way->owner);
	if (r == 0)
		r = make_file(replacement, way, ret_file);
	if (r < 0) {
		replacement_leave(replacement); /* there is no file that is ours */
		return fail(r, "%s: cannot make a file beside it to take its place: %m", path);
	}
	tell_leftovers(replacement, path, way);
	*ret_replacement = replacement;
	return 0;
}

/* If this process is ended, the one that has begun the file may be so suddenly that it stays. */
static int share_hidden(struct replacement *replacement, const char *name)
{
	replacement->hidden = hidden_names_share(replacement->calls->names,
						 replacement->replaced.directory.fd, name,
						 &replacement->own);
	return replacement->hidden ? 0 : -EMFILE;
}

int replacement_join(const struct syscalls *calls, const char *path, const struct stat *old,
		     const char *name, struct file *ret_file, struct replacement **ret_replacement)
{
	struct replacement *replacement = make_replacement(calls, path);
	int r;

	if (!replacement)
		return -ENOMEM;
	r = replaced_find(calls, path, old, &replacement->replaced);
	if (r == 0)
		r = file_open(calls, replacement->replaced.directory.fd, name, O_RDWR | O_NOFOLLOW,
			      0, ret_file);
	if (r == 0)
		r = share_hidden(replacement, name);
	if (r < 0) {
		replacement_leave(replacement);
		return fail(
			r,
			"%s: %s beside it, which another rank has begun, cannot be opened here: "
			"%m; all ranks must see the same directory",
			path, name);
	}
	*ret_replacement = replacement;
	return 0;
}

const char *replacement_hidden_name(const struct replacement *replacement)
{
	return replacement->hidden ? replacement->hidden->name : NULL;
}

/* The target is no more open than it was, and no less if that can be. */
static int copy_attributes(const struct replacement *replacement, const struct file *file)
{
	struct attributes_lost lost;
	const int r = attributes_copy(&replacement->replaced.old_file, file, &lost);

	if (r < 0)
		return r;
	if (lost.access_list)
		warn("%s: its access list cannot be kept: only its owner can use the file now",
		     replacement->replaced.path);
	if (lost.others)
		warn("%s: not all of its extended attributes can be kept",
		     replacement->replaced.path);
	return 0;
}

/* What is unfinished must not stay in silence: it takes as much space as the output. */
static void remove_unfinished(const struct replacement *replacement, const char *name)
{
	const int r = file_remove(replacement->calls, replacement->replaced.directory.fd, name, 0);

	if (r < 0)
		warn("%s: %s beside it is unfinished, and cannot be removed: %s",
		     replacement->replaced.path, name, strerror(-r));
}

int replacement_check(const struct replacement *replacement)
{
	const int r = replaced_check(&replacement->replaced);

	return r < 0 ? fail(r, "%s: cannot be replaced: %m", replacement->replaced.path) : 0;
}

static int link_nameless(const struct replacement *replacement, const char *name)
{
	char descriptor[sizeof "/proc/self/fd/" + 12];
	const int fd = replacement->held.fd;

	snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd);
	return replacement->calls->linkat(AT_FDCWD, descriptor, replacement->replaced.directory.fd,
					  name, AT_SYMLINK_FOLLOW) < 0 ?
		       -errno :
		       0;
}

/* A name for the moment that the rename takes. */
static int link_for_now(const struct replacement *replacement,
			char ret_name[static LEFTOVERS_NAME_SIZE])
{
	int r;

	leftovers_name_beside(replacement->replaced.name, ret_name);
	r = link_nameless(replacement, ret_name);
	if (r != -EEXIST)
		return r;
	/* Somebody was killed in that moment, and it has been told; or is in it now. */
	leftovers_make_name(NULL, ret_name);
	return link_nameless(replacement, ret_name);
}

static int rename_from(const struct replacement *replacement, const char *name)
{
	const int directory = replacement->replaced.directory.fd;
	const int r = replaced_check(&replacement->replaced);

	if (r < 0)
		return r;
	return replacement->calls->renameat(directory, name, directory,
					    replacement->replaced.name) < 0 ?
		       -errno :
		       0;
}

static const char *name_of(const struct replacement *replacement)
{
	return replacement->kept_name ? replacement->kept_name : replacement->hidden->name;
}

/* Its bytes are those that were written, as far as its times tell. */
static int check_written(const struct replacement *replacement, const struct stat *status)
{
	const struct file_state now = file_state_of(status);

	if (!replacement->is_written || file_state_is_same(&replacement->written, &now))
		return 0;
	return fail(-EBUSY,
		    "%s: %s beside it, which was to take its place, is not as it was left: "
		    "somebody else has changed it",
		    replacement->replaced.path, name_of(replacement));
}

/* The name that the new file has had is nobody's business any more. */
static void forget_name(struct replacement *replacement)
{
	if (replacement->hidden)
		hidden_names_give_up(replacement->hidden);
	replacement->hidden = NULL;
	replacement->kept_name = NULL;
}

static int fail_removed(struct replacement *replacement, const char *name)
{
	fail(-ENOENT,
	     "%s: %s beside it, which was to take its place, is not there any more: somebody else "
	     "has removed it",
	     replacement->replaced.path, name);
	forget_name(replacement);
	return -ENOENT;
}

/* Everybody sees the name: is it still the new file's? If not, what has it stays. */
static int check_name(struct replacement *replacement, const char *name)
{
	struct stat status;

	if (fstatat(replacement->replaced.directory.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? fail_removed(replacement, name) : -errno;
	if (file_identity_equal(file_identity_of(&status), replacement->made))
		return check_written(replacement, &status);
	fail(-EBUSY,
	     "%s: %s beside it, which was to take its place, has been replaced by somebody else; "
	     "both stay as they are",
	     replacement->replaced.path, name);
	forget_name(replacement);
	return -EBUSY;
}

static int rename_named(struct replacement *replacement)
{
	const char *const name = name_of(replacement);
	int r = check_name(replacement, name);

	if (r == 0)
		r = rename_from(replacement, name);
	if (r == 0)
		forget_name(replacement);
	return r;
}

/* A link takes no name from anybody; but where there is a file, it cannot be made. */
static int name_nameless(const struct replacement *replacement)
{
	char name[LEFTOVERS_NAME_SIZE];
	int r;

	if (!replacement->replaced.has_old) {
		r = replaced_check(&replacement->replaced);
		if (r == 0)
			r = link_nameless(replacement, replacement->replaced.name);
		return r == -EEXIST ? replaced_fail_taken(&replacement->replaced) : r;
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
	int r = file_open(replacement->calls, replacement->replaced.directory.fd, ".",
			  O_RDONLY | O_DIRECTORY, 0, &directory);

	if (r < 0)
		return r;
	r = file_sync(&directory);
	file_close(&directory);
	return r;
}

/* Everybody can have opened a file that has a name; without one nobody has. */
int replacement_note_written(struct replacement *replacement, const struct file *file)
{
	struct stat status;
	int r;

	if (!has_name(replacement))
		return 0;
	if (fstat(file->fd, &status) < 0)
		return fail(-errno, "%s: cannot be replaced: %m", replacement->replaced.path);
	r = check_written(replacement, &status);
	if (r < 0)
		return r;
	replacement->written = file_state_of(&status);
	replacement->is_written = true;
	return 0;
}

/* Attributes are ours, and move the time of change; the bytes have been left alone. */
static int note_attributes(struct replacement *replacement, const struct file *file)
{
	const struct file_state before = replacement->written;
	struct stat status;

	if (!replacement->is_written)
		return 0;
	if (fstat(file->fd, &status) < 0)
		return -errno;
	replacement->written = file_state_of(&status);
	replacement->written.nbytes = before.nbytes;
	replacement->written.modified = before.modified;
	return check_written(replacement, &status);
}

/* Others who can write to the file are not meant to. */
static int note_made(struct replacement *replacement, const struct file *file, uint64_t nbytes)
{
	struct stat status;

	if (fstat(file->fd, &status) < 0)
		return -errno;
	replacement->made = file_identity_of(&status);
	return (uint64_t)status.st_size == nbytes ?
		       check_written(replacement, &status) :
		       fail(-EBUSY,
			    "%s: what was to take its place has %jd bytes, not %" PRIu64
			    ": somebody else has changed it",
			    replacement->replaced.path, (intmax_t)status.st_size, nbytes);
}

int replacement_finish(struct replacement *replacement, struct file *file, uint64_t nbytes,
		       bool sync_name, bool keeps)
{
	int r = note_made(replacement, file, nbytes), closed;

	if (r == 0 && replacement->replaced.has_old) {
		r = copy_attributes(replacement, file);
		if (r == 0)
			r = note_attributes(replacement, file);
	}
	if (r == 0 && !has_name(replacement))
		r = keep_open(replacement, file);
	/* An error that the file system kept back until now must not reach the target. */
	closed = file_close(file);
	if (r == 0)
		r = closed;
	if (r == 0)
		r = give_name(replacement);
	if (r < 0)
		fail(r, "%s: cannot be replaced: %m", replacement->replaced.path);
	else if (sync_name && (r = sync_directory(replacement)) < 0)
		fail(r, "%s: is complete, but its name may not be on stable storage: %m",
		     replacement->replaced.path);
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
	if (replacement->hidden)
		remove_unfinished(replacement, replacement->hidden->name);
	if (replacement->kept_name)
		remove_unfinished(replacement, replacement->kept_name);
	replacement_leave(replacement);
}

void replacement_leave(struct replacement *replacement)
{
	if (replacement->hidden)
		hidden_names_give_up(replacement->hidden);
	file_close(&replacement->held);
	replaced_forget(&replacement->replaced);
	free(replacement);
}
