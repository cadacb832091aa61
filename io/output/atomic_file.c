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
#include "io/output/unlink_on_abort.h"
#include "io/output/orphans.h"
#include "io/output/target_snapshot.h"
#include "src/base/diagnostics.h"

struct atomic_file {
	const struct syscalls *calls;
	struct target_snapshot target;  /* what has the target's name */
	struct temp_name *temp_name;    /* NULL if the file has no name */
	struct temp_name own_temp_name; /* where that is, if nobody else has to know it */
	struct file lock_file;          /* a duplicate that keeps the lock (orphans.h), or closed */
	struct file_id file_id;         /* the new file, when it is finished */
	struct file_state complete_state; /* as it was left, if is_complete */
	bool is_complete;
};

static int create_with_temp_name(struct atomic_file *atomic_file, mode_t mode,
				 const struct orphan_owner *owner, struct file *ret_file)
{
	int r;

	atomic_file->temp_name = temp_names_reserve(atomic_file->calls->temp_names,
						    atomic_file->target.directory.fd, owner, false,
						    &atomic_file->own_temp_name);
	if (!atomic_file->temp_name)
		return -EMFILE;
	r = file_open(atomic_file->calls, atomic_file->target.directory.fd,
		      atomic_file->temp_name->name, O_RDWR | O_CREAT | O_EXCL, mode, ret_file);
	temp_names_created(atomic_file->temp_name);
	if (r < 0) {
		temp_names_release(atomic_file->temp_name);
		atomic_file->temp_name = NULL;
	}
	return r;
}

/*
 * The file is closed before it gets its name, as a close may have something to report; until then
 * this keeps what has no name, and the lock that says that somebody is at work.
 */
static int duplicate_descriptor(struct atomic_file *atomic_file, const struct file *file)
{
	if (atomic_file->lock_file.fd < 0)
		atomic_file->lock_file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	return atomic_file->lock_file.fd < 0 ? -errno : 0;
}

static void lock_temp_file(struct atomic_file *atomic_file, const struct file *file)
{
	orphans_lock(file);
	duplicate_descriptor(atomic_file, file); /* if it cannot be now, it may be in the end */
}

static int create_temp_file(struct atomic_file *atomic_file,
			    const struct atomic_file_params *params, struct file *ret_file)
{
	/* Nobody else reads the contents of a file that was private. */
	const mode_t mode = atomic_file->target.had_file ? 0600 : 0666;
	int r = -EOPNOTSUPP;

	if (!params->is_shared && access("/proc/self/fd", X_OK) == 0)
		r = file_open(atomic_file->calls, atomic_file->target.directory.fd, ".",
			      O_RDWR | O_TMPFILE, mode, ret_file);
	/* EISDIR is what a kernel says that does not know the flag. */
	if (r == -EOPNOTSUPP || r == -EISDIR)
		r = create_with_temp_name(atomic_file, mode, &params->owner, ret_file);
	if (r == 0)
		lock_temp_file(atomic_file, ret_file);
	return r;
}

static struct atomic_file *atomic_file_alloc(const struct syscalls *calls, const char *path)
{
	struct atomic_file *atomic_file = calloc(1, sizeof *atomic_file);

	if (!atomic_file) {
		fail(-ENOMEM, "%s: %m", path);
		return NULL;
	}
	atomic_file->calls = calls;
	atomic_file->lock_file = (struct file){ .calls = calls, .fd = -1 };
	return atomic_file;
}

static void warn_of_orphans(const struct atomic_file *atomic_file, const char *path,
			    const struct atomic_file_params *params)
{
	const struct target_snapshot *target = &atomic_file->target;

	if (params->is_silent)
		return;
	if (atomic_file->temp_name) /* others had to have a name here, too */
		orphans_warn(&target->directory, path);
	else if (target->had_file)
		orphans_warn_target(&target->directory, path, target->name);
}

