/*
 * part_files - several files and a list of them, together or not at all (see part_files.h)
 *
 * Here the names are found, and what has them.
 */
#include "io/output/part_files_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/input/part_manifest.h"
#include "src/base/diagnostics.h"

/* Of what is put behind a name, and of the dot in front of one that is moved aside. */
enum { MOST_ADDED = 32 };

/* --- names --- */

static void make_name(const char *base, uint32_t number, bool is_aside,
		      char name[static NAME_MAX + 1])
{
	char end[16] = "parts";

	if (number != LIST_NUMBER)
		snprintf(end, sizeof end, "%04" PRIu32, number);
	snprintf(name, NAME_MAX + 1, "%s%s.%s%s", is_aside ? "." : "", base, end,
		 is_aside ? ".backup" : "");
}

void part_files_make_name(const struct part_files *files, uint32_t number, bool is_aside,
			  char name[static NAME_MAX + 1])
{
	make_name(files->base, number, is_aside, name);
}

void part_files_make_newer_name(const char *base, char name[static NAME_MAX + 1])
{
	snprintf(name, NAME_MAX + 1, ".%s.parts.pending", base);
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

uint32_t part_files_number_of(const struct part_files *files, const char *name, bool *ret_is_aside)
{
	return number_of(files->base, name, ret_is_aside);
}

bool part_files_could_have(const char *base, const char *name)
{
	char newer[NAME_MAX + 1];
	bool is_aside;

	part_files_make_newer_name(base, newer);
	return strcmp(name, newer) == 0 || number_of(base, name, &is_aside) != NO_NUMBER;
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
		r = fail(-ENAMETOOLONG, "%s: %m, with the number of a part file", files->given);
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

int part_files_move_aside(const struct part_files *files, uint32_t number)
{
	char name[NAME_MAX + 1], aside[NAME_MAX + 1];

	part_files_make_name(files, number, false, name);
	part_files_make_name(files, number, true, aside);
	return file_rename_to_free(files->calls, files->directory.fd, name, aside);
}

int part_files_move_back(const struct part_files *files, uint32_t number, bool replaces)
{
	const int directory = files->directory.fd;
	char name[NAME_MAX + 1], aside[NAME_MAX + 1];

	part_files_make_name(files, number, false, name);
	part_files_make_name(files, number, true, aside);
	if (!replaces)
		return file_rename_to_free(files->calls, directory, aside, name);
	return files->calls->renameat(directory, aside, directory, name) < 0 ? -errno : 0;
}

int part_files_remove(const struct part_files *files, uint32_t number, bool is_aside)
{
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, is_aside, name);
	return file_remove(files->calls, files->directory.fd, name, 0);
}

int part_files_look_through(struct part_files *files, part_files_look_fn *look)
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
		const uint32_t number = part_files_number_of(files, entry->d_name, &is_aside);

		if (number != NO_NUMBER)
			r = look(files, number, is_aside, entry->d_name);
	}
	closedir(names);
	return r;
}

int part_files_look_at_name(const struct part_files *files, const char *name,
			    struct stat *ret_status)
{
	if (fstatat(files->directory.fd, name, ret_status, AT_SYMLINK_NOFOLLOW) == 0)
		return 1;
	return errno == ENOENT ?
		       0 :
		       fail(-errno, "%s: cannot tell what %s beside it is: %m", files->given, name);
}

int part_files_look_at(const struct part_files *files, uint32_t number, bool is_aside,
		       struct stat *ret_status)
{
	char name[NAME_MAX + 1];

	part_files_make_name(files, number, is_aside, name);
	return part_files_look_at_name(files, name, ret_status);
}

/* What the older list has, and of that, what the new one has not. */
static int note_older(struct part_files *files, const struct parts_list *list)
{
	files->stale = calloc(list->n_parts + 1, sizeof *files->stale);
	files->older = calloc(list->n_parts + 1, sizeof *files->older);
	if (!files->stale || !files->older)
		return fail(-ENOMEM, "%s: no memory for a part manifest", files->given);
	for (size_t i = 0; i < list->n_parts; i++) {
		bool is_aside;
		const struct listed_part *part = &list->parts[i];
		const uint32_t number = part_files_number_of(files, part->name, &is_aside);
		struct stat status;
		int r = 0;

		if (number >= NO_NUMBER || is_aside)
			continue;
		files->older[files->n_older++] = (struct older_part){ number, part->nbytes };
		if (number >= files->n)
			r = part_files_look_at(files, number, false, &status);
		if (r < 0)
			return r;
		if (r > 0 && S_ISREG(status.st_mode))
			files->stale[files->n_stale++] =
				(struct stale_part){ number, file_identity_of(&status),
						     file_state_of(&status) };
	}
	return 0;
}

