/*
 * part_files_recovery - what a process that was killed in the middle has left (see part_files.h)
 *
 *	.NAME.parts.pending	a copy of the list, from before the first name until after the last
 *
 * It tells which of the parts that have a name were that process's, though nothing is there that
 * would come back in their place; and .NAME.parts.backup, which goes last, what of that which is
 * aside it has put there. What neither explains is somebody else's, and stays.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output/part_files_internal.h"
#include "src/base/diagnostics.h"

static const struct listed_part *find(const struct part_files *files, const struct parts_list *list,
				      uint32_t number)
{
	for (size_t i = 0; i < list->n_parts; i++) {
		bool is_aside;

		if (part_files_number_of(files, list->parts[i].name, &is_aside) == number &&
		    !is_aside)
			return &list->parts[i];
	}
	return NULL;
}

/* Is that the file which the list names? */
static bool vouches(const struct part_files *files, const struct parts_list *list, uint32_t number,
		    const struct stat *status)
{
	const struct listed_part *part = find(files, list, number);

	return part && S_ISREG(status->st_mode) && (uint64_t)status->st_size == part->nbytes;
}

/* --- what is there --- */

static int fail_not_left(const struct part_files *files, const char *name)
{
	return fail(
		-EEXIST,
		"%s: %s beside it has the name of a file that a killed gsort leaves, but no part "
		"manifest lists it: rename it, or let the output have another name",
		files->given, name);
}

int part_files_look_at_list(const struct part_files *files, const char *name)
{
	struct stat status;
	const int r = part_files_look_at_name(files, name, &status);

	return r > 0 && !S_ISREG(status.st_mode) ? fail_not_left(files, name) : r;
}

static int find_older(struct part_files *files)
{
	char name[NAME_MAX + 1];
	int r;

	part_files_make_name(files, LIST_NUMBER, true, name);
	r = part_files_look_at_list(files, name);
	if (r > 0)
		r = part_files_read_list(files, name, &files->left_older);
	return r < 0 ? r : 0;
}

/* The copy names the parts as gsort does, each where it stands. */
static bool is_copy(const struct part_files *files, const struct parts_list *list)
{
	for (size_t i = 0; i < list->n_parts; i++) {
		bool is_aside;

		if (part_files_number_of(files, list->parts[i].name, &is_aside) != i || is_aside)
			return false;
	}
	return true;
}

/* A copy that is not whole was not followed by any name. */
static int parse_newer(struct part_files *files, const char *name, const char *text, size_t nbytes)
{
	struct messages *before;
	int r;

	if (nbytes == 0)
		return 0;
	if (!parts_list_begins(text, nbytes))
		return fail_not_left(files, name);
	before = messages_enter(NULL);
	r = parts_list_parse(text, nbytes, name, &files->left_newer);
	messages_enter(before);
	if (r < 0)
		parts_list_free(&files->left_newer);
	return is_copy(files, &files->left_newer) ? 0 : fail_not_left(files, name);
}

static int find_newer(struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct file file;
	char *text = NULL;
	size_t nbytes;
	int r;

	part_files_make_newer_name(files->base, name);
	r = part_files_look_at_list(files, name);
	if (r <= 0)
		return r;
	r = file_open(files->calls, files->directory.fd, name, O_RDONLY | O_NONBLOCK, 0, &file);
	if (r < 0)
		return fail(r, "%s: %s beside it: %m", files->given, name);
	r = parts_list_read(&file, name, &text, &nbytes);
	if (r == 0)
		r = parse_newer(files, name, text, nbytes);
	free(text);
	file_close(&file);
	return r;
}

/* Where an older part comes back is nothing, or a new one. 1: that; 0; or a negative errno. */
static int check_place(const struct part_files *files, uint32_t number)
{
	char name[NAME_MAX + 1];
	struct stat status;
	const int r = part_files_look_at(files, number, false, &status);

	if (r <= 0 || vouches(files, &files->left_newer, number, &status))
		return r;
	part_files_make_name(files, number, false, name);
	return fail(-EEXIST,
		    "%s: %s beside it is in the place of a part file that a killed gsort had "
		    "moved aside, and no part manifest lists it: rename it",
		    files->given, name);
}