static int take_snapshot(struct atomic_file *atomic_file, const struct file *directory,
			 const char *path, const struct stat *old)
{
	return directory ?
		       target_snapshot_take_in(directory, path, &atomic_file->target) :
		       target_snapshot_take(atomic_file->calls, path, old, &atomic_file->target);
}

int atomic_file_create(const struct syscalls *calls, const char *path, const struct stat *old,
		       const struct atomic_file_params *params, struct file *ret_file,
		       struct atomic_file **ret_atomic_file)
{
	struct atomic_file *atomic_file = atomic_file_alloc(calls, path);
	int r;

	if (!atomic_file)
		return -ENOMEM;
	r = take_snapshot(atomic_file, params->directory, path, old);
	if (r == 0 && !params->is_silent)
		orphans_remove(&atomic_file->target.directory, &params->owner);
	if (r == 0)
		r = create_temp_file(atomic_file, params, ret_file);
	if (r < 0) {
		atomic_file_close(atomic_file); /* there is no file that is ours */
		return fail(r, "%s: cannot make a file beside it to take its place: %m", path);
	}
	warn_of_orphans(atomic_file, path, params);
	*ret_atomic_file = atomic_file;
	return 0;
}

/* If this process is ended, the one that has begun the file may be so suddenly that it stays. */
static int adopt_temp_name(struct atomic_file *atomic_file, const char *name)
{
	atomic_file->temp_name = temp_names_adopt(atomic_file->calls->temp_names,
						  atomic_file->target.directory.fd, name, false,
						  &atomic_file->own_temp_name);
	return atomic_file->temp_name ? 0 : -EMFILE;
}

int atomic_file_open_shared(const struct syscalls *calls, const struct file *directory,
			    const char *path, const struct stat *old, const char *name,
			    struct file *ret_file, struct atomic_file **ret_atomic_file)
{
	struct atomic_file *atomic_file = atomic_file_alloc(calls, path);
	int r;

	if (!atomic_file)
		return -ENOMEM;
	r = take_snapshot(atomic_file, directory, path, old);
	if (r == 0)
		r = file_open(calls, atomic_file->target.directory.fd, name, O_RDWR | O_NOFOLLOW, 0,
			      ret_file);
	if (r == 0)
		r = adopt_temp_name(atomic_file, name);
	if (r < 0) {
		atomic_file_close(atomic_file);
		return fail(
			r,
			"%s: %s beside it, which another rank has begun, cannot be opened here: "
			"%m; all ranks must see the same directory",
			path, name);
	}
	*ret_atomic_file = atomic_file;
	return 0;
}

const char *atomic_file_temp_name(const struct atomic_file *atomic_file)
{
	return atomic_file->temp_name ? atomic_file->temp_name->name : NULL;
}

/* The target is no more open than it was, and no less if that can be. */
static int copy_attributes(const struct atomic_file *atomic_file, const struct file *file)
{
	struct lost_attributes lost;
	const int r = attributes_copy(&atomic_file->target.old_file, file, &lost);

	if (r < 0)
		return r;
	if (lost.acl)
		warn("%s: its access list cannot be kept: only its owner can use the file now",
		     atomic_file->target.path);
	if (lost.xattrs)
		warn("%s: not all of its extended attributes can be kept",
		     atomic_file->target.path);
	return 0;
}

/* What is unfinished must not stay in silence: it takes as much space as the output. */
static void remove_temp_file(const struct atomic_file *atomic_file, const char *name)
{
	const int r = file_remove(atomic_file->calls, atomic_file->target.directory.fd, name, 0);

	if (r < 0)
		warn("%s: %s beside it is unfinished, and cannot be removed: %s",
		     atomic_file->target.path, name, strerror(-r));
}

int atomic_file_check_target(const struct atomic_file *atomic_file)
{
	const int r = target_snapshot_verify(&atomic_file->target);

	return r < 0 ? fail(r, "%s: cannot be replaced: %m", atomic_file->target.path) : 0;
}

