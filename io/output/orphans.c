/*
 * orphans.c - temporary names, and files that killed processes left behind (see orphans.h)
 *
 * The locks belong to open file descriptions. (A process would lose a POSIX lock when it closes any
 * descriptor of the file.) Testing for a lock does not take it, so two processes that start at the
 * same time do not disturb each other.
 */
#include "io/output/orphans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "config.h"
#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"

static const char temp_name_prefix[] = ".gsort-temp-";

/* A file is locked at most so long after it was created. */
enum { NEW_FILE_GRACE_S = 60 };

_Static_assert(sizeof temp_name_prefix + 2 * FILE_UNIQUE_DIGITS == TEMP_NAME_SIZE,
	       "the name's size");

void orphans_make_temp_name(const struct orphan_owner *owner, char name[static TEMP_NAME_SIZE])
{
	char digits[FILE_UNIQUE_DIGITS + 1];

	file_unique_digits(digits);
	snprintf(name, TEMP_NAME_SIZE, "%s%s%s", temp_name_prefix, owner ? owner->digits : "",
		 digits);
}

void orphans_make_rename_name(const char *target, char name[static TEMP_NAME_SIZE])
{
	snprintf(name, TEMP_NAME_SIZE, "%s%016" PRIx64, temp_name_prefix,
		 checksum64(target, strlen(target)));
}

bool orphans_is_temp_name(const char *name)
{
	const char *digits = name + sizeof temp_name_prefix - 1;
	size_t n;

	if (strncmp(name, temp_name_prefix, sizeof temp_name_prefix - 1) != 0)
		return false;
	n = strspn(digits, "0123456789abcdef");
	return !digits[n] && (n == FILE_UNIQUE_DIGITS || n == 2 * FILE_UNIQUE_DIGITS);
}

/* name: a temporary name. */
static bool is_owned_name(const char *name, const struct orphan_owner *owner)
{
	const char *digits = name + sizeof temp_name_prefix - 1;

	return strlen(digits) == 2 * FILE_UNIQUE_DIGITS &&
	       strncmp(digits, owner->digits, FILE_UNIQUE_DIGITS) == 0;
}

/*
 * A write lock requires a descriptor for writing. A directory cannot have one and gets a read lock.
 */
void orphans_lock(const struct file *file)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(file->fd, F_OFD_SETLK, &lock) == 0 || errno != EBADF)
		return;
	lock.l_type = F_RDLCK;
	fcntl(file->fd, F_OFD_SETLK, &lock);
}

