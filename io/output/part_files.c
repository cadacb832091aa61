/*
 * part_files - several files and a list of them, together or not at all (see part_files.h)
 *
 * Here the names are found, and what has them.
 */
#include "io/output/part_files_inside.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/input/parts_list.h"
#include "src/base/messages.h"

/* Of what is put behind a name, and of the dot in front of one that is moved aside. */
enum { MOST_ADDED = 32 };

#define NO_NUMBER (UINT32_MAX - 1)

/* --- names --- */

static void make_name(const char *base, uint32_t number, bool is_aside,
		      char name[static NAME_MAX + 1])
{
	char end[16] = "parts";

	if (number != LIST_NUMBER)
		snprintf(end, sizeof end, "%04" PRIu32, number);
	snprintf(name, NAME_MAX + 1, "%s%s.%s%s", is_aside ? "." : "", base, end,
		 is_aside ? ".older" : "");
}

void part_files_make_name(const struct part_files *files, uint32_t number, bool is_aside,
			  char name[static NAME_MAX + 1])
{
	make_name(files->base, number, is_aside, name);
}

/* The number that a name of the directory has; NO_NUMBER: none. */
static uint32_t number_of(const char *base, const char *name, bool *ret_is_aside)
{
	const size_t n_base = strlen(base);
	char made[NAME_MAX + 1];
	unsigned long number;
	char *end;

	*ret_is_aside = name[0] == '.' && strncmp(name + 1, base, n_base) == 0 &&
			name[1 + n_base] == '.';
	if (!*ret_is_aside && (strncmp(name, base, n_base) != 0 || name[n_base] != '.'))
		return NO_NUMBER;
	name += *ret_is_aside;
	number = strtoul(name + n_base + 1, &end, 10);
	if (strncmp(name + n_base + 1, "parts", 5) == 0)
		number = LIST_NUMBER;
	else if (end == name + n_base + 1 || number >= NO_NUMBER)
		return NO_NUMBER;
	make_name(base, (uint32_t)number, *ret_is_aside, made);
	return strcmp(made, name - *ret_is_aside) == 0 ? (uint32_t)number : NO_NUMBER;
}

bool part_files_could_have(const char *base, const char *name)
{
	bool is_aside;

	return number_of(base, name, &is_aside) != NO_NUMBER;
}

int part_files_make_path(const char *name, uint32_t n, uint32_t i, char **ret_path)
{
	char *path;
	const int r = i < n ? asprintf(&path, "%s.%04" PRIu32, name, i) :
			      asprintf(&path, "%s.parts", name);

	if (r < 0)
		return fail(-ENOMEM, "%s: %m", name);
	*ret_path = path;
	return 0;
}

static int make_paths(struct part_files *files)
{
	int r = 0;

	files->paths = calloc(files->n + UINT64_C(1), sizeof *files->paths);
	files->is_aside = calloc(files->n, sizeof *files->is_aside);
	if (!files->paths || !files->is_aside)
		return fail(-ENOMEM, "%s: no memory for %" PRIu32 " names", files->given, files->n);
	for (uint32_t i = 0; i <= files->n && r == 0; i++)
		r = part_files_make_path(files->given, files->n, i, &files->paths[i]);
	return r;
}

static int open_directory(struct part_files *files)
{
	const char *slash = strrchr(files->given, '/');
	const char *base = slash ? slash + 1 : files->given;
	char *way = slash ? strndup(files->given, (size_t)(base - files->given)) : strdup(".");
	int r;

	files->base = strdup(base);
	if (!way || !files->base) {
		free(way);
		return fail(-ENOMEM, "%s: %m", files->given);
	}
	if (strlen(base) + MOST_ADDED > NAME_MAX)
		r = fail(-ENAMETOOLONG, "%s: %m, with the number of a part behind it",
			 files->given);
	else if (!parts_list_can_name(base))
		r = fail(-EINVAL,
			 "%s: is no name that a list can have, which is UTF-8; choose another",
			 files->given);
	else if ((r = file_open(files->calls, AT_FDCWD, way, O_PATH | O_DIRECTORY, 0,
				&files->directory)) < 0)
		fail(r, "%s: its directory: %m", files->given);
	free(way);
	return r;
}