static int link_unnamed(const struct atomic_file *atomic_file, const char *name)
{
	char descriptor[sizeof "/proc/self/fd/" + 12];
	const int fd = atomic_file->lock_file.fd;

	snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd);
	return atomic_file->calls->linkat(AT_FDCWD, descriptor, atomic_file->target.directory.fd,
					  name, AT_SYMLINK_FOLLOW) < 0 ?
		       -errno :
		       0;
}

/* A name for the moment that the rename takes. */
static int link_temporarily(const struct atomic_file *atomic_file,
			    char ret_name[static TEMP_NAME_SIZE])
{
	int r;

	orphans_make_rename_name(atomic_file->target.name, ret_name);
	r = link_unnamed(atomic_file, ret_name);
	if (r != -EEXIST)
		return r;
	/* Somebody was killed in that moment, and it has been told; or is in it now. */
	orphans_make_temp_name(NULL, ret_name);
	return link_unnamed(atomic_file, ret_name);
}

static int rename_to_target(const struct atomic_file *atomic_file, const char *name)
{
	const int directory = atomic_file->target.directory.fd;
	const int r = target_snapshot_verify(&atomic_file->target);

	if (r < 0)
		return r;
	return atomic_file->calls->renameat(directory, name, directory, atomic_file->target.name) <
			       0 ?
		       -errno :
		       0;
}

/* Its bytes are those that were written, as far as its times tell. */
static int check_unmodified(const struct atomic_file *atomic_file, const struct stat *status)
{
	const struct file_state current = file_state_from_stat(status);

	if (!atomic_file->is_complete ||
	    file_state_is_unchanged(&atomic_file->complete_state, &current))
		return 0;
	return fail(-EBUSY,
		    "%s: %s beside it, which was to take its place, is not as it was left: "
		    "somebody else has changed it",
		    atomic_file->target.path, atomic_file->temp_name->name);
}

/* The name that the new file has had is nobody's business any more. */
static void release_temp_name(struct atomic_file *atomic_file)
{
	if (atomic_file->temp_name)
		temp_names_release(atomic_file->temp_name);
	atomic_file->temp_name = NULL;
}

static int fail_removed(struct atomic_file *atomic_file, const char *name)
{
	fail(-ENOENT,
	     "%s: %s beside it, which was to take its place, is not there any more: somebody else "
	     "has removed it",
	     atomic_file->target.path, name);
	release_temp_name(atomic_file);
	return -ENOENT;
}