/* What has a list's name must be one: it is nothing else that is replaced. */
static int parse(const char *text, size_t nbytes, const char *path, struct parts_list *ret_list)
{
	if (!parts_list_begins(text, nbytes))
		return fail(-EEXIST,
			    "%s: is there, and no part manifest: rename it, or let the output have "
			    "another name",
			    path);
	return parts_list_parse(text, nbytes, path, ret_list);
}

/* path: what messages call it. */
static int read_list(const struct file *file, const char *path, struct parts_list *ret_list)
{
	char *text = NULL;
	size_t nbytes = 0;
	int r = parts_list_read(file, path, &text, &nbytes);

	if (r == 0)
		r = parse(text, nbytes, path, ret_list);
	free(text);
	return r;
}

int part_files_read_list(const struct part_files *files, const char *name,
			 struct parts_list *ret_list)
{
	const int way_length = (int)(strlen(files->given) - strlen(files->base));
	struct file file;
	char *path;
	int r = file_open(files->calls, files->directory.fd, name, O_RDONLY | O_NONBLOCK, 0, &file);

	*ret_list = (struct parts_list){ 0 };
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return fail(r, "%s: %s beside it: %m", files->given, name);
	if (asprintf(&path, "%.*s%s", way_length, files->given, name) < 0) {
		r = fail(-ENOMEM, "%s: %m", files->given);
	} else {
		r = read_list(&file, path, ret_list);
		free(path);
	}
	file_close(&file);
	return r < 0 ? r : 1;
}

static int read_older(struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct parts_list list;
	int r;

	if (!files->has_list)
		return 0;
	part_files_make_name(files, LIST_NUMBER, false, name);
	r = part_files_read_list(files, name, &list);
	if (r > 0)
		r = note_older(files, &list);
	parts_list_free(&list);
	return r;
}

/* Has the older list such a part? What is none of its, somebody else has put there. */
static bool is_older(const struct part_files *files, uint32_t number, uint64_t nbytes)
{
	for (uint32_t i = 0; i < files->n_older; i++)
		if (files->older[i].number == number)
			return files->older[i].nbytes == nbytes;
	return false;
}

/* No file that has one of our names must be another than it seems to be. */
static int check_there(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	struct stat status;
	const int r = is_aside ? 0 : part_files_look_at(files, number, false, &status);

	if (r <= 0)
		return r;
	if (!S_ISREG(status.st_mode))
		return fail(S_ISDIR(status.st_mode) ? -EISDIR : -EEXIST,
			    "%s: %s beside it is no regular file, but has the name of a part "
			    "file",
			    files->given, name);
	if (number == LIST_NUMBER || is_older(files, number, (uint64_t)status.st_size))
		return 0;
	if (number >= files->n)
		return fail(-EEXIST,
			    "%s: %s beside it is none of the %" PRIu32
			    " part files, but has such a name; remove it",
			    files->given, name, files->n);
	return fail(-EEXIST,
		    "%s: %s beside it has the name of a part file, but no part manifest "
		    "lists it; remove it, or let the output have another name",
		    files->given, name);
}

static int find_there(struct part_files *files)
{
	const int r = read_older(files);

	return r == 0 ? part_files_look_through(files, check_there) : r;
}

static int make(const struct syscalls *calls, const char *name, uint32_t n,
		struct part_files **ret_files)
{
	struct part_files *files = calloc(1, sizeof *files);
	int r;

	*ret_files = files;
	if (!files)
		return fail(-ENOMEM, "%s: %m", name);
	files->calls = calls;
	files->given = name;
	files->n = n;
	files->lock = files->directory = (struct file){ .calls = calls, .fd = -1 };
	r = open_directory(files);
	return r == 0 ? make_paths(files) : r;
}

int part_files_check(const struct syscalls *calls, const char *name, uint32_t n)
{
	struct part_files *files;
	int r = make(calls, name, n, &files);

	if (r == 0)
		r = part_files_find_left(files);
	if (r == 0 && !files->left_older.n_parts && !files->left_newer.n_parts)
		r = find_there(files);
	part_files_close(files);
	return r;
}

int part_files_open(const struct syscalls *calls, const char *name, uint32_t n,
		    struct part_files **ret_files)
{
	struct part_files *files;
	int r = make(calls, name, n, &files);

	if (r == 0)
		r = part_files_lock(files);
	if (r == 0)
		r = part_files_find_left(files);
	if (r == 0)
		r = part_files_settle(files);
	if (r == 0)
		r = find_there(files);
	if (files)
		part_files_unlock(files);
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
	free(files->older);
	parts_list_free(&files->left_older);
	parts_list_free(&files->left_newer);
	free(files->base);
	file_close(&files->directory);
	free(files);
}