static int check_left(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	struct stat status;
	int r;

	if (!is_aside || number == LIST_NUMBER)
		return 0;
	r = part_files_look_at(files, number, true, &status);
	if (r > 0 && !vouches(files, &files->left_older, number, &status))
		return fail_not_left(files, name);
	if (r > 0 && !files->has_list)
		r = check_place(files, number);
	return r < 0 ? r : 0;
}

int part_files_find_left(struct part_files *files)
{
	struct stat status;
	int r = part_files_look_at(files, LIST_NUMBER, false, &status);

	files->has_list = r > 0;
	if (r >= 0)
		r = find_older(files);
	if (r == 0)
		r = find_newer(files);
	return r == 0 ? part_files_look_through(files, check_left) : r;
}

/* --- and is put in order --- */

static int fail_removing(const struct part_files *files, const char *name, int r)
{
	return fail(r,
		    "%s: %s beside it was left by a gsort that was killed, and cannot be removed: "
		    "%m",
		    files->given, name);
}

/* The parts that were new, and are none of the older ones. */
static int remove_newer_parts(const struct part_files *files)
{
	const struct parts_list *newer = &files->left_newer;

	for (uint32_t i = 0; i < newer->n_parts; i++) {
		struct stat status;
		int r = 0;

		if (!find(files, &files->left_older, i))
			r = part_files_look_at(files, i, false, &status);
		if (r > 0 && vouches(files, newer, i, &status) &&
		    (r = part_files_remove(files, i, false)) < 0)
			fail_removing(files, newer->parts[i].name, r);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The list goes last, or comes back: until then whoever is killed here leaves it to the next. */
static int take_back(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	int r;

	if (!is_aside || number == LIST_NUMBER)
		return 0;
	if (files->has_list) {
		r = part_files_remove(files, number, true);
		return r < 0 ? fail_removing(files, name, r) : 0;
	}
	r = check_place(files, number);
	if (r < 0)
		return r;
	r = part_files_move_back(files, number, r > 0);
	return r < 0 ? fail(r,
			    "%s: %s beside it was left by a gsort that was killed, and cannot be "
			    "put back: %m",
			    files->given, name) :
		       0;
}

static int forget_older_list(const struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct stat status;
	int r;

	part_files_make_name(files, LIST_NUMBER, true, name);
	r = part_files_look_at_name(files, name, &status);
	if (r <= 0)
		return r;
	r = file_remove(files->calls, files->directory.fd, name, 0);
	return r < 0 ? fail_removing(files, name, r) : 0;
}

int part_files_settle(struct part_files *files)
{
	int r = files->has_list ? 0 : remove_newer_parts(files);

	if (r == 0)
		r = part_files_look_through(files, take_back);
	if (r == 0 && files->has_list)
		r = forget_older_list(files);
	files->lock_is_left = files->lock_is_left && r < 0;
	if (r < 0 || files->has_list || !files->left_older.n_parts)
		return r;
	r = part_files_move_back(files, LIST_NUMBER, false);
	if (r < 0)
		return fail(r, "%s: the older part manifest cannot be restored: %m", files->given);
	files->has_list = true;
	tell("%s: what a gsort that was killed had moved aside is put back", files->given);
	return 0;
}

int part_files_begin(struct part_files *files, const char *list)
{
	char name[NAME_MAX + 1];
	int r = files->lock.fd < 0 ? -EACCES : file_write_at(&files->lock, 0, list, strlen(list));

	part_files_make_newer_name(files->base, name);
	return r < 0 ? fail(r, "%s: %s beside it, a copy of the list, cannot be written: %m",
			    files->given, name) :
		       0;
}