/* Everybody sees the name: is it still the new file's? If not, what has it stays. */
static int check_temp_name(struct atomic_file *atomic_file, const char *name)
{
	struct stat status;

	if (fstatat(atomic_file->target.directory.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? fail_removed(atomic_file, name) : -errno;
	if (file_id_equal(file_id_from_stat(&status), atomic_file->file_id))
		return check_unmodified(atomic_file, &status);
	fail(-EBUSY,
	     "%s: %s beside it, which was to take its place, has been replaced by somebody else; "
	     "both stay as they are",
	     atomic_file->target.path, name);
	release_temp_name(atomic_file);
	return -EBUSY;
}

static int rename_temp_file(struct atomic_file *atomic_file)
{
	const char *const name = atomic_file->temp_name->name;
	int r = check_temp_name(atomic_file, name);

	if (r == 0)
		r = rename_to_target(atomic_file, name);
	if (r == 0)
		release_temp_name(atomic_file);
	return r;
}

/* A link takes no name from anybody; but where there is a file, it cannot be made. */
static int publish_unnamed(const struct atomic_file *atomic_file)
{
	char name[TEMP_NAME_SIZE];
	int r;

	if (!atomic_file->target.had_file) {
		r = target_snapshot_verify(&atomic_file->target);
		if (r == 0)
			r = link_unnamed(atomic_file, atomic_file->target.name);
		return r == -EEXIST ? target_snapshot_fail_exists(&atomic_file->target) : r;
	}
	r = link_temporarily(atomic_file, name);
	if (r < 0)
		return r;
	r = rename_to_target(atomic_file, name);
	if (r < 0)
		remove_temp_file(atomic_file, name);
	return r;
}

static int publish_file(struct atomic_file *atomic_file)
{
	const bool is_first = commit_begin(atomic_file->calls->commit_point);
	const int r = atomic_file->temp_name ? rename_temp_file(atomic_file) :
					       publish_unnamed(atomic_file);

	if (r < 0 && is_first)
		commit_rollback(atomic_file->calls->commit_point);
	return r;
}

static int sync_directory(const struct atomic_file *atomic_file)
{
	struct file directory;
	int r = file_open(atomic_file->calls, atomic_file->target.directory.fd, ".",
			  O_RDONLY | O_DIRECTORY, 0, &directory);

	if (r < 0)
		return r;
	r = file_sync(&directory);
	file_close(&directory);
	return r;
}

/* Everybody can have opened a file that has a name; without one nobody has. */
int atomic_file_mark_complete(struct atomic_file *atomic_file, const struct file *file)
{
	struct stat status;
	int r;

	if (!atomic_file->temp_name)
		return 0;
	if (fstat(file->fd, &status) < 0)
		return fail(-errno, "%s: cannot be replaced: %m", atomic_file->target.path);
	r = check_unmodified(atomic_file, &status);
	if (r < 0)
		return r;
	atomic_file->complete_state = file_state_from_stat(&status);
	atomic_file->is_complete = true;
	return 0;
}

/* Attributes are ours, and move the time of change; the bytes have been left alone. */
static int record_attributes(struct atomic_file *atomic_file, const struct file *file)
{
	const struct file_state complete = atomic_file->complete_state;
	struct stat status;

	if (!atomic_file->is_complete)
		return 0;
	if (fstat(file->fd, &status) < 0)
		return -errno;
	atomic_file->complete_state = file_state_from_stat(&status);
	atomic_file->complete_state.nbytes = complete.nbytes;
	atomic_file->complete_state.modified = complete.modified;
	return check_unmodified(atomic_file, &status);
}

/* Others who can write to the file are not meant to. */
static int record_final_identity(struct atomic_file *atomic_file, const struct file *file,
				 uint64_t nbytes)
{
	struct stat status;

	if (fstat(file->fd, &status) < 0)
		return -errno;
	atomic_file->file_id = file_id_from_stat(&status);
	return (uint64_t)status.st_size == nbytes ?
		       check_unmodified(atomic_file, &status) :
		       fail(-EBUSY,
			    "%s: what was to take its place has %jd bytes, not %" PRIu64
			    ": somebody else has changed it",
			    atomic_file->target.path, (intmax_t)status.st_size, nbytes);
}

int atomic_file_commit(struct atomic_file *atomic_file, struct file *file, uint64_t nbytes,
		       bool sync_name)
{
	int r = record_final_identity(atomic_file, file, nbytes), close_result;

	if (r == 0 && atomic_file->target.had_file) {
		r = copy_attributes(atomic_file, file);
		if (r == 0)
			r = record_attributes(atomic_file, file);
	}
	if (r == 0 && !atomic_file->temp_name)
		r = duplicate_descriptor(atomic_file, file);
	/* An error that the file system kept back until now must not reach the target. */
	close_result = file_close(file);
	if (r == 0)
		r = close_result;
	if (r == 0)
		r = publish_file(atomic_file);
	if (r < 0)
		fail(r, "%s: cannot be replaced: %m", atomic_file->target.path);
	else if (sync_name && (r = sync_directory(atomic_file)) < 0)
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
	if (atomic_file->temp_name)
		temp_names_release(atomic_file->temp_name);
	file_close(&atomic_file->lock_file);
	target_snapshot_close(&atomic_file->target);
	free(atomic_file);
}
