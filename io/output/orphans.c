/*
 * orphans - unfinished files whose process was killed outright (see orphans.h)
 *
 * The locks are those of open file descriptions: of POSIX's, a process loses its own with the first
 * of its descriptors that it closes. To ask for a lock does not take it, so two that start at once
 * are not in each other's way.
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

/* It takes less from the creation of a file to its lock. */
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

/* Of a name of these. */
static bool is_owned_name(const char *name, const struct orphan_owner *owner)
{
	const char *digits = name + sizeof temp_name_prefix - 1;

	return strlen(digits) == 2 * FILE_UNIQUE_DIGITS &&
	       strncmp(digits, owner->digits, FILE_UNIQUE_DIGITS) == 0;
}

/* A directory cannot be open for writing, which a lock for writing asks for. */
void orphans_lock(const struct file *file)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	if (fcntl(file->fd, F_OFD_SETLK, &lock) == 0 || errno != EBADF)
		return;
	lock.l_type = F_RDLCK;
	fcntl(file->fd, F_OFD_SETLK, &lock);
}

/* Nobody holds it. Where there are no locks that cannot be told. */
static bool is_unlocked(const struct file *file)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fcntl(file->fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

/* Call callback() for each entry of a directory. What goes wrong here is not told. */
static void for_each_entry(const struct file *directory,
			   void (*callback)(const struct file *directory, const char *name,
					    void *context),
			   void *context)
{
	const struct dirent *entry;
	struct file readable_directory;
	DIR *stream;

	if (file_open(directory->calls, directory->fd, ".", O_RDONLY | O_DIRECTORY, 0,
		      &readable_directory) < 0)
		return;
	stream = fdopendir(readable_directory.fd);
	if (!stream) {
		file_close(&readable_directory);
		return;
	}
	while ((entry = readdir(stream)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			callback(directory, entry->d_name, context);
	closedir(stream);
}

/* What is in a directory. */
struct contents {
	uint64_t n_entries, n_blocks;
	bool is_in_use;
};

static void add_entry(const struct file *directory, const char *name, void *context)
{
	struct contents *contents = context;
	struct stat status;
	struct file file;

	contents->n_entries++;
	if (file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return;
	if (fstat(file.fd, &status) == 0)
		contents->n_blocks += (uint64_t)status.st_blocks;
	contents->is_in_use |= !is_unlocked(&file);
	file_close(&file);
}

/* Nobody works on it or in it, as far as can be told. Adds what is in it to the status. */
static bool is_unused(const struct file *file, struct stat *status)
{
	struct contents contents = { 0 };

	if (!(S_ISREG(status->st_mode) || S_ISDIR(status->st_mode)) || !is_unlocked(file))
		return false;
	if (S_ISREG(status->st_mode))
		return true;
	for_each_entry(file, add_entry, &contents);
	status->st_size = (off_t)contents.n_entries;
	status->st_blocks += (blkcnt_t)contents.n_blocks;
	return !contents.is_in_use;
}

/* And it is not so new that its lock may still be to come. */
static bool is_orphan(const struct file *file, struct stat *status)
{
	return is_unused(file, status) &&
	       (status->st_size > 0 || status->st_ctime + NEW_FILE_GRACE_S < time(NULL));
}

/* When it was last written to: "2026-11-22 23:10 UTC". */
static const char *format_mtime(const struct stat *status, char text[static 32])
{
	struct tm utc;

	text[0] = '\0';
	if (gmtime_r(&status->st_mtime, &utc))
		strftime(text, 32, "%Y-%m-%d %H:%M UTC", &utc);
	return text;
}

/* What may not be opened is somebody else's, who will be told. */
static bool probe_orphan(const struct file *directory, const char *name, struct stat *ret_status)
{
	struct file file;
	bool orphaned;

	if (file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return false;
	orphaned = fstat(file.fd, ret_status) == 0 && is_orphan(&file, ret_status);
	file_close(&file);
	return orphaned;
}

static uint64_t allocated_nbytes(const struct stat *status)
{
	return (uint64_t)status->st_blocks * 512;
}

/* what: it was to be. */
static void warn_orphan(const char *path, const char *name, const struct stat *status,
			const char *purpose)
{
	char mtime[32];

	warn("%s: %s beside it was left by a " GSORT_PROGRAM
	     " that was killed after %s, while it wrote %s: "
	     "remove it, it takes %" PRIu64 " bytes",
	     path, name, format_mtime(status, mtime), purpose, allocated_nbytes(status));
}

void orphans_warn_target(const struct file *directory, const char *path, const char *target)
{
	char name[TEMP_NAME_SIZE];
	struct stat status;

	orphans_make_rename_name(target, name);
	if (probe_orphan(directory, name, &status))
		warn_orphan(path, name, &status, "the same output");
}

/* Some are told one by one, and then the sum of the others. */
enum { MAX_ORPHANS_LISTED = 3 };

struct orphan_warnings {
	const char *path;
	uint64_t n_found, unlisted_nbytes;
};

static void warn_if_orphan(const struct file *directory, const char *name, void *context)
{
	struct orphan_warnings *warnings = context;
	struct stat status;

	if (!orphans_is_temp_name(name) || !probe_orphan(directory, name, &status))
		return;
	if (++warnings->n_found <= MAX_ORPHANS_LISTED)
		warn_orphan(warnings->path, name, &status, "this or another output there");
	else
		warnings->unlisted_nbytes += allocated_nbytes(&status);
}

/* Not more than a hint. */
void orphans_warn(const struct file *directory, const char *path)
{
	struct orphan_warnings warnings = { .path = path };

	for_each_entry(directory, warn_if_orphan, &warnings);
	if (warnings.n_found > MAX_ORPHANS_LISTED)
		warn("%s: %" PRIu64 " more such files are beside it, which take %" PRIu64
		     " bytes: remove them",
		     path, warnings.n_found - MAX_ORPHANS_LISTED, warnings.unlisted_nbytes);
}

/* Does the name still lead to it, and is it this user's? */
static bool is_users_file(const struct file *directory, const char *name, const struct stat *status)
{
	struct stat named;

	return status->st_uid == geteuid() &&
	       fstatat(directory->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       file_id_equal(file_id_from_stat(status), file_id_from_stat(&named));
}

static void remove_entry(const struct file *directory, const char *name, void *context)
{
	(void)context;
	file_remove(directory->calls, directory->fd, name, 0);
}

/* Nobody but the owner makes such a file: none was only just made. */
static void remove_if_orphan(const struct file *directory, const char *name, void *context)
{
	const struct orphan_owner *owner = context;
	struct stat status;
	struct file file;

	if (!orphans_is_temp_name(name) || !is_owned_name(name, owner) ||
	    file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return;
	if (fstat(file.fd, &status) == 0 && is_unused(&file, &status) &&
	    is_users_file(directory, name, &status)) {
		const bool is_directory = S_ISDIR(status.st_mode);

		if (is_directory)
			for_each_entry(&file, remove_entry, NULL);
		file_remove(directory->calls, directory->fd, name, is_directory ? AT_REMOVEDIR : 0);
	}
	file_close(&file);
}

void orphans_remove(const struct file *directory, const struct orphan_owner *owner)
{
	struct orphan_owner owner_copy = *owner;

	if (*owner_copy.digits)
		for_each_entry(directory, remove_if_orphan, &owner_copy);
}
