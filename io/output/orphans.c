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

#include "io/codec/checksum.h"
#include "src/base/diagnostics.h"

static const char prefix[] = ".gsort-temp-";

/* It takes less from the creation of a file to its lock. */
enum { JUST_MADE_S = 60 };

_Static_assert(sizeof prefix + 2 * FILE_UNIQUE_DIGITS == LEFTOVERS_NAME_SIZE, "the name's size");

void leftovers_make_name(const struct leftovers_owner *owner, char name[static LEFTOVERS_NAME_SIZE])
{
	char digits[FILE_UNIQUE_DIGITS + 1];

	file_unique_digits(digits);
	snprintf(name, LEFTOVERS_NAME_SIZE, "%s%s%s", prefix, owner ? owner->digits : "", digits);
}

void leftovers_name_beside(const char *target, char name[static LEFTOVERS_NAME_SIZE])
{
	snprintf(name, LEFTOVERS_NAME_SIZE, "%s%016" PRIx64, prefix,
		 checksum64(target, strlen(target)));
}

bool leftovers_is_name(const char *name)
{
	const char *digits = name + sizeof prefix - 1;
	size_t n;

	if (strncmp(name, prefix, sizeof prefix - 1) != 0)
		return false;
	n = strspn(digits, "0123456789abcdef");
	return !digits[n] && (n == FILE_UNIQUE_DIGITS || n == 2 * FILE_UNIQUE_DIGITS);
}

/* Of a name of these. */
static bool is_owned(const char *name, const struct leftovers_owner *owner)
{
	const char *digits = name + sizeof prefix - 1;

	return strlen(digits) == 2 * FILE_UNIQUE_DIGITS &&
	       strncmp(digits, owner->digits, FILE_UNIQUE_DIGITS) == 0;
}

void leftovers_hold(const struct file *file)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	fcntl(file->fd, F_OFD_SETLK, &all);
}

/* Nobody holds it. Where there are no locks that cannot be told. */
static bool is_free(const struct file *file, const struct stat *status)
{
	struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	return S_ISREG(status->st_mode) && fcntl(file->fd, F_OFD_GETLK, &all) == 0 &&
	       all.l_type == F_UNLCK;
}

/* Nobody works on it, as far as can be told. */
static bool is_left(const struct file *file, const struct stat *status)
{
	return is_free(file, status) &&
	       (status->st_size > 0 || status->st_ctime + JUST_MADE_S < time(NULL));
}

/* When it was last written to: "2026-11-22 23:10 UTC". */
static const char *time_of(const struct stat *status, char text[static 32])
{
	struct tm at;

	text[0] = '\0';
	if (gmtime_r(&status->st_mtime, &at))
		strftime(text, 32, "%Y-%m-%d %H:%M UTC", &at);
	return text;
}

/* What may not be opened is somebody else's, who will be told. */
static bool look_at(const struct file *directory, const char *name, struct stat *ret_status)
{
	struct file file;
	bool left;

	if (file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return false;
	left = fstat(file.fd, ret_status) == 0 && is_left(&file, ret_status);
	file_close(&file);
	return left;
}

static uint64_t taken_nbytes(const struct stat *status)
{
	return (uint64_t)status->st_blocks * 512;
}

/* what: it was to be. */
static void tell_one(const char *path, const char *name, const struct stat *status,
		     const char *what)
{
	char text[32];

	warn("%s: %s beside it was left by a gsort that was killed after %s, while it wrote %s: "
	     "remove it, it takes %" PRIu64 " bytes",
	     path, name, time_of(status, text), what, taken_nbytes(status));
}

void leftovers_tell_beside(const struct file *directory, const char *path, const char *target)
{
	char name[LEFTOVERS_NAME_SIZE];
	struct stat status;

	leftovers_name_beside(target, name);
	if (look_at(directory, name, &status))
		tell_one(path, name, &status, "the same output");
}

/* Call one() for each file of such a name. What goes wrong here is not told. */
static void find_all(const struct file *directory,
		     void (*one)(const struct file *directory, const char *name, void *context),
		     void *context)
{
	const struct dirent *entry;
	struct file readable;
	DIR *names;

	if (file_open(directory->calls, directory->fd, ".", O_RDONLY | O_DIRECTORY, 0, &readable) <
	    0)
		return;
	names = fdopendir(readable.fd);
	if (!names) {
		file_close(&readable);
		return;
	}
	while ((entry = readdir(names)))
		if (leftovers_is_name(entry->d_name))
			one(directory, entry->d_name, context);
	closedir(names);
}

/* A sort into many part files leaves as many: some are told one by one, and then their sum. */
enum { MOST_TOLD = 3 };

struct telling {
	const char *path;
	uint64_t n, more_nbytes;
};

static void tell_found(const struct file *directory, const char *name, void *context)
{
	struct telling *telling = context;
	struct stat status;

	if (!look_at(directory, name, &status))
		return;
	if (++telling->n <= MOST_TOLD)
		tell_one(telling->path, name, &status, "this or another output there");
	else
		telling->more_nbytes += taken_nbytes(&status);
}

/* Not more than a hint. */
void leftovers_tell(const struct file *directory, const char *path)
{
	struct telling telling = { .path = path };

	find_all(directory, tell_found, &telling);
	if (telling.n > MOST_TOLD)
		warn("%s: %" PRIu64 " more such files are beside it, which take %" PRIu64
		     " bytes: remove them",
		     path, telling.n - MOST_TOLD, telling.more_nbytes);
}

/* Does the name still lead to it, and is it this user's? */
static bool is_own(const struct file *directory, const char *name, const struct stat *status)
{
	struct stat named;

	return status->st_uid == geteuid() &&
	       fstatat(directory->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	       file_identity_equal(file_identity_of(status), file_identity_of(&named));
}

/* Nobody but the owner makes such a file: none was only just made. */
static void remove_found(const struct file *directory, const char *name, void *context)
{
	const struct leftovers_owner *owner = context;
	struct stat status;
	struct file file;

	if (!is_owned(name, owner) || file_open(directory->calls, directory->fd, name,
						O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &file) < 0)
		return;
	if (fstat(file.fd, &status) == 0 && is_free(&file, &status) &&
	    is_own(directory, name, &status))
		file_remove(directory->calls, directory->fd, name, 0);
	file_close(&file);
}

void leftovers_remove(const struct file *directory, const struct leftovers_owner *owner)
{
	struct leftovers_owner own = *owner;

	if (*own.digits)
		find_all(directory, remove_found, &own);
}