/* False where the file system has no locks. */
static bool is_unlocked(const struct file *file)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(file->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

int directory_for_each(const struct file *directory, directory_entry_fn *callback, void *context)
{
	const struct dirent *entry;
	struct file readable;
	DIR *stream;
	int r = file_open(directory->calls, directory->fd, ".", O_RDONLY | O_DIRECTORY, 0,
			  &readable);

	if (r < 0)
		return r;
	stream = fdopendir(readable.fd);
	if (!stream) {
		r = -errno;
		file_close(&readable);
		return r;
	}
	while (r == 0 && (errno = 0, entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			r = callback(directory, entry->d_name, context);
	if (r == 0)
		r = -errno;
	closedir(stream);
	return r;
}

struct directory_contents {
	uint64_t n_entries, n_blocks;
	bool is_in_use;
};

static int add_entry(const struct file *directory, const char *name, void *context)
{
	struct directory_contents *contents = context;
	struct stat status;
	struct file file;

	contents->n_entries++;
	if (file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return 0;
	if (fstat(file.fd, &status) == 0)
		contents->n_blocks += (uint64_t)status.st_blocks;
	contents->is_in_use |= !is_unlocked(&file);
	file_close(&file);
	return 0;
}

/* Return whether no file is locked. Adds the contents of a directory to its size and blocks. */
static bool is_unused(const struct file *file, struct stat *status)
{
	struct directory_contents contents = { 0 };

	if (!(S_ISREG(status->st_mode) || S_ISDIR(status->st_mode)) || !is_unlocked(file))
		return false;
	if (S_ISREG(status->st_mode))
		return true;
	directory_for_each(file, add_entry, &contents);
	status->st_size = (off_t)contents.n_entries;
	status->st_blocks += (blkcnt_t)contents.n_blocks;
	return !contents.is_in_use;
}

/* A new file may be locked a little later. */
static bool is_orphan(const struct file *file, struct stat *status)
{
	return is_unused(file, status) &&
	       (status->st_size > 0 || status->st_ctime + NEW_FILE_GRACE_S < time(NULL));
}

/* Return the time of the last write, such as "2026-11-22 23:10 UTC". */
static const char *format_mtime(const struct stat *status, char text[static 32])
{
	struct tm utc;

	text[0] = '\0';
	if (gmtime_r(&status->st_mtime, &utc))
		strftime(text, 32, "%Y-%m-%d %H:%M UTC", &utc);
	return text;
}

/* A file of another user does not count. That user will be warned. */
static bool probe_orphan(const struct file *directory, const char *name, struct stat *ret_status)
{
	struct file file;
	bool orphaned;

	if (file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return false;
	orphaned = fstat(file.fd, ret_status) == 0 && ret_status->st_uid == geteuid() &&
		   is_orphan(&file, ret_status);
	file_close(&file);
	return orphaned;
}

static uint64_t allocated_nbytes(const struct stat *status)
{
	return (uint64_t)status->st_blocks * 512;
}

/* purpose: the file or directory that it was to become. */
static void warn_orphan(const char *path, const char *name, const struct stat *status,
			const char *purpose)
{
	char mtime[32];

	warn("%s: %s in the same directory was left by a " GSORT_PROGRAM
	     " that was killed after %s while it wrote %s; remove it to free %" PRIu64 " bytes",
	     path, name, format_mtime(status, mtime), purpose, allocated_nbytes(status));
}

enum { MAX_ORPHANS_LISTED = 3 };

struct orphan_warnings {
	const char *path;
	char rename_name[TEMP_NAME_SIZE]; /* warned of already, or "" */
	uint64_t n_left;                  /* entries to read */
	uint64_t n_found, unlisted_nbytes;
};

static int warn_if_orphan(const struct file *directory, const char *name, void *context)
{
	struct orphan_warnings *warnings = context;
	struct stat status;

	if (warnings->n_left-- == 0)
		return -EFBIG;
	if (!orphans_is_temp_name(name) || strcmp(name, warnings->rename_name) == 0 ||
	    !probe_orphan(directory, name, &status))
		return 0;
	if (++warnings->n_found <= MAX_ORPHANS_LISTED)
		warn_orphan(warnings->path, name, &status, "this or another output there");
	else
		warnings->unlisted_nbytes += allocated_nbytes(&status);
	return 0;
}

void orphans_warn(const struct file *directory, const char *path, const char *target,
		  uint64_t max_entries)
{
	struct orphan_warnings warnings = { .path = path, .n_left = max_entries };
	struct stat status;

	if (target) {
		orphans_make_rename_name(target, warnings.rename_name);
		if (probe_orphan(directory, warnings.rename_name, &status))
			warn_orphan(path, warnings.rename_name, &status, "the same output");
	}
	directory_for_each(directory, warn_if_orphan, &warnings);
	if (warnings.n_found > MAX_ORPHANS_LISTED)
		warn("%s: %" PRIu64
		     " more such files in the same directory; remove them to free %" PRIu64
		     " bytes",
		     path, warnings.n_found - MAX_ORPHANS_LISTED, warnings.unlisted_nbytes);
}

/* Return whether this user owns the file and the name still leads to it. */
static bool is_users_file(const struct file *directory, const char *name, const struct stat *status)
{
	struct stat named;

	return status->st_uid == geteuid() &&
	       fstatat(directory->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       file_id_equal(file_id_from_stat(status), file_id_from_stat(&named));
}

/* Failure shows when the directory is removed. */
static int remove_entry(const struct file *directory, const char *name, void *context)
{
	(void)context;
	file_remove(directory->calls, directory->fd, name, 0);
	return 0;
}

/* Only the owner creates such files, so none of them is new and not locked yet. */
static int remove_if_orphan(const struct file *directory, const char *name, void *context)
{
	const struct orphan_owner *owner = context;
	struct stat status;
	struct file file;

	if (!orphans_is_temp_name(name) || !is_owned_name(name, owner) ||
	    file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return 0;
	if (fstat(file.fd, &status) == 0 && is_unused(&file, &status) &&
	    is_users_file(directory, name, &status)) {
		const bool is_directory = S_ISDIR(status.st_mode);

		if (is_directory)
			directory_for_each(&file, remove_entry, NULL);
		file_remove(directory->calls, directory->fd, name, is_directory ? AT_REMOVEDIR : 0);
	}
	file_close(&file);
	return 0;
}

void orphans_remove(const struct file *directory, const struct orphan_owner *owner)
{
	struct orphan_owner owner_copy = *owner;

	if (*owner_copy.digits)
		directory_for_each(directory, remove_if_orphan, &owner_copy);
}
