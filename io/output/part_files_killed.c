/*
 * part_files_killed - what a process that was killed in the middle has left (see part_files.h)
 *
 *	.NAME.parts.newer	a copy of the list, from before the first name until after the last
 *
 * It tells which of the parts that have a name were that process's, though nothing is there that
 * would come back in their place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/output/part_files_inside.h"
#include "src/base/messages.h"

static bool names(const struct part_files *files, const struct parts_list *list, uint32_t number)
{
	bool is_aside;

	for (size_t i = 0; i < list->n_parts; i++)
		if (part_files_number_of(files, list->parts[i].name, &is_aside) == number)
			return !is_aside;
	return false;
}

static int fail_removing(const struct part_files *files, const char *name, int r)
{
	return fail(r,
		    "%s: %s beside it was left by a gsort that was killed, and cannot be removed: "
		    "%m",
		    files->given, name);
}

/* The parts that were new, and are none of the older ones. */
static int remove_newer_parts(const struct part_files *files, const struct parts_list *newer,
			      const struct parts_list *older)
{
	for (size_t i = 0; i < newer->n_parts; i++) {
		const struct listed_part *part = &newer->parts[i];
		bool is_aside;
		const uint32_t number = part_files_number_of(files, part->name, &is_aside);
		struct stat status;
		int r = 0;

		if (number < NO_NUMBER && !is_aside && !names(files, older, number))
			r = part_files_look_at(files, number, &status);
		if (r > 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size == part->nbytes &&
		    (r = part_files_remove(files, number, false)) < 0)
			fail_removing(files, part->name, r);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A copy that is not whole was not followed by any name. */
static int read_newer(const struct part_files *files, struct parts_list *ret_list)
{
	char name[NAME_MAX + 1];
	struct messages *before = messages_enter(NULL);
	int r;

	part_files_make_newer_name(files->base, name);
	r = part_files_read_list(files, name, ret_list);
	messages_enter(before);
	return r > 0;
}

static int remove_newer(const struct part_files *files)
{
	struct parts_list newer, older = { 0 };
	char name[NAME_MAX + 1];
	int r = 0;

	if (read_newer(files, &newer)) {
		part_files_make_name(files, LIST_NUMBER, true, name);
		r = part_files_read_list(files, name, &older);
		if (r >= 0)
			r = remove_newer_parts(files, &newer, &older);
	}
	parts_list_free(&newer);
	parts_list_free(&older);
	return r;
}

/*
 * The list comes back last: until then whoever is killed here leaves it to the next.
 */
static int take_back(struct part_files *files, uint32_t number, bool is_aside, const char *name)
{
	int r;

	if (!is_aside || (number == LIST_NUMBER && !files->has_list))
		return 0;
	if (files->has_list) {
		r = part_files_remove(files, number, true);
		return r < 0 ? fail_removing(files, name, r) : 0;
	}
	r = part_files_rename(files, number, true);
	return r < 0 ? fail(r,
			    "%s: %s beside it was left by a gsort that was killed, and cannot be "
			    "put back: %m",
			    files->given, name) :
		       0;
}

static int forget_newer(const struct part_files *files)
{
	char name[NAME_MAX + 1];
	struct stat status;
	int r;

	part_files_make_newer_name(files->base, name);
	if (fstatat(files->directory.fd, name, &status, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
		return 0;
	r = file_remove(files->calls, files->directory.fd, name, 0);
	return r < 0 ? fail_removing(files, name, r) : 0;
}

int part_files_settle(struct part_files *files)
{
	struct stat status;
	int r = part_files_look_at(files, LIST_NUMBER, &status);

	files->has_list = r > 0;
	if (r == 0)
		r = remove_newer(files);
	if (r >= 0)
		r = part_files_look_through(files, take_back);
	if (r >= 0)
		r = forget_newer(files);
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

int part_files_begin(const struct part_files *files, const char *list)
{
	char name[NAME_MAX + 1];
	struct file file;
	int r, closed;

	part_files_make_newer_name(files->base, name);
	r = file_open(files->calls, files->directory.fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600,
		      &file);
	if (r == 0) {
		r = file_write_at(&file, 0, list, strlen(list));
		closed = file_close(&file);
		if (r == 0)
			r = closed;
		if (r < 0)
			file_remove(files->calls, files->directory.fd, name, 0);
	}
	return r < 0 ? fail(r, "%s: %s beside it, a copy of the list, cannot be written: %m",
			    files->given, name) :
		       0;
}

void part_files_end(const struct part_files *files)
{
	char name[NAME_MAX + 1];
	int r;

	part_files_make_newer_name(files->base, name);
	r = file_remove(files->calls, files->directory.fd, name, 0);
	if (r < 0)
		warn("%s: %s beside it is not needed any more, and cannot be removed: %s",
		     files->given, name, strerror(-r));
}