/* --- what is there --- */

int part_files_rename(const struct part_files *files, uint32_t number, bool comes_back)
{
	char name[NAME_MAX + 1], aside[NAME_MAX + 1];

	part_files_make_name(files, number, false, name);
	part_files_make_name(files, number, true, aside);
	return files->calls->renameat(files->directory.fd, comes_back ? aside : name,
				      files->directory.fd, comes_back ? name : aside) < 0 ?
		       -errno :
		       0;
}

int part_files_remove(const struct part_files *files, uint32_t number, bool is_aside)
{
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, is_aside, name);
	return file_remove(files->calls, files->directory.fd, name, 0);
}

/* Called with what has a name of ours. 0, or a negative errno after a message. */
typedef int look_fn(struct part_files *files, uint32_t number, bool is_aside, const char *name);

/* A directory that may not be read tells nothing. */
static int look_through(struct part_files *files, look_fn *look)
{
	const struct dirent *entry;
	struct file readable;
	DIR *names;
	int r = 0;

	if (file_open(files->calls, files->directory.fd, ".", O_RDONLY | O_DIRECTORY, 0,
		      &readable) < 0)
		return 0;
	names = fdopendir(readable.fd);
	if (!names) {
		file_close(&readable);
		return 0;
	}
	while (r == 0 && (entry = readdir(names))) {
		bool is_aside;
		const uint32_t number = number_of(files->base, entry->d_name, &is_aside);

		if (number != NO_NUMBER)
			r = look(files, number, is_aside, entry->d_name);
	}
	closedir(names);
	return r;
}

