/*
 * leftovers - unfinished files whose process was killed outright (see leftovers.h)
 *
 * The locks are those of open file descriptions: of POSIX's, a process loses its own with the first
 * of its descriptors that it closes. To ask for a lock does not take it, so two that start at once
 * are not in each other's way.
 */
#include "io/output/leftovers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "io/codec/checksum.h"
#include "src/base/messages.h"

static const char prefix[] = ".gsort-unfinished-";

/* It takes less from the creation of a file to its lock. */
enum { JUST_MADE_S = 60 };

_Static_assert(sizeof prefix + FILE_UNIQUE_DIGITS == LEFTOVERS_NAME_SIZE, "the name's size");

void leftovers_make_name(char name[static LEFTOVERS_NAME_SIZE])
{
	memcpy(name, prefix, sizeof prefix);
	file_unique_digits(name + sizeof prefix - 1);
}

void leftovers_name_beside(const char *target, char name[static LEFTOVERS_NAME_SIZE])
{
	snprintf(name, LEFTOVERS_NAME_SIZE, "%s%016" PRIx64, prefix,
		 checksum64(target, strlen(target)));
}

bool leftovers_is_name(const char *name)
{
	return strncmp(name, prefix, sizeof prefix - 1) == 0 &&
	       file_is_unique_digits(name + sizeof prefix - 1);
}

void leftovers_hold(const struct file *file)
{
	struct flock all = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	fcntl(file->fd, F_OFD_SETLK, &all);
}

/* Nobody works on it, as far as can be told. */
static bool is_left(const struct file *file, const struct stat *status)
{
	struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };

	if (!S_ISREG(status->st_mode) || fcntl(file->fd, F_OFD_GETLK, &all) < 0)
		return false;
	return all.l_type == F_UNLCK &&
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

/* what: it was to be. */
static void tell_one(const struct file *directory, const char *path, const char *name,
		     const char *what)
{
	struct stat status;
	struct file file;
	char text[32];

	/* What may not be opened is somebody else's, who will be told. */
	if (file_open(directory->calls, directory->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0,
		      &file) < 0)
		return;
	if (fstat(file.fd, &status) == 0 && is_left(&file, &status))
		warn("%s: %s beside it was left by a gsort that was killed after %s, while it "
		     "wrote %s: remove it, it takes %" PRIu64 " bytes",
		     path, name, time_of(&status, text), what, (uint64_t)status.st_blocks * 512);
	file_close(&file);
}

void leftovers_tell_beside(const struct file *directory, const char *path, const char *target)
{
	char name[LEFTOVERS_NAME_SIZE];

	leftovers_name_beside(target, name);
	tell_one(directory, path, name, "the same output");
}

/* Not more than a hint: what goes wrong here is not told. */
void leftovers_tell(const struct file *directory, const char *path)
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
			tell_one(directory, path, entry->d_name, "this or another output there");
	closedir(names);
}
