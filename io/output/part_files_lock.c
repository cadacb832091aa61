/*
 * part_files_lock - one process at a time gives the names, or looks at what has them
 *
 * Who opens the files takes what is aside for that of a process that was killed; so nobody may be
 * giving names meanwhile. Both hold a lock of .NAME.parts.pending as long as that takes, and wait
 * for it, since that is not long: not while there is only written. The second that comes to give
 * names then finds that what it looked at has changed.
 *
 * The file goes with the lock, also if a signal ends the process before anything has a name. Who
 * has waited for one that has gone looks for the next. Where a file system has no locks, nobody
 * waits.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "io/output/part_files_internal.h"
#include "src/base/diagnostics.h"

static bool is_unsupported_lock(int error)
{
	return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP || error == EINVAL;
}

static int lock_exclusive(const struct file *file)
{
	int r;

	do
		r = flock(file->fd, LOCK_EX) < 0 ? -errno : 0;
	while (r == -EINTR);
	return r < 0 && is_unsupported_lock(-r) ? 0 : r;
}

/* Locked, what is it? 1; 0: it has no name any more; or a negative errno. */
static int inspect_locked_journal(struct part_files *files, const char *name)
{
	struct stat status;
	int r = fstat(files->journal_file.fd, &status) < 0 ? -errno : 1;

	files->has_orphan_journal = r < 0 && part_files_stat_name(files, name, &status) <= 0;
	files->has_orphan_journal = files->has_orphan_journal || status.st_size > 0;
	return r < 0 ? r : status.st_nlink > 0;
}

static int try_lock_journal(struct part_files *files, const char *name)
{
	int r = file_open(files->calls, files->directory.fd, name,
			  O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600, &files->journal_file);

	if (r < 0)
		return r;
	files->has_orphan_journal = true; /* as long as it is not ours */
	r = lock_exclusive(&files->journal_file);
	if (r == 0)
		r = inspect_locked_journal(files, name);
	if (r == 0)
		file_close(&files->journal_file);
	return r;
}

/* Where nothing can be made, nothing will be: whoever writes there will say so. */
static bool is_permission_error(int r)
{
	return r == -EACCES || r == -EPERM || r == -EROFS;
}

int part_files_lock(struct part_files *files)
{
	char name[NAME_MAX + 1];
	int r;

	part_files_format_journal_name(files->base, name);
	r = part_files_stat_manifest(files, name);
	if (r < 0)
		return r;
	do
		r = try_lock_journal(files, name);
	while (r == 0);
	if (r > 0 && !files->has_orphan_journal)
		files->journal_name = temp_names_adopt(files->calls->temp_names,
						       files->directory.fd, name,
						       &files->own_journal_name);
	return r > 0 || is_permission_error(r) ?
		       0 :
		       fail(r, "%s: %s beside it cannot be locked: %m", files->name, name);
}

void part_files_keep_journal(struct part_files *files)
{
	if (files->journal_name)
		temp_names_release(files->journal_name);
	files->journal_name = NULL;
}

void part_files_unlock(struct part_files *files)
{
	char name[NAME_MAX + 1];
	int r = 0;

	if (files->journal_file.fd < 0)
		return;
	part_files_keep_journal(files);
	part_files_format_journal_name(files->base, name);
	if (!files->has_orphan_journal)
		r = file_remove(files->calls, files->directory.fd, name, 0);
	file_close(&files->journal_file);
	if (r < 0)
		warn("%s: %s beside it is not needed any more, and cannot be removed: %s",
		     files->name, name, strerror(-r));
}