/* 1: it is there; 0: it is not; or a negative errno after a message. */
static int look_at(const struct part_files *files, uint32_t number, struct stat *ret_status)
{
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, false, name);
	if (fstatat(files->directory.fd, name, ret_status, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ?
		       0 :
		       fail(-errno, "%s: cannot tell what %s beside it is: %m", files->given, name);
}

/*
 * What a process that was killed has left aside. The list comes back last: until then whoever is
 * killed here leaves it to the next.
 */
static int take_back(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	int r;

	if (!is_aside || (number == LIST_NUMBER && !files->has_list))
		return 0;
	r = files->has_list ? part_files_remove(files, number, true) :
			      part_files_rename(files, number, true);
	return r < 0 ? fail(r,
			    "%s: %s beside it was left by a gsort that was killed, and cannot be "
			    "%s: %m",
			    files->given, name, files->has_list ? "removed" : "put back") :
		       0;
}

static int settle_killed(struct part_files *files)
{
	struct stat status;
	int r;

	r = look_at(files, LIST_NUMBER, &status);
	files->has_list = r > 0;
	if (r >= 0)
		r = look_through(files, take_back);
	if (r < 0 || files->has_list)
		return r;
	r = part_files_rename(files, LIST_NUMBER, true);
	files->has_list = r == 0;
	if (files->has_list)
		tell("%s: what a gsort that was killed had moved aside is put back", files->given);
	return r == 0 || r == -ENOENT ?
		       0 :
		       fail(r, "%s: the older list of parts cannot be put back: %m", files->given);
}

/* Of the parts that the older list has, those that the new one has not. */
static int note_stale(struct part_files *files, const struct parts_list *list)
{
	files->stale = calloc(list->n_parts + 1, sizeof *files->stale);
	if (!files->stale)
		return fail(-ENOMEM, "%s: no memory for a list of parts", files->given);
	for (size_t i = 0; i < list->n_parts; i++) {
		bool is_aside;
		const uint32_t number = number_of(files->base, list->parts[i].name, &is_aside);
		struct stat status;
		int r = 0;

		if (number >= files->n && number < NO_NUMBER && !is_aside)
			r = look_at(files, number, &status);
		if (r < 0)
			return r;
		if (r > 0 && S_ISREG(status.st_mode))
			files->stale[files->n_stale++] = number;
	}
	return 0;
}

static int read_text(const struct part_files *files, const struct file *file, char **ret_text,
		     size_t *ret_nbytes)
{
	const char *path = files->paths[files->n];
	uint64_t nbytes;
	int r = file_size(file, &nbytes);

	if (r == 0 && nbytes > PARTS_LIST_MOST_NBYTES)
		r = -EFBIG;
	if (r < 0)
		return fail(r, "%s: %m", path);
	*ret_text = malloc(nbytes + 1);
	*ret_nbytes = nbytes;
	if (!*ret_text)
		return fail(-ENOMEM, "%s: no memory for a list of parts", path);
	r = file_read_at(file, 0, *ret_text, nbytes);
	return r < 0 ? fail(r, "%s: %m", path) : 0;
}

/* What has the list's name must be one: it is nothing else that is replaced. */
static int parse_older(struct part_files *files, const char *text, size_t nbytes)
{
	const char *path = files->paths[files->n];
	struct parts_list list;
	int r;

	if (!parts_list_begins(text, nbytes))
		return fail(-EEXIST,
			    "%s: is there, and no list of parts: rename it, or let the output have "
			    "another name",
			    path);
	r = parts_list_parse(text, nbytes, path, &list);
	if (r == 0)
		r = note_stale(files, &list);
	parts_list_free(&list);
	return r;
}

static int read_older(struct part_files *files)
{
	struct file file;
	char *text = NULL;
	size_t nbytes = 0;
	int r;

	if (!files->has_list)
		return 0;
	r = file_open(files->calls, AT_FDCWD, files->paths[files->n], O_RDONLY | O_NONBLOCK, 0,
		      &file);
	if (r < 0)
		return fail(r, "%s: %m", files->paths[files->n]);
	r = read_text(files, &file, &text, &nbytes);
	if (r == 0)
		r = parse_older(files, text, nbytes);
	free(text);
	file_close(&file);
	return r;
}

static bool is_stale(const struct part_files *files, uint32_t number)
{
	for (uint32_t i = 0; i < files->n_stale; i++)
		if (files->stale[i] == number)
			return true;
	return false;
}

/* No file that has one of our names must be another than it seems to be. */
static int check_there(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	struct stat status;
	const int r = is_aside ? 0 : look_at(files, number, &status);

	if (r <= 0)
		return r;
	if (!S_ISREG(status.st_mode))
		return fail(S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST,
			    "%s: %s beside it is no regular file, whose place one of the parts "
			    "could take",
			    files->given, name);
	if (number < files->n || number == LIST_NUMBER || is_stale(files, number))
		return 0;
	return fail(-EEXIST,
		    "%s: %s beside it is none of the %" PRIu32
		    " parts, and would be taken for one; remove it",
		    files->given, name, files->n);
}

int part_files_open(const struct syscalls *calls, const char *name, uint32_t n,
		    struct part_files **ret_files)
{
	struct part_files *files = calloc(1, sizeof *files);
	int r;

	if (!files)
		return fail(-ENOMEM, "%s: %m", name);
	files->calls = calls;
	files->given = name;
	files->n = n;
	files->directory = (struct file){ .calls = calls, .fd = -1 };
	r = open_directory(files);
	if (r == 0)
		r = make_paths(files);
	if (r == 0)
		r = settle_killed(files);
	if (r == 0)
		r = read_older(files);
	if (r == 0)
		r = look_through(files, check_there);
	if (r < 0) {
		part_files_close(files);
		return r;
	}
	*ret_files = files;
	return 0;
}

const char *part_files_path(const struct part_files *files, uint32_t i)
{
	return files->paths[i];
}

const char *part_files_name(const struct part_files *files, uint32_t i)
{
	return files->paths[i] + strlen(files->given) - strlen(files->base);
}

void part_files_close(struct part_files *files)
{
	if (!files)
		return;
	for (uint32_t i = 0; files->paths && i <= files->n; i++)
		free(files->paths[i]);
	free(files->paths);
	free(files->is_aside);
	free(files->stale);
	free(files->base);
	file_close(&files->directory);
	free(files);
}
